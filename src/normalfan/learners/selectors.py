"""The tracker, which plays on the optimal face of the last loss, and the selectors of its point there.

Its dynamic regret splits exactly (Theorem "Exact face-regret decomposition"), r_t = Γ_t + ε_t for every round
after the first: the price of the crossing, which the losses alone decide, and the error of its selector.
A point is given as a policy [H, S, A] on the actions that the face's plan keeps, also where the face never
is: that matters when the coming loss forbids what was kept (docs/details/forbidden.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import (
    as_deterministic_policy,
    check_sums,
    restricted_backup,
    uniform_policy,
)
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import AnyModel, Described, own_model, predicted_loss
from normalfan.pricing.crossing import price
from normalfan.pricing.kernels import whole_problem
from normalfan.problem.arrays import FloatArray, IntArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class Selector(Protocol):
    """Chooses a point of a face. One selector serves one tracker: it may remember what it saw.

    With a method `foresee(loss)` it is shown the coming loss before it chooses, as `Oracle` is.

    Examples
    --------
    >>> face = Face(MDP([[0, 0, 0]], initial=0, horizon=1), [[[False, True, True]]])
    >>> Lexicographic().select(face, previous=[[[1.0, 0.0, 0.0]]])
    array([[[0., 1., 0.]]])
    """

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        """A policy [H, S, A] of the optimal face of the last loss; `previous` is the one just played."""

    def observe(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round just played, whose optimal face comes next."""


class _Memoryless(Described):
    def observe(self, loss: FloatArray) -> None:
        """Nothing is remembered."""


class Lexicographic(_Memoryless):
    """The lowest kept action at every state: a fixed tie-break that looks at no loss.

    Examples
    --------
    >>> everything = Face(MDP([[0, 0]], initial=0, horizon=1), [[[True, True]]])
    >>> Lexicographic().select(everything, previous=[[[0.0, 1.0]]])
    array([[[1., 0.]]])
    """

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        return first_vertex(face)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomVertex(_Memoryless):
    """One kept action at every state of the face, all equally likely, drawn again in each round.

    Not uniform over *vertices*: those that reach few states are drawn more often. The mean occupancy, and so
    the mean error, is that of the uniform policy on the kept actions, as for `RandomPoint`.

    Examples
    --------
    >>> everything = Face(MDP([[0, 0]], initial=0, horizon=1), [[[True, True]]])
    >>> RandomVertex(rng=np.random.default_rng(0)).select(everything, previous=[[[0.0, 1.0]]])
    array([[[1., 0.]]])
    """

    rng: np.random.Generator  # what it draws from

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        tickets = np.where(face.plan, self.rng.random(face.mask.shape), -1.0)
        return _with_plan(face, np.where(face.plan.any(axis=2), tickets.argmax(axis=2), -1))


@dataclass(kw_only=True, eq=False, repr=False)
class RandomPoint(_Memoryless):
    """A distribution over the kept actions at every state of the face, drawn again in each round.

    It is drawn uniformly from the simplex (a flat Dirichlet), which is not uniform by volume in the face.

    Examples
    --------
    >>> everything = Face(MDP([[0, 0]], initial=0, horizon=1), [[[True, True]]])
    >>> RandomPoint(rng=np.random.default_rng(0)).select(everything, previous=[[[0.0, 1.0]]]).round(2)
    array([[[0.4, 0.6]]])
    """

    rng: np.random.Generator  # what it draws from

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        # Exponential variables divided by their sum are uniform on the simplex.
        return policy_from_weights(face, self.rng.standard_exponential(face.mask.shape))


