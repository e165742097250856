"""Rounds whose dynamics move: those of one problem are priced together, then each change is bridged.

The price of a round is that of the policies that do, at *every* state, what was optimal the round before,
judged by today's advantages under today's dynamics (`normalfan.geometry.change`; docs/details/moving.md). A
plan crosses to other dynamics as a row of numbers that are 0 where it keeps an action and 1 elsewhere: as a
loss its values are 0 under any transitions, and its ties are the plan. Both rounds of a change are read at
all states: in plain floats and, where a near-tie is open, with care, so that it is enclosed as it is within
one problem.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.change import effective_loss, foreseen, transition_variation
from normalfan.geometry.face import completed
from normalfan.geometry.ties import TieRule
from normalfan.pricing.blocks import BlockPricer, Columns, overflow, variations_of
from normalfan.pricing.kernels import near_ties
from normalfan.pricing.reading import Reader, Reading
from normalfan.problem.arrays import BoolArray, FloatArray, check_losses
from normalfan.problem.losses import forbid
from normalfan.problem.mdp import MDP, check_way_on

AtSource: TypeAlias = Callable[[Sequence[int], MDP], FloatArray | None]
"""The losses [n, H, S, A] that a problem would have had in some rounds; None if they do not depend on it."""

Settled: TypeAlias = tuple[FloatArray, float]
"""Advantages [H, S, A] that are 0 exactly where they count as none, and the size of the values."""

Rows: TypeAlias = tuple[FloatArray, FloatArray]
"""The plan that a round keeps, 0 where it keeps an action, and the round's settled advantages; [H, S, A]."""

PLAN_COLUMNS = ("prices", "crossed")
PLAN_DETAILS = ("by_step", "cells", "cell_prices")
"""What a sweep tells of a round and the plan that is kept in it: always, and in full detail."""

CHANGES_BYTES = 2**26
"""What the readings of changes may take at a time."""


class Dynamics:
    """One problem, and what prices rounds of it and plans that come from another."""

    def __init__(self, mdp: MDP, pricer: BlockPricer) -> None:
        self.mdp = mdp
        self.pricer = pricer
        self.reader = Reader(pricer.tables, pricer.ties, exactly=pricer.exact_when_ambiguous, everywhere=True)

    def settle(self, loss: FloatArray, number: int, states: BoolArray) -> Settled | None:
        """The advantages of a loss at every state, and the size of its values; None if near-ties are open."""
        from normalfan._kernels.settling import settle

        loss = self._checked(loss, number)
        advantages, tables = np.empty(loss.shape), self.pricer.tables
        clear, size = settle(
            loss, states, tables.per_step, *tables.rows, tables.twins, near_ties(self.mdp, self.pricer.ties),
            advantages, np.empty((2, self.mdp.n_states)),
        )  # fmt: skip
        _check_finite(advantages, loss, number)
        return (advantages, size) if clear else None

    def read(self, loss: FloatArray, number: int) -> Reading:
        """A loss read with care at every state: tomorrow's dynamics may lead anywhere."""
        loss = self._checked(loss, number)
        with np.errstate(over="ignore", invalid="ignore"):
            reading = self.reader.read(loss)
        _check_finite(reading.advantages, loss, number)
        return reading

    def plan(self, advantages: FloatArray) -> FloatArray:
        """What is kept by the settled advantages of other dynamics, as a row: 0 where it is, 1 elsewhere."""
        kept = advantages == 0.0
        if self.mdp.allowed is None and advantages.max() < np.inf:
            return np.where(kept, 0.0, 1.0)
        kept = completed(kept, self.mdp.allowed)
        nothing = ~kept.any(axis=2, keepdims=True)  # nothing is allowed, so no policy is there
        return np.where(kept | nothing, 0.0, 1.0)

    def within(self, reading: Reading) -> Reading:
        """A reading without the states that no policy of these dynamics reaches."""
        marks = np.where(self.mdp.reachable[:, :, None], reading.marks, np.int8(0))
        return dataclasses.replace(reading, marks=marks, faces=self.reader.follow(marks))

    def cross(self, plans: Sequence[FloatArray], now: Sequence[FloatArray]) -> Any:
        """A sweep of p_0, a_0, p_1, a_1, …: of plans and settled advantages; every second row is meant."""
        rows = np.stack([row for pair in zip(plans, now, strict=True) for row in pair])
        return self.pricer.sweep_settled(rows, named=False)

    def _checked(self, loss: FloatArray, number: int) -> FloatArray:
        check_losses("losses", loss[None], offset=(number,))
        loss = np.ascontiguousarray(forbid(self.mdp, loss))
        if loss.max() == np.inf:
            check_way_on(self.mdp, loss < np.inf, f"losses[{number}]")
        return loss


