"""The tracker, which plays on the optimal face of the last loss, and the selectors of its point there.

Its dynamic regret splits exactly (Theorem "Exact face-regret decomposition"), r_t = Γ_t + ε_t for every round
after the first: the price of the crossing, which the losses alone decide, and the error of its selector.
A point is given as a policy [H, S, A], supported on kept actions where the face can be, and uniform
elsewhere, where nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, optimal_backup, restricted_backup
from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import Described, check_positive
from normalfan.pricing.crossing import price
from normalfan.problem.arrays import FloatArray, first_index, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP

# The paper names none; one in a hundred keeps every kept action within λ log(100 |kept|) of reach.
MIXING = 0.01


class Selector(Protocol):
    """Chooses a point of a face. One selector serves one tracker: it may remember what it saw.

    Examples
    --------
    >>> face = optimal_face(MDP([[0, 0, 0]], initial=0, horizon=1), [[[5.0, 1.0, 1.0]]])
    >>> Lexicographic().select(face, previous=[[[1.0, 0.0, 0.0]]])
    array([[[0., 1., 0.]]])
    """

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        """A policy [H, S, A] of the optimal face of the last loss; `previous` is the one just played."""

    def observe(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round just played, whose optimal face comes next."""


@runtime_checkable
class ClairvoyantSelector(Selector, Protocol):
    """A selector that must see the coming loss before it chooses; its tracker is `Clairvoyant` too."""

    def foresee(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round about to be played; called before `select`."""


class _Memoryless(Described):
    def observe(self, loss: FloatArray) -> None:
        """Nothing is remembered."""


class Lexicographic(_Memoryless):
    """The lowest kept action at every state: a fixed tie-break that looks at no loss.

    Examples
    --------
    >>> everything = optimal_face(MDP([[0, 0]], initial=0, horizon=1), [[[0.0, 0.0]]])
    >>> Lexicographic().select(everything, previous=[[[0.0, 1.0]]])
    array([[[1., 0.]]])
    """

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        return first_vertex(face)


class RandomVertex(_Memoryless):
    """One kept action at every state of the face, all equally likely, drawn again in each round.

    Not uniform over *vertices*: those that reach few states are drawn more often. The mean occupancy, and so
    the mean error, is that of the uniform policy on the kept actions, as for `RandomPoint`.

    Parameters
    ----------
    rng : numpy.random.Generator

    Examples
    --------
    >>> everything = optimal_face(MDP([[0, 0]], initial=0, horizon=1), [[[0.0, 0.0]]])
    >>> RandomVertex(rng=np.random.default_rng(0)).select(everything, previous=[[[0.0, 1.0]]])
    array([[[1., 0.]]])
    """

    def __init__(self, *, rng: np.random.Generator) -> None:
        self.rng = rng

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        tickets = np.where(face.mask, self.rng.random(face.mask.shape), -1.0)
        return as_deterministic_policy(face.mdp, np.where(face.reached, tickets.argmax(axis=2), -1))


class RandomPoint(_Memoryless):
    """A distribution over the kept actions at every state of the face, drawn again in each round.

    It is drawn uniformly from the simplex (a flat Dirichlet), which is not uniform by volume in the face.

    Parameters
    ----------
    rng : numpy.random.Generator

    Examples
    --------
    >>> everything = optimal_face(MDP([[0, 0]], initial=0, horizon=1), [[[0.0, 0.0]]])
    >>> RandomPoint(rng=np.random.default_rng(0)).select(everything, previous=[[[0.0, 1.0]]]).round(2)
    array([[[0.4, 0.6]]])
    """

    def __init__(self, *, rng: np.random.Generator) -> None:
        self.rng = rng

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        # Exponential variables divided by their sum are uniform on the simplex.
        return policy_from_weights(face, self.rng.standard_exponential(face.mask.shape))


class Oracle(Described):
    """The best point of the face under the coming loss, which it is shown: no selection error.

    Parameters
    ----------
    ties : TieRule

    Examples
    --------
    >>> oracle = Oracle()
    >>> oracle.foresee([[[2.0, 1.0]]])
    >>> everything = optimal_face(MDP([[0, 0]], initial=0, horizon=1), [[[0.0, 0.0]]])
    >>> oracle.select(everything, previous=[[[1.0, 0.0]]])
    array([[[0., 1.]]])
    """

    def __init__(self, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.ties = ties
        self._coming: FloatArray | None = None

    def foresee(self, loss: FloatArray) -> None:
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
    >>> everything = optimal_face(MDP([[0, 0]], initial=0, horizon=1), [[[0.0, 0.0]]])
    >>> selector.select(everything, previous=[[[1.0, 0.0]]])
    array([[[0., 1.]]])
    """

    def __init__(self, model: AnyModel, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.model = own_model(model)
        self.ties = ties

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        _, actions = restricted_backup(face.mdp, face.mask, self._costs(face))
        return as_deterministic_policy(face.mdp, actions)

    def observe(self, loss: FloatArray) -> None:
        self.model.update(loss)

    def _costs(self, face: Face) -> FloatArray:
        """Settled advantages [H, S, A] of the prediction: rounding cannot break their ties. Else all 0."""
        prediction = predicted_loss(face.mdp, self.model)
        if prediction is None:
            return np.zeros(face.mask.shape)
        return optimal_backup(face.mdp, prediction).settled(face.mdp, self.ties)


class StickyEntropy(Predictive):
    """The best point of the face under a prediction plus λ times the relative entropy from the last choice.

    With a prediction m and the last choice z: the u of least ⟨u, m⟩ + λ D(u, z), with D(u, z) =
    Σ_{h,s} u_h(s) KL(π_u ‖ π_z)(h,s), as docs/details/learners.md proves. D is infinite where π_z never takes
    an action of u, so the last play is mixed: π_z = (1 − mixing) · π_played + mixing · (uniform on kept).

    Parameters
    ----------
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.
    weight, mixing : float
        λ > 0, how strongly the last choice pulls, and the uniform policy's share in it, in (0, 1].
    ties : TieRule

    Examples
    --------
    >>> face = optimal_face(MDP([[0, 0, 0]], initial=0, horizon=1), [[[0.0, 0.0, 1.0]]])
    >>> selector = StickyEntropy(None, weight=1.0, mixing=0.2)
    >>> selector.select(face, previous=np.array([[[0.0, 0.5, 0.5]]])).round(3)
    array([[[0.167, 0.833, 0.   ]]])
    """

    def __init__(
        self, model: AnyModel, weight: float, *, mixing: float = MIXING, ties: TieRule = DEFAULT_TIES
    ) -> None:
        if not 0.0 < mixing <= 1.0:
            raise InputError(
                f"mixing is {mixing}, but must lie in (0, 1]: without any, a reference on the boundary "
                f"is infinitely far from every action it does not take; {MIXING} is the default."
            )
        super().__init__(model, ties=ties)
        self.weight = check_weight(weight)
        self.mixing = mixing

    def reference(self, face: Face, previous: FloatArray) -> FloatArray:
        """π_z [H, S, A]: the last policy, mixed with the uniform one over the kept actions."""
        kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
        share = self.mixing * face.reached[:, :, None]
        mixed: FloatArray = (1.0 - share) * previous + self.mixing * kept
        return mixed

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        _, policy = soft_backup(face, self._costs(face), self.reference(face, previous), self.weight)
        return policy


class FaceTracker(Described):
    """Plays on the optimal face of the last loss, at the point that its selector chooses.

    In round 0, before any loss, it plays the uniform policy. It is `Clairvoyant` if its selector is.

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
        if isinstance(self.selector, ClairvoyantSelector):
            self.foresee = self.selector.foresee

    def act(self, round: int) -> FloatArray:
        # The selector is asked once a round: a random one must not draw again within it.
        if self._moved and self.face is not None:
            self._play = read_only(self.selector.select(self.face, self._play))
            self._moved = False
        return self._play

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        seen = as_loss(self.mdp, loss)
        self.face = optimal_face(self.mdp, seen, ties=self.ties)
        self.selector.observe(seen)
        self._moved = True


def first_vertex(face: Face) -> FloatArray:
    """The lexicographically first vertex of a face, as a policy [H, S, A]."""
    return as_deterministic_policy(face.mdp, np.where(face.reached, face.mask.argmax(axis=2), -1))


def uniform_policy(mdp: MDP) -> FloatArray:
    """All actions equally likely, everywhere: [H, S, A]."""
    return np.full(mdp.shape, 1.0 / mdp.n_actions)


def policy_from_weights(face: Face, weights: FloatArray) -> FloatArray:
    """Weights [H, S, A] on the kept actions, normalised; uniform over them where all weigh nothing."""
    kept = np.where(face.mask, weights, 0.0)
    total = kept.sum(axis=2, keepdims=True)
    kept = np.where((total == 0.0) & face.mask, 1.0, kept)
    kept[~face.reached] = 1.0
    policy: FloatArray = kept / kept.sum(axis=2, keepdims=True)
    return policy


def check_weight(weight: float) -> float:
    return check_positive("weight", weight, remedy="for no pull at all use Predictive")


def soft_backup(
    face: Face, cost: FloatArray, reference: FloatArray, weight: float
) -> tuple[float, FloatArray]:
    """The least ⟨u, cost⟩ + weight · D(u, reference) over a face, and the policy [H, S, A] attaining it."""
    mdp, mask = face.mdp, face.mask
    kept = mask & (reference > 0.0)
    stranded = face.reached & ~kept.any(axis=2)
    if stranded.any():
        h, s = first_index(stranded)
        raise InputError(
            f"reference[{h}, {s}] gives no probability to any action that the face keeps there, so its "
            f"divergence is infinite: mix it with a little of the uniform policy."
        )
    with np.errstate(divide="ignore"):  # log 0 = −∞ is what an action never taken should have
        log_reference = np.log(np.where(kept, reference, 0.0))
    policy = np.full(mask.shape, 1.0 / mdp.n_actions)
    ahead = np.zeros(mdp.n_states)
    for h in range(mdp.horizon - 1, -1, -1):
        here = face.reached[h]
        scores = (log_reference[h] - (cost[h] + mdp.transitions.expect(h, ahead)) / weight)[here]
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True)
        policy[h, here] = weights / total
        ahead = np.zeros(mdp.n_states)
        ahead[here] = -weight * (top + np.log(total))[:, 0]
    return float(mdp.initial @ ahead), policy
