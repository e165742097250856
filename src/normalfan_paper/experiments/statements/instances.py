"""Random small problems on which a statement can be checked by listing everything.

They are made of small integers, so that ties are common and rationals stay short, and they are full of
corners: one step, one state, one action, states that nothing reaches, several starts, and (one time in
three) no chance at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from normalfan.geometry.bellman import uniform_policy
from normalfan.geometry.face import Face, optimal_face, whole_polytope
from normalfan.learners.selectors import RandomPoint, RandomVertex
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

LARGEST = 3
"""Steps, states and actions are drawn from 1 to this."""

LISTED = 1000
"""Problems with more deterministic policies are passed over, so that all of them can be gone through."""

SEED = 20260629


class Case(NamedTuple):
    """A problem, the previous loss and the new one, both of small whole numbers."""

    instance: int
    mdp: MDP
    previous: FloatArray  # [H, S, A]
    loss: FloatArray  # [H, S, A]
    rng: np.random.Generator  # the instance's own


def cases(claim: str, count: int, *, degenerate: bool = False) -> Iterator[Case]:
    """`count` cases, different for every claim and the same in every run.

    With `degenerate` only those whose previous optimal face is more than a vertex.
    """
    key = [SEED, *claim.encode()]
    found, draw = 0, 0
    while found < count:
        rng = np.random.default_rng(np.random.SeedSequence([*key, draw]))
        draw += 1
        mdp = random_problem(rng)
        if whole_polytope(mdp).n_policies > LISTED:
            continue
        previous, loss = random_losses(mdp, rng)
        if degenerate and optimal_face(mdp, previous).is_vertex:
            continue
        yield Case(found, mdp, previous, loss, rng)
        found += 1


def random_problem(rng: np.random.Generator) -> MDP:
    """A problem of at most `LARGEST` steps, states and actions."""
    horizon, n_states, n_actions = (int(n) for n in rng.integers(1, LARGEST + 1, size=3))
    successors = 1 if rng.random() < 1 / 3 else int(rng.integers(1, n_states + 1))
    weights = np.zeros((horizon, n_states, n_actions, n_states))
    for row in weights.reshape(-1, n_states):
        row[rng.choice(n_states, size=successors, replace=False)] = rng.integers(1, 4, successors)
    start = np.zeros(n_states)
    start[rng.choice(n_states, size=int(rng.integers(1, n_states + 1)), replace=False)] = 1.0
    start *= rng.integers(1, 3, n_states)
    return MDP(weights / weights.sum(axis=-1, keepdims=True), start / start.sum())


def random_losses(mdp: MDP, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two losses of few different values; one time in three the second hardly differs."""
    top = int(rng.integers(1, 4))
    previous, loss = rng.integers(-1, top, size=(2, *mdp.shape)).astype(float)
    if rng.random() < 1 / 3:
        loss = previous * float(rng.integers(1, 3))
        loss.reshape(-1)[rng.integers(loss.size)] += float(rng.integers(-1, 2))
    return previous, loss


def random_policy_on(face: Face, rng: np.random.Generator) -> FloatArray:
    """A policy [H, S, A] that stays on the face: now a vertex, now an interior point."""
    selector = RandomVertex(rng=rng) if rng.random() < 0.5 else RandomPoint(rng=rng)
    return selector.select(face, uniform_policy(face.mdp))


def random_policy(mdp: MDP, rng: np.random.Generator) -> FloatArray:
    """Any policy [H, S, A]."""
    return random_policy_on(whole_polytope(mdp), rng)
