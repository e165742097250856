"""The price of yesterday's plan, if that is any Markov policy that was optimal: exact, and exponential.

Such a policy does what a vertex of yesterday's optimal face does where that goes, and anything elsewhere; the
cheapest one has a vertex of its own. For each vertex one restricted backup is enough, but the vertices must
be listed: the problem is NP-hard (`normalfan_paper.environments.moving_dynamics.satisfiability`).
"""

from __future__ import annotations

import numpy.typing as npt

from normalfan.geometry.bellman import optimal_backup, restricted_backup
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


def optimal_price(
    before: MDP,
    previous_loss: npt.ArrayLike,
    after: MDP,
    loss: npt.ArrayLike,
    *,
    ties: TieRule = DEFAULT_TIES,
    limit: int = 10_000,
) -> float:
    """The least regret today of a policy that was optimal yesterday; it lists up to `limit` vertices."""
    backup = optimal_backup(after, as_loss(after, loss))
    advantages = backup.settled(after, ties)
    prices = []
    for visits in optimal_face(before, previous_loss, ties=ties).vertices(limit):
        bound = visits > 0
        mask = bound | ~bound.any(axis=2, keepdims=True)
        values, _ = restricted_backup(after, mask, advantages)
        prices.append(float(after.initial @ values[0]))
    return min(prices)
