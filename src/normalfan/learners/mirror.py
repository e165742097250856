"""Mirror descent with entropy, plain and optimistic, which on one state is Hedge; and the Euclidean one.

With Q^{π_t} the values of the played policy under the observed loss, the step

    argmin over π of Σ_{h,s} [ η_t ⟨π(·|s), Q^{π_t}(s,·)⟩ + KL(π(·|s) ‖ π_t(·|s)) ]

linearises J_t at π_t and leaves the visiting probabilities of the states out of both terms, so that rarely
visited states learn as fast as the others. Each loss is weighed by the step size of its own round. Policies
are stored as logs, exact even where π has underflowed to 0: what was unlearned can be learned again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_policy
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import (
    DEFAULT_ETA,
    Described,
    StepSize,
    check_floor,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray, check_finite, read_numbers, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class MirrorDescent(Described):
    """Exponential weights on the values of the played policy, at every step and state.

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η_t Q^{π_t}(s,a)), from the uniform policy.

    Parameters
    ----------
    mdp : MDP
    eta : float or callable
        The step size η > 0, or a function that gives it for each round.
    floor : float
        In [0, 1/A): no action becomes less likely than this.

    Examples
    --------
    >>> learner = MirrorDescent(MDP([[0, 1], [1, 1]], initial=0, horizon=2), eta=1.0)
    >>> learner.observe(0, [[[0, 0], [0, 0]], [[0, 0], [5, 5]]])     # the second state is costly at the end
    >>> learner.act(1)[0, 0].round(2)                                # so the first step avoids it
    array([0.99, 0.01])
    """

    one_state: ClassVar[bool] = False

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0) -> None:
        self.mdp = check_one_state(type(self).__name__, mdp) if self.one_state else mdp
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        self._logs = self._moved(self._costs(round, as_loss(self.mdp, loss)))

    def _costs(self, round: int, loss: FloatArray) -> FloatArray:
        """What the step charges each action, [H, S, A]: η_t Q^{π_t}."""
        return step_size(self.eta, round) * policy_backup(self.mdp, self.act(round), loss).q

    def _moved(self, costs: FloatArray) -> FloatArray:
        return with_floor(entropic_step(self._logs, costs), self.floor)


class OptimisticMirrorDescent(MirrorDescent):
    """Mirror descent that plays one step ahead, towards what its model expects.

    The two-step form of Rakhlin and Sridharan (2013). With m_t the model's prediction of ℓ_t, it::

        plays      π_t(a|s)     ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of g_t under m_t
        updates    g_{t+1}(a|s) ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of the play π_t under ℓ_t

    Parameters
    ----------
    mdp : MDP
    eta : float or callable
        The step size η > 0, or a function that gives it for each round.
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.
    floor : float
        In [0, 1/A): no action becomes less likely than this, neither in g_t nor in the play.

    Examples
    --------
    >>> learner = OptimisticMirrorDescent(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)                   # the loss counts twice: it was seen, and is expected again
    array([[[0.88, 0.12]]])
    """

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, model: AnyModel = None, floor: float = 0.0
    ) -> None:
        super().__init__(mdp, eta, floor=floor)
        self.model = own_model(model)
        self._played: tuple[int, FloatArray] | None = None  # the round, and its play

    def act(self, round: int) -> FloatArray:
        if self._played is None or self._played[0] != round:
            self._played = round, self._play(round)
        return self._played[1]

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        seen = as_loss(self.mdp, loss)
        super().observe(round, seen)
        self.model.update(seen)
        self._played = None

    def _play(self, round: int) -> FloatArray:
        secondary = probabilities(self._logs)
        expected = predicted_loss(self.mdp, self.model)
        if expected is None:
            return secondary
        q = policy_backup(self.mdp, secondary, expected).q
        return probabilities(self._moved(step_size(self.eta, round) * q))


class Hedge(MirrorDescent):
    """`MirrorDescent` on one state and step: w_{t+1}(a) ∝ w_t(a) exp(−η_t ℓ_t(a)). Same arguments.

    Examples
    --------
    >>> learner = Hedge(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.73, 0.27]]])
    """

    one_state = True


class OptimisticHedge(OptimisticMirrorDescent):
    """`OptimisticMirrorDescent` on one state and step: it plays ∝ w_t(a) exp(−η_t m_t(a)). Same arguments.

    Examples
    --------
    >>> learner = OptimisticHedge(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.88, 0.12]]])
    """

    one_state = True


class EuclideanMirrorDescent(Described):
    """Projected gradient descent over the actions of one state: x_{t+1} = Proj(x_t − η_t ℓ_t).

    That is the least η_t ⟨x, ℓ_t⟩ + ½‖x − x_t‖². It leaves the boundary again at once: it needs no floor.

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta : float or callable
        The step size η > 0, or a function that gives it for each round.

    Examples
    --------
    >>> learner = EuclideanMirrorDescent(MDP([[0, 0]], initial=0, horizon=1), eta=0.5)
    >>> learner.observe(0, [[[0.0, 0.5]]])
    >>> learner.act(1)
    array([[[0.625, 0.375]]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA) -> None:
        self.mdp = check_one_state("EuclideanMirrorDescent", mdp)
        self.eta = check_step_size(eta)
        self._play = read_only(np.full(mdp.shape, 1 / mdp.n_actions))

    def act(self, round: int) -> FloatArray:
        return self._play

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        moved = self._play - step_size(self.eta, round) * as_loss(self.mdp, loss)
        self._play = read_only(project_onto_simplex(moved.ravel()).reshape(self.mdp.shape))


def project_onto_simplex(point: npt.ArrayLike) -> FloatArray:
    """The distribution nearest to a point in Euclidean distance, exactly.

    Parameters
    ----------
    point : array_like [A]

    Returns
    -------
    array [A]

    Raises
    ------
    InputError
        If the point has no entry or more than one axis, or an entry is not finite.

    Examples
    --------
    >>> project_onto_simplex([0.75, 0.75, -2.0])
    array([0.5, 0.5, 0. ])
    """
    numbers = read_numbers("point", point)
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(
            f"point has shape {list(numbers.shape)}, but must be a vector with at least one entry: "
            f"project one distribution at a time."
        )
    check_finite("point", numbers)
    # It is max(y − θ, 0) for the one θ that makes it sum to 1; with y sorted downwards, θ is
    # (y_1 + … + y_k − 1) / k for the largest k with y_k > θ. Measured from its largest entry, what can be
    # kept lies within 1 of zero: no digits are lost.
    y = numbers.astype(np.float64) - numbers.max()
    descending = np.sort(y)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, y.size + 1)
    kept = np.flatnonzero(descending > thresholds)[-1]
    return np.asarray(np.maximum(y - thresholds[kept], 0.0))


