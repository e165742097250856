"""The costliest rounds as a table: what each cost, where, and what changed in the plan.

Of the plans that were optimal in the round before, the *old plan* is the cheapest under the new loss: it pays
exactly the price. Of the plans that are optimal now, the *new plan* departs from it least, in expected number
of steps: one backup on the new face whose cost is 1 for each action that is not the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.attribution import CostliestCell, costliest_cell, shortest_named
from normalfan.pricing.crossing import Crossing
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.summary import ranks_from_largest
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.text import amount, number, percent

MOST_STEPS = 48  # longer plans are listed only at steps that differ or pay, this many at most


@dataclass(frozen=True, slots=True)
class Move:
    """The most probable state of a plan at a step, and its action there (see `shortest_named`)."""

    state: int
    action: int
    probability: float  # of being in that state
    text: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of the old and of the new plan."""

    step: str
    old: Move
    new: Move
    paid: float  # the part of the price that the old plan pays at this step

    @property
    def differs(self) -> bool:
        return self.old.action != self.new.action


@dataclass(frozen=True, slots=True, eq=False)
class PlanChange:
    """A crossing as two plans side by side."""

    steps: tuple[PlanStep, ...]  # [H]
    cell: CostliestCell | None


def plan_change(
    mdp: MDP, crossing: Crossing, loss: FloatArray, *, ties: TieRule = DEFAULT_TIES
) -> PlanChange:
    """The plan that pays the price of `crossing`, and the one that is optimal under its `loss` [H, S, A]."""
    departs = np.where(crossing.policy == 1.0, 0.0, 1.0)
    _, kept = optimal_face(mdp, loss, ties=ties).minimise(departs)
    plans = zip(_likely_moves(mdp, crossing.policy, loss), _likely_moves(mdp, kept, loss), strict=True)
    paid = crossing.by_step.tolist()
    return PlanChange(
        steps=tuple(PlanStep(mdp.labels.step(h), *moves, paid[h]) for h, moves in enumerate(plans)),
        cell=costliest_cell(mdp, crossing, loss, ties=ties),
    )


def _likely_moves(mdp: MDP, policy: FloatArray, loss: FloatArray) -> list[Move]:
    visits = occupancy(mdp, policy)
    moves = []
    for h, s in enumerate(visits.sum(axis=2).argmax(axis=1).tolist()):
        action = shortest_named(mdp, loss, h, s, int(visits[h, s].argmax()))
        probability = float(visits[h, s].sum())
        sure = "" if probability > 0.995 else f" ({percent(probability)})"
        text = f"{mdp.labels.action(action)} at {mdp.labels.state(s)}{sure}"
        moves.append(Move(s, action, probability, text))
    return moves


@dataclass(frozen=True, slots=True)
class Row:
    """One round: numbers as they are read and as they are sorted."""

    round: int
    name: str
    numbers: tuple[tuple[str, float], ...]  # price, its share of total and value, variation, its rank
    where: str
    plan: tuple[PlanStep, ...]
    steps_left_out: int


def rows_of(
    motion: PricedMotion, variation: FloatArray, changes: Mapping[int, PlanChange], unit: str
) -> list[Row]:
    ranks = ranks_from_largest(variation)
    rows = []
    for t, change in changes.items():
        price, size = float(motion.prices[t]), abs(float(motion.values[t]))
        plan = _worth_listing(change.steps)
        numbers = (
            (amount(price, unit), price),
            (percent(price / motion.total), price),
            (percent(price / size) if size else "–", price / size if size else np.inf),
            (number(float(variation[t])), float(variation[t])),
            (f"{ranks[t]:,}", int(ranks[t])),
        )
        left_out = len(change.steps) - len(plan)
        cell = change.cell
        where = "a near-tie" if cell is None else f"{cell.step}, {cell.state}: {cell.action}"
        rows.append(Row(t, motion.round_name(t), numbers, where, plan, left_out))
    return rows


def _worth_listing(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    if len(steps) <= MOST_STEPS:
        return steps
    relevant = [h for h, step in enumerate(steps) if step.differs or step.paid > 0]
    costliest = sorted(relevant, key=lambda h: -steps[h].paid)[:MOST_STEPS]
    return tuple(steps[h] for h in sorted(costliest))
