"""Where in the plan the price of a whole stream is paid, found by reading some losses again.

Three parts of a page need the losses: the plans of the costliest rounds, the map of steps and states at which
the price is paid, and the losses around the costliest crossing, through which the fan is sliced. Only the
costliest rounds are read, until they carry `SHARE` of the price or the work reaches its limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import TieRule
from normalfan.pricing.crossing import price
from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import FloatArray
from normalfan.problem.labels import Labels
from normalfan.problem.losses import Losses, as_stream, rounds_of
from normalfan.problem.mdp import MDP
from normalfan.report.fan import MOST_CELLS
from normalfan.report.table import PlanChange, plan_change

SHARE = 0.99
LISTED = 50
MOST_ATTRIBUTED = 500
MOST_STEPS, MOST_STATES = 240, 60


@dataclass(frozen=True, slots=True, eq=False)
class CostliestRounds:
    """The costliest rounds, read again."""

    changes: dict[int, PlanChange]  # by round, costliest first
    attribution: FloatArray  # [H, S]  summed over `attributed` rounds
    attributed: int
    attributed_price: float
    centre: int  # the costliest round, or where the loss moved furthest; 0: nothing moved
    around: dict[int, FloatArray]  # the losses [H, S, A] of the rounds around it, in order


@dataclass(frozen=True, slots=True, eq=False)
class AttributionMap:
    """What was paid at each step in each state; a large problem is folded until it can be read."""

    paid: FloatArray  # [states, steps]
    by_step: FloatArray  # [steps]  of the whole stream, also of rounds that are not in the map
    steps: tuple[str, ...]
    states: tuple[str, ...]
    states_left_out: int
    shown: float  # the part of the map's total that lies in the states shown


def read_costliest(mdp: MDP, losses: Losses, motion: PricedMotion, ties: TieRule) -> CostliestRounds:
    stream = as_stream(losses)
    n_rounds, n_cells = len(motion.prices), math.prod(mdp.shape)
    if stream.n_rounds not in (None, n_rounds):
        raise InputError(
            f"losses hold {stream.n_rounds} rounds, but {n_rounds} were priced: pass the losses that "
            f"were priced."
        )
    affordable = min(MOST_ATTRIBUTED, max(LISTED, MOST_CELLS // n_cells))
    attributed = most_expensive(motion.prices, share=SHARE, at_most=affordable)
    listed = set(attributed[:LISTED])
    # The costliest round; if none was priced, the one before which the loss moved furthest.
    centre = int((motion.prices if motion.prices.any() else motion.variation("l2")).argmax())
    reach = min(12, max(1, MOST_CELLS // (8 * n_cells)))
    nearby = range(max(centre - reach, 0), min(centre + reach, n_rounds - 1) + 1)

    changes: dict[int, PlanChange] = {}
    around: dict[int, FloatArray] = {}
    paid = np.zeros(mdp.shape[:2])
    carrying = set(attributed)
    for t in sorted(carrying | {t for t in nearby if t > 0}):
        previous, loss = next(rounds_of(stream, t - 1, t + 1).blocks(mdp.shape, 2))
        if t in carrying:
            crossing = price(optimal_face(mdp, previous, ties=ties), loss, ties=ties)
            paid += crossing.attribution.sum(axis=2)
            if t in listed:
                changes[t] = plan_change(mdp, crossing, loss, ties=ties)
        for near, read in ((t - 1, previous), (t, loss)):
            if near in nearby:
                around[near] = np.array(read)
    return CostliestRounds(
        changes={t: changes[t] for t in attributed[:LISTED]},
        attribution=paid,
        attributed=len(attributed),
        attributed_price=math.fsum(motion.prices[attributed]),
        centre=centre,
        around=around,
    )


def most_expensive(prices: FloatArray, *, share: float, at_most: int) -> list[int]:
    """The fewest rounds that carry `share` of the total price, costliest first; equal prices by time.

    >>> most_expensive(np.array([0.0, 1.0, 7.0, 2.0]), share=0.9, at_most=5)
    [2, 3]
    """
    order = np.argsort(-prices, kind="stable")
    paid = np.cumsum(prices[order])
    enough = int(np.searchsorted(paid, share * paid[-1])) + 1
    return [int(t) for t in order[: min(enough, at_most)] if prices[t] > 0]


def fold(attribution: FloatArray, by_step: FloatArray, labels: Labels) -> AttributionMap:
    """A map of `attribution` [H, S] and `by_step` [H]; steps are joined, states that pay most kept."""
    horizon, n_states = attribution.shape
    starts = np.unique(np.linspace(0, horizon, min(horizon, MOST_STEPS), endpoint=False).astype(np.int64))
    ends = np.append(starts[1:], horizon)
    by_state = attribution.sum(axis=0)
    kept = np.sort(np.argsort(-by_state, kind="stable")[:MOST_STATES])
    total = by_state.sum()

    def span(first: int, last: int) -> str:
        return labels.step(first) if first == last else f"{labels.step(first)} – {labels.step(last)}"

    return AttributionMap(
        paid=np.add.reduceat(attribution[:, kept], starts, axis=0).T,
        by_step=np.add.reduceat(by_step, starts),
        steps=tuple(span(int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)),
        states=tuple(labels.state(int(s)) for s in kept),
        states_left_out=n_states - len(kept),
        shown=float(by_state[kept].sum() / total) if total else 1.0,
    )
