"""The costliest rounds, read again: where in the plan their price is paid, and what changed in the plan.

Only the costliest rounds are read, until they carry `SHARE` of the price or the work reaches its limit.

Of the plans that are kept, those that were optimal in the round before, say, the *old plan* is the cheapest
under the new loss: it pays exactly the price. Of the plans that are optimal now, the *new plan* departs from
it least, in expected number of steps: one backup on the new face whose cost is 1 for each action that is not
the old one. With the occupancies u and v of the two, the price by step is given in two ways,

    paid_h = Σ u_h A_h           what an action loses against the best one there, all that follows counted
    cash_h = Σ (u_h − v_h) ℓ_h   how much more is lost at that step; it may be negative

and both add up to the price: J(u) − J(v) = ⟨u, A⟩, as v is optimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import Crossing, Plans, price, price_policy
from normalfan.pricing.dynamics import rounds_again
from normalfan.pricing.kernels import Tables
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.summary import ranks_from_largest
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import Losses, LossStream, rounds_of
from normalfan.problem.mdp import MDP, Labels
from normalfan.report.fan import MOST_CELLS
from normalfan.text import amount, number, percent

SHARE = 0.9
LISTED = 50
MOST_ATTRIBUTED = 500
MOST_STEPS, MOST_STATES = 240, 60  # of the map
PARTS = ("market_alone", "dynamics_alone", "interaction")  # of a price, where the dynamics moved
MOST_PLAN_STEPS = 48  # longer plans are listed only at steps that differ or pay, this many at most


@dataclass(frozen=True, slots=True)
class Move:
    """The most probable state of a plan at a step, and its action there (see `Tables.shortest_named`)."""

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
    cash: float  # the expected loss of the old plan at this step minus that of the new one

    @property
    def differs(self) -> bool:
        return self.old.action != self.new.action


def plan_steps(
    tables: Tables, crossing: Crossing, loss: FloatArray, *, ties: TieRule = DEFAULT_TIES
) -> tuple[PlanStep, ...]:
    """The plan that pays the price of `crossing`, and the one that is optimal under its `loss` [H, S, A]."""
    mdp = tables.mdp
    departs = np.where(crossing.policy == 1.0, 0.0, 1.0)
    _, kept = optimal_face(mdp, loss, ties=ties).minimise(departs)
    old, new = occupancy(mdp, crossing.policy), occupancy(mdp, kept)
    columns = (
        likely_moves(tables, old, loss),
        likely_moves(tables, new, loss),
        crossing.by_step.tolist(),
        ((old - new) * loss).sum(axis=(1, 2)).tolist(),
    )
    return tuple(PlanStep(mdp.labels.step(h), *step) for h, step in enumerate(zip(*columns, strict=True)))


def likely_moves(tables: Tables, visits: FloatArray, loss: FloatArray) -> Iterator[Move]:
    mdp = tables.mdp
    steps, states = np.arange(mdp.horizon), visits.sum(axis=2).argmax(axis=1)
    likely = np.stack([states, visits[steps, states].argmax(axis=1)], axis=1)
    actions = tables.shortest_named(loss[steps, states], steps, likely)
    for h, (s, action) in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
        probability = float(visits[h, s].sum())
        sure = "" if probability > 0.995 else f" ({percent(probability)})"
        text = f"{mdp.labels.action(action)} at {mdp.labels.state(s)}{sure}"
        yield Move(s, action, probability, text)


@dataclass(frozen=True, slots=True, eq=False)
class CostliestRounds:
    changes: dict[int, tuple[PlanStep, ...]]  # the two plans [H] by round, costliest first
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


def read_costliest(
    mdp: MDP | Sequence[MDP], losses: Losses, motion: PricedMotion, ties: TieRule, top: int = LISTED
) -> CostliestRounds:
    problem_of, stream = rounds_again(mdp, losses, motion)
    shape = problem_of(0).shape
    n_rounds, n_cells = len(motion.prices), math.prod(shape)
    if stream.n_rounds not in (None, n_rounds):
        raise InputError(
            f"losses hold {stream.n_rounds} rounds, but {n_rounds} were priced: pass the losses that "
            f"were priced."
        )
    affordable = min(MOST_ATTRIBUTED, max(LISTED, MOST_CELLS // n_cells))
    attributed = most_expensive(motion.prices, share=SHARE, at_most=affordable)
    listed = motion.costliest(top).tolist()
    # The costliest round; if none was priced, the one before which the loss moved furthest.
    # A slice of the fan is of one problem: it is not looked for where the dynamics moved.
    steady = np.array([t > 0 and problem_of(t) is problem_of(t - 1) for t in range(n_rounds)])
    weights = motion.prices if motion.prices[steady].any() else motion.variation("l2")
    centre = int(np.where(steady, weights, 0.0).argmax())
    reach = min(12, max(1, MOST_CELLS // (8 * n_cells)))
    nearby = [
        t
        for t in range(max(centre - reach, 0), min(centre + reach, n_rounds - 1) + 1)
        if problem_of(t) is problem_of(centre)
    ]

    tables, changes = cache(Tables), dict[int, tuple[PlanStep, ...]]()
    paid = np.zeros(shape[:2])
    for t in sorted({*attributed, *listed}):
        now, before = problem_of(t), problem_of(max(t - 1, 0))
        near = _last_two(now, stream, t)
        crossing = _crossing(motion.plans, now, stream, t, near, before, ties)
        if t in attributed:
            paid += crossing.attribution.sum(axis=2)
        if t in listed:
            changes[t] = plan_steps(tables(now), crossing, near[-1], ties=ties)
    return CostliestRounds(
        changes={t: changes[t] for t in listed},
        attribution=paid,
        attributed=len(attributed),
        attributed_price=math.fsum(motion.prices[attributed]),
        centre=centre,
        around={t: np.array(_last_two(problem_of(t), stream, t)[-1]) for t in nearby},
    )


def _crossing(
    plans: Plans, mdp: MDP, stream: LossStream, t: int, near: FloatArray, before: MDP, ties: TieRule
) -> Crossing:
    """What the plan of round t costs, and where; `near`: see `_last_two`; `before`: the last problem."""
    loss = near[-1]
    if plans.policy is not None:
        return price_policy(mdp, plans.policy, loss, ties=ties)
    if plans.forecasts is not None:
        maker = _last_two(mdp, plans.forecasts, t)[-1]
    else:
        maker = near[0] if plans.age == 1 else _last_two(mdp, stream, t - plans.age if plans.age else 0)[-1]
    return price(optimal_face(before, maker, ties=ties).under(mdp), loss, ties=ties)


def _last_two(mdp: MDP, stream: LossStream, t: int) -> FloatArray:
    """[2, H, S, A]: the losses of the rounds t − 1 and t, read again; of round 0 alone if t is 0."""
    return next(rounds_of(stream, slice(max(t - 1, 0), t + 1)).blocks(mdp.shape, 2))


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


@dataclass(frozen=True, slots=True)
class Row:
    """One round: numbers as they are read and as they are sorted."""

    round: int
    name: str
    numbers: tuple[tuple[str, float], ...]  # price, its share of total and value, variation, its rank
    where: str
    plan: tuple[PlanStep, ...]
    paid: float  # over all steps, as `cash`
    cash: float
    steps_left_out: int


def rows_of(
    motion: PricedMotion, variation: FloatArray, changes: Mapping[int, tuple[PlanStep, ...]], unit: str
) -> list[Row]:
    ranks = ranks_from_largest(variation)
    rows = []
    for t, steps in changes.items():
        price, size, cell = float(motion.prices[t]), abs(float(motion.values[t])), motion.costliest_cell(t)
        plan = _worth_listing(steps)
        numbers = (
            (amount(price, unit), price),
            (percent(price / motion.total), price),
            (percent(price / size) if size else "–", price / size if size else np.inf),
            (number(float(variation[t])), float(variation[t])),
            (f"{ranks[t]:,}", int(ranks[t])),
        )
        where = "a near-tie"
        if cell is not None:
            where = f"{cell.step}, {cell.state}: {cell.action} → {cell.best_action}"
        if motion.moved is not None and t > 0 and motion.moved.dynamics[t] != motion.moved.dynamics[t - 1]:
            parts = {name: float(getattr(motion, name)[t]) for name in (*PARTS, "until_surprise")}
            where += f". The dynamics moved: {split_in_words(parts, unit)}"
        sums = math.fsum(step.paid for step in steps), math.fsum(step.cash for step in steps)
        rows.append(Row(t, motion.round_name(t), numbers, where, plan, *sums, len(steps) - len(plan)))
    return rows


def split_in_words(parts: Mapping[str, float], unit: str) -> str:
    """Parts of a price by their names; one that is not known is left out."""
    known = {name.replace("_", " "): part for name, part in parts.items() if not math.isnan(part)}
    return ", ".join(f"{name} {amount(part, unit)}" for name, part in known.items())


def _worth_listing(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    if len(steps) <= MOST_PLAN_STEPS:
        return steps
    relevant = [h for h, step in enumerate(steps) if step.differs or step.paid > 0]
    costliest = sorted(relevant, key=lambda h: -steps[h].paid)[:MOST_PLAN_STEPS]
    return tuple(steps[h] for h in sorted(costliest))