@dataclass(kw_only=True, eq=False, repr=False)
class Oracle(Described):
    """The best point of the face under the coming loss, which it is shown: no selection error.

    Examples
    --------
    >>> oracle = Oracle()
    >>> oracle.foresee([[[2.0, 1.0]]])
    >>> everything = Face(MDP([[0, 0]], initial=0, horizon=1), [[[True, True]]])
    >>> oracle.select(everything, previous=[[[1.0, 0.0]]])
    array([[[0., 1.]]])
    """

    ties: TieRule = DEFAULT_TIES  # which actions count as equally good under it
    _coming: FloatArray | None = field(default=None, init=False)

    def foresee(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round about to be played; called before `select`."""
        self._coming = loss

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        if self._coming is None:
            raise InputError(
                "the oracle was not shown the coming loss, but chooses by nothing else: "
                "call foresee(loss) before each choice, as run does."
            )
        return price(face, self._coming, ties=self.ties).policy

    def observe(self, loss: FloatArray) -> None:
        self._coming = None


class Predictive(Described):
    """The best point of the face under a model's prediction; without one, the lowest kept actions.

    Predicting m for the coming loss ℓ it loses at most diam(F) · ‖m − ℓ‖, in dual norms, against the best
    point of the face F (Proposition "Predictive selection"). Under the last loss every point of F is equally
    good: predicting by it *is* the lexicographic tie-break, and only a model that knows more is of use.

    Parameters
    ----------
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.
    ties : TieRule

    Examples
    --------
    >>> selector = Predictive(None)
    >>> selector.observe([[[3.0, 0.0]]])
    >>> everything = Face(MDP([[0, 0]], initial=0, horizon=1), [[[True, True]]])
    >>> selector.select(everything, previous=[[[1.0, 0.0]]])
    array([[[0., 1.]]])
    """

    def __init__(self, model: AnyModel, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.model = own_model(model)
        self.ties = ties

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        costs = self._costs(face)
        _, actions = restricted_backup(face.mdp, face.mask_under(costs), costs)
        return _with_plan(face, actions)

    def observe(self, loss: FloatArray) -> None:
        self.model.update(loss)

    def _costs(self, face: Face) -> FloatArray:
        """Settled advantages [H, S, A] of the prediction: rounding cannot break their ties. Else all 0."""
        from normalfan._kernels.accounting import settle

        prediction = predicted_loss(face.mdp, self.model)
        if prediction is None:
            return np.zeros(face.mask.shape)
        _, advantages, tied = settle(whole_problem(face.mdp), prediction, self.ties.rule(face.mdp))
        return np.where(tied, 0.0, advantages)


class FaceTracker(Described):
    """Plays on the optimal face of the last loss, at the point that its selector chooses.

    In round 0, before any loss, it plays the uniform policy. It has `foresee` if its selector has.

    Parameters
    ----------
    mdp : MDP
    selector : Selector or None
        For this tracker only; None is `Lexicographic()`: any better choice needs a parameter of the user's.
    ties : TieRule

    Examples
    --------
    >>> tracker = FaceTracker(MDP([[0, 0]], initial=0, horizon=1))
    >>> tracker.observe(0, [[[1.0, 0.0]]])
    >>> tracker.act(1)
    array([[[0., 1.]]])
    """

    foresee: Callable[[FloatArray], None]  # of clairvoyant selectors only

    def __init__(self, mdp: MDP, selector: Selector | None = None, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.mdp = mdp
        self.selector: Selector = Lexicographic() if selector is None else selector
        self.ties = ties
        self.face: Face | None = None  # of the last loss
        self._play = read_only(uniform_policy(mdp))
        self._moved = False  # the face is newer than the play
        if hasattr(self.selector, "foresee"):
            self.foresee = self.selector.foresee

    def act(self, round: int) -> FloatArray:
        # The selector is asked once a round: a random one must not draw again within it.
        if self._moved and self.face is not None:
            self._play = read_only(self.selector.select(self.face, self._play))
            self._moved = False
        return self._play

    def move(self, mdp: MDP) -> None:
        """Go on in other dynamics: its plan, at every state what was optimal, stays what it is."""
        self.mdp = mdp
        self.face = None if self.face is None else self.face.under(mdp)

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        from normalfan._kernels.accounting import settle

        seen = as_loss(self.mdp, loss)
        values, _, tied = settle(whole_problem(self.mdp), seen, self.ties.rule(self.mdp))
        check_sums(values)
        self.face = Face(self.mdp, tied)
        self.selector.observe(seen)
        self._moved = True


def first_vertex(face: Face) -> FloatArray:
    """The lexicographically first vertex of a face, as a policy [H, S, A]."""
    return _with_plan(face, np.full(face.mdp.shape[:2], -1))


def _with_plan(face: Face, actions: IntArray) -> FloatArray:
    """The policy of these actions [H, S]; where one is -1, the first that the plan keeps."""
    first = np.where(face.plan.any(axis=2), face.plan.argmax(axis=2), -1)
    return as_deterministic_policy(face.mdp, np.where(actions >= 0, actions, first))


def policy_from_weights(face: Face, weights: FloatArray) -> FloatArray:
    """Weights [H, S, A] on the kept actions, normalised; uniform over them where all weigh nothing."""
    kept = np.where(face.plan, weights, 0.0)
    total = kept.sum(axis=2, keepdims=True)
    kept = np.where((total == 0.0) & face.plan, 1.0, kept)
    total = kept.sum(axis=2, keepdims=True)
    return np.where(total == 0.0, uniform_policy(face.mdp), kept / np.where(total == 0.0, 1.0, total))
