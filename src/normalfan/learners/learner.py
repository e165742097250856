"""What a learner is, and what it is built with: step sizes, floors, models of the coming loss.

    for round, loss in enumerate(losses):
        policy = learner.act(round)            # [H, S, A], a distribution at every step and state
        learner.observe(round, loss)           # full information: the whole loss [H, S, A]

The loop owns the counter of the rounds, from 0. A floor f > 0 mixes the stored policy with the uniform one
after every step, π ← (1 − A·f) π + f: it decides comparisons between learners (docs/details/learners.md).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_number
from normalfan.geometry.bellman import as_policy
from normalfan.problem.arrays import LEFT_ALONE, FloatArray, read_only
from normalfan.problem.losses import as_finite_loss, as_loss
from normalfan.problem.mdp import MDP

StepSize: TypeAlias = float | Callable[[int], float]
"""A constant step size, or a schedule: the step size of each round, counted from 0."""

DEFAULT_ETA = 0.3
"""Inside both of the paper's sweeps, 0.04 to 1 and 0.04 to 0.6: a place to start, not a recommendation."""


@runtime_checkable
class Learner(Protocol):
    """Plays a policy in every round, and sees the loss of the round afterwards.

    Examples
    --------
    >>> import normalfan as nf
    >>> isinstance(nf.learners.Hedge(nf.MDP([[0, 0]], initial=0, horizon=1)), nf.learners.Learner)
    True
    """

    mdp: MDP  # the problem that it plays

    def act(self, round: int) -> FloatArray:
        """The policy [H, S, A] of the coming round, read-only; asked twice, it is the same one."""

    def observe(self, round: int, loss: FloatArray) -> None:
        """See the whole loss [H, S, A] of the round that was just played; it is not written to."""