class MovingPricer:
    """Prices blocks of rounds with problems of their own; all have one shape, equal ones are one object."""

    def __init__(
        self,
        ties: TieRule,
        *,
        full: bool,
        exact_when_ambiguous: bool,
        at_source: AtSource | None = None,
        most_problems: int = 64,
    ) -> None:
        self.ties = ties
        self.full = full
        self.exact_when_ambiguous = exact_when_ambiguous
        self.at_source = at_source or _told_once
        self.dynamics = lru_cache(most_problems)(self._dynamics)
        self.variation = lru_cache(4 * most_problems)(transition_variation)
        self.foreseen = lru_cache(4 * most_problems)(foreseen)

    def __call__(self, first_round: int, shared: int, losses: FloatArray, problems: Sequence[MDP]) -> Columns:
        """As `BlockPricer`, with the problem of each row."""
        runs = _runs(problems)
        try:
            columns = self._by_problem(losses, runs)
        except InputError:
            # The sentence may count wrongly, or compare rounds that are no neighbours: say it again in order.
            columns = self._one_by_one(first_round, losses, runs)
        prices = columns["prices"]
        columns["until_surprise"] = prices.copy()
        if self.full:
            columns["market_alone"] = prices.copy()
            columns |= {name: np.zeros(len(prices)) for name in ("dynamics_alone", "transition_variations")}
            columns["effective_variations"] = columns["variations"].copy()
        changes = [start for _, start, _ in runs[1:]]
        at_once = max(1, CHANGES_BYTES // (80 * math.prod(losses.shape[1:])))
        for i in range(0, len(changes), at_once):
            _Bridge(self, first_round, losses, problems, columns).cross(changes[i : i + at_once])
        return {name: column[shared:] for name, column in columns.items()}

    def _by_problem(self, losses: FloatArray, runs: list[Run]) -> Columns:
        """The rounds of each problem in one call; what compares with the last one is wrong after a change."""
        parts: dict[MDP, list[slice]] = {}
        for problem, start, stop in runs:
            parts.setdefault(problem, []).append(slice(start, stop))
        columns: Columns = {}
        for problem, places in parts.items():
            rows: Any = places[0] if len(places) == 1 else np.concatenate([np.r_[own] for own in places])
            _put(columns, rows, self.dynamics(problem).pricer(0, 0, losses[rows]), len(losses))
        return columns

    def _one_by_one(self, first_round: int, losses: FloatArray, runs: list[Run]) -> Columns:
        columns: Columns = {}
        for problem, start, stop in runs:
            part = self.dynamics(problem).pricer(first_round + start, 0, losses[start:stop])
            _put(columns, slice(start, stop), part, len(losses))
        return columns

    def _dynamics(self, mdp: MDP) -> Dynamics:
        exactly = self.exact_when_ambiguous
        return Dynamics(mdp, BlockPricer(mdp, self.ties, full=self.full, exact_when_ambiguous=exactly))


Run: TypeAlias = tuple[MDP, int, int]  # a problem, and its first row and the one after its last


@dataclasses.dataclass(frozen=True, eq=False)
class _Bridge:
    """Fills in what a block's columns say of rounds whose problem is not that of the round before."""

    pricer: MovingPricer
    first_round: int
    losses: FloatArray  # [B, H, S, A]
    problems: Sequence[MDP]  # [B]
    columns: Columns

    def cross(self, changes: list[int]) -> None:
        kept = {t - 1 for t in changes}
        quick = {t: self._settle(t, t in kept) for t in _both_days(changes)}
        clear = [t for t in changes if quick[t - 1] and quick[t]]
        rows = {t: self._rows(t, *(one[0] for one in (quick[t - 1], quick[t]) if one)) for t in clear}
        self._price(clear, rows)
        open_still = sorted({*changes} - {*clear} | {*self._enclose_rounding(clear, quick)})
        readings = {
            t: self._dynamics(t).read(self.losses[t], self._number(t)) for t in _both_days(open_still)
        }
        rows |= {t: self._rows(t, readings[t - 1].advantages, readings[t].advantages) for t in open_still}
        self._price(open_still, rows)
        self._enclose(open_still, readings)
        self._end_at_surprises(changes, rows)
        if self.pricer.full:
            self._dynamics_alone(changes, rows)
            for yesterday, rounds in _grouped(changes, lambda t: self.problems[t - 1]).items():
                self._market_alone(self.pricer.dynamics(yesterday), rounds)
            self._measure(changes)

    def _number(self, t: int) -> int:
        return self.first_round + t

    def _dynamics(self, t: int) -> Dynamics:
        return self.pricer.dynamics(self.problems[t])

    def _settle(self, t: int, is_kept: bool) -> Settled | None:
        states = self.problems[t].reachable
        if is_kept:
            states = states | self.problems[t + 1].reachable
        return self._dynamics(t).settle(self.losses[t], self._number(t), states)

    def _rows(self, t: int, before: FloatArray, now: FloatArray) -> Rows:
        """Of two days' settled advantages: the plan that is kept on day t, and those of the day."""
        return self._dynamics(t).plan(before), now

    def _price(self, rounds: list[int], rows: Mapping[int, Rows]) -> None:
        columns = self.columns
        for today, some in _grouped(rounds, lambda t: self.problems[t]).items():
            dynamics = self.pricer.dynamics(today)
            swept = dynamics.cross(*zip(*(rows[t] for t in some), strict=True))
            if not swept.finite.all():
                raise overflow(self._number(some[int(swept.finite[1::2].argmin())]))
            for name in (*PLAN_COLUMNS, *(PLAN_DETAILS if self.pricer.full else ())):
                columns[name][some] = getattr(swept, name)[1::2]
            if self.pricer.full:
                cells = columns["cells"][some]
                dynamics.pricer.name_moves(self.losses[some], cells)
                columns["cells"][some] = cells

    def _enclose_rounding(self, rounds: list[int], quick: Mapping[int, Settled | None]) -> list[int]:
        """Enclose prices where only rounding is open; the rounds in which that is too wide."""
        wide: list[int] = []
        for today, some in _grouped(rounds, lambda t: self.problems[t]).items():
            sizes = np.array([one[1] for t in some if (one := quick[t])])
            found = self.pricer.dynamics(today).reader.rounding_intervals(self.columns["prices"][some], sizes)
            self.columns["lowest_prices"][some], self.columns["highest_prices"][some], open_still = found
            self.columns["ambiguous"][some] = self.columns["decided_exactly"][some] = False
            wide += np.array(some)[open_still].tolist()
        return wide

    def _enclose(self, rounds: list[int], readings: Mapping[int, Reading]) -> None:
        for t in rounds:
            dynamics, columns = self._dynamics(t), self.columns
            old, new = (dynamics.within(readings[day]) for day in (t - 1, t))
            ends = dynamics.reader.enclose(old, new, float(columns["prices"][t]))
            columns["lowest_prices"][t], columns["highest_prices"][t], columns["ambiguous"][t] = ends
            columns["decided_exactly"][t] = old.exactly or new.exactly

    def _end_at_surprises(self, rounds: list[int], rows: Mapping[int, Rows]) -> None:
        prices, ends = self.columns["prices"], self.columns["until_surprise"]
        ends[rounds] = prices[rounds]
        for (before, after), some in _grouped(rounds, lambda t: tuple(self.problems[t - 1 : t + 1])).items():
            known = self.pricer.foreseen(before, after)
            if known is not None:
                plans, now = (np.stack(part) for part in zip(*(rows[t] for t in some), strict=True))
                kept = plans == 0.0 if now.max() < np.inf else completed(plans == 0.0, now < np.inf)
                paid = known(kept, now)
                ends[some] = np.minimum(paid, prices[some])  # not more, but for rounding

    def _dynamics_alone(self, rounds: list[int], rows: Mapping[int, Rows]) -> None:
        """The price of today's dynamics with yesterday's losses, or prices; NaN if there is no such round."""
        for t in rounds:
            dynamics, number = self._dynamics(t), self._number(t)
            own = self.pricer.at_source([number - 1], dynamics.mdp)
            loss = self.losses[t - 1] if own is None else own[0]
            try:
                settled = dynamics.settle(loss, number, dynamics.mdp.reachable)
                now = settled[0] if settled else dynamics.read(loss, number).advantages
            except InputError:
                self.columns["dynamics_alone"][t] = np.nan
            else:
                self.columns["dynamics_alone"][t] = dynamics.cross([rows[t][0]], [now]).prices[1]

    def _market_alone(self, dynamics: Dynamics, rounds: list[int]) -> None:
        """The price of today's losses, or prices, in yesterday's dynamics; NaN if there is no such round."""
        own = self.pricer.at_source([self.first_round + t for t in rounds], dynamics.mdp)
        losses = self.losses[rounds] if own is None else own
        alone = self.columns["market_alone"]
        try:
            alone[rounds] = self._price_pairs(dynamics, rounds, losses)
        except InputError:
            for i, t in enumerate(rounds):
                try:
                    alone[t] = self._price_pairs(dynamics, [t], losses[i : i + 1])[0]
                except InputError:
                    alone[t] = np.nan

    def _price_pairs(self, dynamics: Dynamics, rounds: list[int], losses: FloatArray) -> FloatArray:
        makers = self.losses[[t - 1 for t in rounds]]
        prices: FloatArray = dynamics.pricer.price_pairs(self.first_round, makers, losses)["prices"]
        return prices

    def _measure(self, changes: list[int]) -> None:
        for t in changes:
            before, after = self.problems[t - 1 : t + 1]
            old, new = forbid(before, self.losses[t - 1]), forbid(after, self.losses[t])
            number = self.first_round + t - 1
            self.columns["transition_variations"][t] = self.pricer.variation(before, after)
            self.columns["variations"][t] = variations_of(np.stack([old, new]), number)[1]
            moved = np.stack([old, effective_loss(before, after, new)])
            self.columns["effective_variations"][t] = variations_of(moved, number)[1]


def _told_once(_rounds: Sequence[int], _problem: MDP) -> None:
    """Losses that do not depend on the problem."""


def _both_days(changes: list[int]) -> list[int]:
    return sorted({t - ago for t in changes for ago in (0, 1)})


def _check_finite(advantages: FloatArray, loss: FloatArray, number: int) -> None:
    if not (np.isfinite(advantages) | (loss == np.inf)).all():
        raise overflow(number)


def _runs(problems: Sequence[MDP]) -> list[Run]:
    runs, start = list[Run](), 0
    for problem, same in groupby(problems):
        stop = start + len(list(same))
        runs.append((problem, start, stop))
        start = stop
    return runs


def _grouped(rounds: list[int], key: Callable[[int], Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for t in rounds:
        groups.setdefault(key(t), []).append(t)
    return groups


def _put(columns: Columns, rows: Any, part: Columns, length: int) -> None:
    for name, values in part.items():
        whole = columns.setdefault(name, np.empty((length, *values.shape[1:]), dtype=values.dtype))
        whole[rows] = values
