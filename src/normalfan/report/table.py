"""The most expensive rounds, as rows of text: what each cost, where, and both plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import FloatArray
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP
from normalfan.report.plans import Move, PlanChange, PlanStep
from normalfan.text import amount, number, percent

MOST_STEPS = 48
"""Longer plans are listed at the steps that differ or pay, this many at most."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as it is read and as it is sorted."""

    text: str
    key: float


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One step of both plans, in words."""

    step: str
    old: str
    new: str
    paid: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One round."""

    round: int
    name: str
    price: Cell
    share: Cell  # of the total price
    relative: Cell  # price against the round's |value|
    variation: Cell
    rank: Cell  # of the round, when rounds are ordered by variation
    where: str
    plan: tuple[PlanLine, ...]
    steps_left_out: int


def rows_of(
    mdp: MDP,
    motion: PricedMotion,
    variation: FloatArray,
    changes: Mapping[int, PlanChange],
    names: Sequence[str] | None,
    unit: str,
) -> list[Row]:
    ranks = np.empty(len(variation), dtype=np.int64)
    ranks[np.argsort(-variation, kind="stable")] = np.arange(1, len(variation) + 1)
    total = motion.total
    rows = []
    for t, change in changes.items():
        price, size = float(motion.prices[t]), abs(float(motion.values[t]))
        h, s, a = change.dearest
        labels = mdp.labels
        lines = _worth_listing(change.steps)
        rows.append(
            Row(
                round=t,
                name=names[t] if names else str(t),
                price=Cell(amount(price, unit), price),
                share=Cell(percent(price / total), price),
                relative=Cell(percent(price / size) if size else "–", price / size if size else np.inf),
                variation=Cell(number(float(variation[t])), float(variation[t])),
                rank=Cell(f"{ranks[t]:,}", int(ranks[t])),
                where=f"{labels.step(h)}, {labels.state(s)}: {labels.action(a)}",
                plan=tuple(_line(labels, step, unit) for step in lines),
                steps_left_out=len(change.steps) - len(lines),
            )
        )
    return rows


def _worth_listing(steps: Sequence[PlanStep]) -> list[PlanStep]:
    if len(steps) <= MOST_STEPS:
        return list(steps)
    telling = [step for step in steps if step.differs or step.paid > 0]
    dearest = sorted(telling, key=lambda step: (-step.paid, step.step))[:MOST_STEPS]
    return sorted(dearest, key=lambda step: step.step)


def _line(labels: Labels, step: PlanStep, unit: str) -> PlanLine:
    return PlanLine(
        step=labels.step(step.step),
        old=_move(labels, step.old),
        new=_move(labels, step.new),
        paid=amount(step.paid, unit) if step.paid else "",
        differs=step.differs,
    )


def _move(labels: Labels, move: Move) -> str:
    sure = "" if move.probability > 0.995 else f" ({percent(move.probability)})"
    return f"{labels.action(move.action)} at {labels.state(move.state)}{sure}"