@runtime_checkable
class Clairvoyant(Learner, Protocol):
    """A learner that must see the coming loss before it acts: for comparison only."""

    def foresee(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round about to be played; called before `act`."""


@runtime_checkable
class Moving(Learner, Protocol):
    """A learner that can be told of other dynamics."""

    def move(self, mdp: MDP) -> None:
        """Go on in `mdp`: called after the play and before `observe`, or before `foresee` if it has that."""


class Described:
    """Has a short `repr`: the parameters of its constructor, without the problem."""

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in signature(type(self)).parameters if name != "mdp"}
        shown = (f"{name}={getattr(value, '__name__', repr(value))}" for name, value in values.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def step_size(eta: StepSize, round: int, *, may_be_infinite: bool = False) -> float:
    """The step size of a round.

    >>> step_size(0.3, round=7), step_size(lambda t: 1 / (1 + t), round=3)
    (0.3, 0.25)
    """
    name, number = (f"eta({round})", eta(round)) if callable(eta) else ("eta", eta)
    return check_constant_step(name, number, may_be_infinite=may_be_infinite)


def check_step_size(eta: StepSize, *, may_be_infinite: bool = False) -> StepSize:
    """Refuse a bad constant at once; what a schedule says is checked in the round it is asked."""
    return eta if callable(eta) else check_constant_step("eta", eta, may_be_infinite=may_be_infinite)


def check_constant_step(name: str, eta: float, *, may_be_infinite: bool = False) -> float:
    tip = "for losses around 1, try 0.04 to 1"
    return check_number(name, eta, tip, positive=True, may_be_infinite=may_be_infinite)


def check_floor(mdp: MDP, floor: float) -> float:
    """A floor f for every action needs A·f < 1."""
    if not check_number("floor", floor) < 1 / mdp.n_actions:
        raise InputError(
            f"floor is {floor}, but must be at least 0 and below {1 / mdp.n_actions:g} "
            f"(1 over {mdp.n_actions} actions): 0 switches it off."
        )
    return float(floor)


def check_one_state(name: str, mdp: MDP) -> MDP:
    if mdp.shape[:2] != (1, 1):
        raise InputError(
            f"{name} was given a problem of {mdp.horizon} steps and {mdp.n_states} states, but must have one "
            f"of each: use MirrorDescent, which is the same update in every state and step."
        )
    return mdp


def as_played(mdp: MDP, policy: FloatArray) -> FloatArray:
    """A policy [H, S, A] as `as_policy` returns it; without a copy if there is nothing to mend."""
    from normalfan._kernels.playing import are_distributions

    plain = type(policy) is np.ndarray and policy.dtype == np.float64 and policy.shape == mdp.shape
    return policy if plain and are_distributions(policy, LEFT_ALONE / 4) else as_policy(mdp, policy)


def seen_everywhere(player: object, mdp: MDP, loss: npt.ArrayLike) -> FloatArray:
    """A loss for a learner or selector that may play every action: none may be forbidden."""
    return as_finite_loss(mdp, loss, f"{type(player).__name__} plays every action")


# --- models of the coming loss: what an optimistic learner expects before it acts


@runtime_checkable
class LossModel(Protocol):
    """Sees every loss, and predicts the next one.

    Examples
    --------
    >>> isinstance(LastLoss(), LossModel)
    True
    """

    def update(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round that was just played."""

    def predict(self) -> FloatArray | None:
        """Predict the coming loss [H, S, A]; None before the first `update`."""


class _Expecting(Described):
    _expected: FloatArray | None = None

    def predict(self) -> FloatArray | None:
        return self._expected


class LastLoss(_Expecting):
    """Expects the last loss again: m_{t+1} = ℓ_t.

    Examples
    --------
    >>> model = LastLoss()
    >>> model.update([[[1.0, 2.0]]])
    >>> model.predict()
    array([[[1., 2.]]])
    """

    def update(self, loss: npt.ArrayLike) -> None:
        self._expected = read_only(np.array(loss, dtype=np.float64))


@dataclass(eq=False, repr=False)
class ExponentialAverage(_Expecting):
    """Expects a moving average of the losses: m_{t+1} = (1 − rate) m_t + rate ℓ_t, from m_1 = ℓ_0.

    Examples
    --------
    >>> model = ExponentialAverage(rate=0.5)
    >>> model.update([[[0.0, 0.0]]])
    >>> model.update([[[1.0, 3.0]]])
    >>> model.predict()
    array([[[0.5, 1.5]]])
    """

    rate: float = 0.5  # the weight of the newest loss, in (0, 1]; with 1 it is `LastLoss`

    def __post_init__(self) -> None:
        if check_number("rate", self.rate, positive=True) > 1:
            raise InputError(
                f"rate is {self.rate}, but must be above 0 and at most 1: it is the newest loss's weight."
            )

    def update(self, loss: npt.ArrayLike) -> None:
        newest, mean = np.array(loss, dtype=np.float64), self._expected
        self._expected = read_only(newest if mean is None else (1 - self.rate) * mean + self.rate * newest)


@dataclass(eq=False, repr=False)
class FromHistory(Described):
    """Expects what a function makes of all losses so far, oldest first and never empty; it stores them.

    Examples
    --------
    >>> model = FromHistory(lambda losses: 2 * losses[-1])
    >>> model.update([[[1.0, 2.0]]])
    >>> model.predict()
    array([[[2., 4.]]])
    """

    function: Callable[[list[FloatArray]], Any]  # of the list of losses; it returns a loss [H, S, A]
    _history: list[FloatArray] = field(default_factory=list, init=False)

    def update(self, loss: npt.ArrayLike) -> None:
        self._history.append(read_only(np.array(loss, dtype=np.float64)))

    def predict(self) -> FloatArray | None:
        return self.function(list(self._history)) if self._history else None


AnyModel: TypeAlias = LossModel | Callable[[list[FloatArray]], Any] | None
"""What a learner accepts as its model: one, a function as in `FromHistory`, or None for the last loss."""


def own_model(model: AnyModel) -> LossModel:
    """A copy that nobody else changes: one model may be given to many learners."""
    if model is None:
        return LastLoss()
    if isinstance(model, LossModel):
        return deepcopy(model)
    if callable(model):
        return FromHistory(model)
    raise InputError(
        f"model is of type {type(model).__name__}, but must have update and predict or be a function of the "
        f"losses so far: pass LastLoss() or ExponentialAverage(rate)."
    )


def predicted_loss(mdp: MDP, model: LossModel) -> FloatArray | None:
    """The model's prediction, validated like any loss."""
    prediction = model.predict()
    return None if prediction is None else as_loss(mdp, prediction, name="the model's prediction")