# --- what a policy costs, from every state and action on


@dataclass(frozen=True, slots=True, eq=False)
class PolicyBackup:
    """The values of one policy under one loss: what `policy_backup` returns.

    Examples
    --------
    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> policy_backup(arms, [[[0.5, 0.5]]], [[[1.0, 2.0]]]).value(arms)
    1.5
    """

    values: FloatArray  # [H+1, S] V^π, the expected loss from a step and state on; the last row is 0
    q: FloatArray  # [H, S, A] Q^π, the same after a given first action

    def value(self, mdp: MDP) -> float:
        """J(π) = ρ·V_1, the expected loss of the policy from the start."""
        return float(mdp.initial @ self.values[0])


def policy_backup(mdp: MDP, policy: npt.ArrayLike, loss: npt.ArrayLike) -> PolicyBackup:
    """Evaluate a policy under a loss: Q_h = ℓ_h + E V_{h+1} and V_h(s) = Σ_a π_h(a|s) Q_h(s,a), backward.

    Parameters
    ----------
    mdp : MDP
    policy, loss : array_like [H, S, A]

    Returns
    -------
    PolicyBackup

    Raises
    ------
    InputError
        If an array has the wrong shape, the loss is not finite, or the policy is no distribution.

    Examples
    --------
    >>> arms = MDP([[0, 0]], initial=0, horizon=2)
    >>> policy_backup(arms, [[[0.5, 0.5]]] * 2, [[[1.0, 2.0]]] * 2).q[0]
    array([[2.5, 3.5]])
    """
    probability, cost = as_policy(mdp, policy), as_loss(mdp, loss)
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    q = np.empty(mdp.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q[h] = cost[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = (probability[h] * q[h]).sum(axis=1)
    return PolicyBackup(read_only(values), read_only(q))


# --- exponential weights, kept in logs; all act on the last axis


def uniform_logs(shape: tuple[int, ...]) -> FloatArray:
    """Log-probabilities of the uniform distribution."""
    return np.full(shape, -np.log(shape[-1]))


def entropic_step(logs: FloatArray, costs: FloatArray) -> FloatArray:
    """The logs of π'(a) ∝ π(a) exp(−c(a)).

    >>> moved = entropic_step(uniform_logs((2,)), np.array([0.0, 5000.0]))
    >>> np.exp(entropic_step(moved, np.array([5000.0, 0.0]))), np.exp(with_floor(moved, 0.125))
    (array([0.5, 0.5]), array([0.875, 0.125]))
    """
    # Costs count up to a constant: measured from the least, large ones leave log π its digits.
    return normalised(logs - (costs - costs.min(axis=-1, keepdims=True)))


def normalised(logs: FloatArray) -> FloatArray:
    """The logs of weights, shifted so that the weights sum to 1."""
    # In two shifts: one by log Σ exp at once would leave large logs a sum that is off in its digits.
    topped = logs - logs.max(axis=-1, keepdims=True)
    return np.asarray(topped - np.log(np.exp(topped).sum(axis=-1, keepdims=True)))


def with_floor(logs: FloatArray, floor: float) -> FloatArray:
    """log((1 − A·f) π + f): the policy mixed with the uniform one (see `options`)."""
    if floor == 0:
        return logs
    return np.asarray(np.logaddexp(logs + np.log1p(-logs.shape[-1] * floor), np.log(floor)))


def probabilities(logs: FloatArray) -> FloatArray:
    """The policy itself, read-only."""
    return read_only(np.exp(logs))
