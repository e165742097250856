"""What a report needs beyond the priced motion, found by looking at some losses again.

Three things need the losses themselves: the plans of the dearest rounds, the map of where the price is
paid, and the losses around the dearest crossing, through which the fan is sliced. Only some rounds are
looked at: the dearest ones, until they carry `SHARE` of the price or the work reaches its budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import TieRule
from normalfan.pricing.crossing import price
from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_stream, rounds_of
from normalfan.problem.mdp import MDP
from normalfan.report.plans import PlanChange, plan_change

SHARE = 0.99
LISTED = 50
MOST_ATTRIBUTED = 500

CELLS = 10_000_000
"""How many (step, state, action) cells each part of the work may visit: about a second."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The dearest rounds looked at again."""

    changes: dict[int, PlanChange]  # by round, dearest first
    attribution: FloatArray  # [H, S]  summed over `attributed` rounds
    attributed: int
    attributed_price: float
    centre: int  # the dearest round, or where the loss moved furthest; 0: nothing moved
    around: dict[int, FloatArray]  # the losses [H, S, A] of the rounds around it, in order


def look_again(mdp: MDP, losses: Any, motion: PricedMotion, ties: TieRule) -> Findings:
    stream = as_stream(losses)
    n_rounds, n_cells = len(motion.prices), math.prod(mdp.shape)
    if stream.n_rounds not in (None, n_rounds):
        raise InputError(
            f"losses hold {stream.n_rounds} rounds, but {n_rounds} were priced: pass the losses that "
            f"the motion was priced with."
        )
    affordable = min(MOST_ATTRIBUTED, max(LISTED, CELLS // n_cells))
    attributed = most_expensive(motion.prices, share=SHARE, at_most=affordable)
    listed = set(attributed[:LISTED])
    centre = _centre(motion)
    reach = min(12, max(1, CELLS // (8 * n_cells)))
    nearby = range(max(centre - reach, 0), min(centre + reach, n_rounds - 1) + 1)

    changes: dict[int, PlanChange] = {}
    around: dict[int, FloatArray] = {}
    paid = np.zeros(mdp.shape[:2])
    carrying = set(attributed)
    wanted = carrying | {t for t in nearby if t > 0}
    for t in sorted(wanted):
        previous, loss = next(rounds_of(stream, t - 1, t + 1).blocks(mdp.shape, 2))
        if t in carrying:
            crossing = price(optimal_face(mdp, previous, ties=ties), loss, ties=ties)
            paid += crossing.attribution.sum(axis=2)
            if t in listed:
                changes[t] = plan_change(mdp, crossing, loss, ties=ties)
        for near, held in ((t - 1, previous), (t, loss)):
            if near in nearby:
                around[near] = np.array(held)
    return Findings(
        changes={t: changes[t] for t in attributed[:LISTED]},
        attribution=paid,
        attributed=len(attributed),
        attributed_price=math.fsum(motion.prices[attributed]),
        centre=centre,
        around=around,
    )


def most_expensive(prices: FloatArray, *, share: float, at_most: int) -> list[int]:
    """The fewest rounds that carry `share` of the total price, dearest first; equal prices by time.

    >>> most_expensive(np.array([0.0, 1.0, 7.0, 2.0]), share=0.9, at_most=5)
    [2, 3]
    """
    order = np.argsort(-prices, kind="stable")
    paid = np.cumsum(prices[order])
    enough = int(np.searchsorted(paid, share * paid[-1])) + 1
    return [int(t) for t in order[: min(enough, at_most)] if prices[t] > 0]


def _centre(motion: PricedMotion) -> int:
    """The dearest round; if none was priced, the one before which the loss moved furthest; 0: none did."""
    return int((motion.prices if motion.prices.any() else motion.variation("l2")).argmax())
