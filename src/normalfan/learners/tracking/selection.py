"""Which point of a face? Selectors that need no model of the coming loss.

A tracker stands on the optimal face F of the last loss. If F is not a single vertex it still has to
choose one of its points, and what that choice loses is the *selection error*, the part of the regret
that no price accounts for. Whoever chooses is a `Selector`. Here are the three that look at the face
alone; those that look at a prediction are in `prediction`, those that remember their last choice in
`sticky`.

A point is handed over as a policy [H, S, A]: supported on kept actions where the face can be, uniform
elsewhere, where nothing depends on it.

Lexicographic takes the lowest kept action everywhere. The two random selectors differ in what they
draw and agree in the mean:

    RandomVertex   at each (h,s) of the face one kept action, all alike: a vertex. Not the uniform
                   distribution over *vertices*: a vertex is told by its actions at the states it
                   reaches, and those that reach few states come up in more of the equally probable
                   draws.
    RandomPoint    at each (h,s) of the face a distribution over the kept actions, drawn uniformly
                   from the simplex (a flat Dirichlet): an interior point. Not uniform by volume in F.

In both, actions at different (h,s) are drawn independently and are uniform on average, so the mean
occupancy is that of the uniform policy on the mask; losses being linear, their mean errors agree too.

    >>> from normalfan.geometry.face import optimal_face
    >>> from normalfan.problem.mdp import MDP
    >>> arms = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    >>> face = optimal_face(arms, np.array([[[5.0, 1.0, 1.0]]]))
    >>> Lexicographic().select(face, uniform_policy(arms))
    array([[[0., 1., 0.]]])
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from normalfan.geometry.bellman import as_deterministic_policy
from normalfan.geometry.face import Face
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


class Selector(Protocol):
    """Chooses a point of a face. One selector serves one tracker: it may remember what it saw."""

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        """A policy [H, S, A] on the face; `previous` is the policy played in the last round."""
        ...

    def observe(self, loss: FloatArray) -> None:
        """The loss [H, S, A] of the round just played, the one that exposes the next face."""
        ...


@runtime_checkable
class ClairvoyantSelector(Selector, Protocol):
    """A selector that must see the coming loss before it chooses; its tracker is `Clairvoyant` too."""

    def foresee(self, loss: FloatArray) -> None:
        """The loss [H, S, A] of the round about to be played; called before `select`."""
        ...


class Lexicographic:
    """The lowest kept action at every state: a fixed tie-break that looks at no loss."""

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        return first_vertex(face)

    def observe(self, loss: FloatArray) -> None:
        """Nothing is remembered."""


class RandomVertex:
    """A kept action at every (h,s) of the face, drawn uniformly and afresh each round."""

    def __init__(self, *, rng: np.random.Generator) -> None:
        self.rng = rng

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        tickets = np.where(face.mask, self.rng.random(face.mask.shape), -1.0)
        return as_deterministic_policy(face.mdp, np.where(face.reached, tickets.argmax(axis=2), -1))

    def observe(self, loss: FloatArray) -> None:
        """Nothing is remembered."""


class RandomPoint:
    """A flat Dirichlet over the kept actions at every (h,s) of the face, drawn afresh each round."""

    def __init__(self, *, rng: np.random.Generator) -> None:
        self.rng = rng

    def select(self, face: Face, previous: FloatArray) -> FloatArray:
        # Exponential variables divided by their sum are uniform on the simplex.
        return policy_from_weights(face, self.rng.standard_exponential(face.mask.shape))

    def observe(self, loss: FloatArray) -> None:
        """Nothing is remembered."""


def first_vertex(face: Face) -> FloatArray:
    """The lexicographically first vertex of a face, as a policy [H, S, A]."""
    return as_deterministic_policy(face.mdp, np.where(face.reached, face.mask.argmax(axis=2), -1))


def uniform_policy(mdp: MDP) -> FloatArray:
    """All actions alike, everywhere: [H, S, A]."""
    return np.full(mdp.shape, 1.0 / mdp.n_actions)


def policy_from_weights(face: Face, weights: FloatArray) -> FloatArray:
    """Weights [H, S, A] on the kept actions, normalised; uniform over them where all weigh nothing."""
    kept = np.where(face.mask, weights, 0.0)
    total = kept.sum(axis=2, keepdims=True)
    kept = np.where((total == 0.0) & face.mask, 1.0, kept)
    kept[~face.reached] = 1.0
    policy: FloatArray = kept / kept.sum(axis=2, keepdims=True)
    return policy
