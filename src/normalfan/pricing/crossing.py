"""The price of one crossing.

Holding a face F under a loss ℓ costs at least

    Γ = min_{u ∈ F} ⟨u, ℓ⟩ − min_q ⟨q, ℓ⟩ = ρ·W_1,
    W_h(s) = min over a in F's mask at (h,s) of  A_h(s,a) + E[W_{h+1}(s')],

where A are the optimal advantages of ℓ. It is computed in this form, a sum of non-negative terms, and
not as a difference of two large values. The minimiser's occupancy u shows where it is paid:
Γ = Σ_{h,s,a} u_h(s,a) A_h(s,a).

An advantage that the tie rule counts as none is none here too, hence Γ = 0 exactly when F meets the
optimal face of ℓ.

    >>> mdp = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)       # three arms
    >>> yesterday = optimal_face(mdp, np.array([[[0.0, 1.0, 2.0]]]))
    >>> price(yesterday, np.array([[[3.0, 1.0, 2.0]]])).price
    2.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.geometry.bellman import (
    as_deterministic_policy,
    occupancy,
    optimal_backup,
    restricted_backup,
)
from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """What holding a face costs under a loss, and where."""

    price: float
    value: float  # J*, the best expected loss of any policy
    attribution: FloatArray  # [H, S, A], sums to the price
    policy: FloatArray  # [H, S, A], the cheapest policy of the old face

    @property
    def by_step(self) -> FloatArray:
        """[H]: the part of the price paid at each step."""
        paid: FloatArray = self.attribution.sum(axis=(1, 2))
        return paid


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """How much of a round hangs on the reading of near-ties."""

    ambiguous: bool
    lowest_price: float
    highest_price: float


def price(face: Face, loss: Any, *, ties: TieRule = DEFAULT_TIES) -> Crossing:
    """The least regret, under `loss`, of staying on `face`."""
    mdp = face.mdp
    backup = optimal_backup(mdp, as_loss(mdp, loss))
    advantages = backup.settled(mdp, ties)
    values, actions = restricted_backup(mdp, face.mask, advantages)
    policy = as_deterministic_policy(mdp, actions)
    return Crossing(
        price=float(mdp.initial @ values[0]),
        value=backup.value(mdp),
        attribution=read_only(occupancy(mdp, policy) * advantages),
        policy=read_only(policy),
    )


def ambiguity(mdp: MDP, previous: Any, loss: Any, *, ties: TieRule = DEFAULT_TIES) -> Ambiguity:
    """Read the near-ties of both rounds strictly and loosely; compare faces and prices.

    A looser reading of the previous loss keeps more of the old face and a looser reading of the new
    one forgives more, so the loose price is the lowest and the strict one the highest.
    """
    readings = (ties.strict(), ties.loose())
    old = [optimal_face(mdp, previous, ties=reading) for reading in readings]
    new = [optimal_face(mdp, loss, ties=reading) for reading in readings]
    strict, loose = (price(f, loss, ties=reading).price for f, reading in zip(old, readings, strict=True))
    return Ambiguity(
        ambiguous=not (np.array_equal(old[0].mask, old[1].mask) and np.array_equal(new[0].mask, new[1].mask)),
        lowest_price=loose,
        highest_price=strict,
    )
