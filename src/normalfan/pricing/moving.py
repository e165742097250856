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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.change import effective_loss, foreseen, transition_variation
from normalfan.geometry.face import completed
from normalfan.pricing.blocks import DETAILS, BlockPricer, Columns, overflow, variations_of
from normalfan.pricing.kernels import near_ties
from normalfan.pricing.reading import Reader, Reading
from normalfan.problem.arrays import BoolArray, FloatArray, check_losses
from normalfan.problem.losses import as_allowed, forbid
from normalfan.problem.mdp import MDP

AtSource: TypeAlias = Callable[[Sequence[int], MDP], FloatArray | None]
"""The losses [n, H, S, A] that a problem would have had in some rounds; None if they do not depend on it."""

Settled: TypeAlias = tuple[FloatArray, float]
"""Advantages [H, S, A] that are 0 exactly where they count as none, and the size of the values."""

Rows: TypeAlias = tuple[FloatArray, FloatArray]
"""The plan that a round keeps, 0 where it keeps an action, and the round's settled advantages; [H, S, A]."""

PLAN_COLUMNS = ("prices", "crossed", "by_step", "cells", "cell_prices")
"""What a sweep tells of a round and the plan that is kept in it."""

MOVED_DETAILS = ("market_alone", "dynamics_alone", "transition_variations", "effective_variations")
"""What is told of a change only if it is asked for."""

EVERY_DETAIL = (*sorted(DETAILS), *MOVED_DETAILS)

CHANGES_BYTES = 2**26
"""What the readings of changes may take at a time."""

MOST_PROBLEMS = 64
"""Dynamics that are kept ready, if no more are known to come."""


class Dynamics(BlockPricer):
    """One problem: prices rounds of it, and plans that come from another."""

    @cached_property
    def reader_everywhere(self) -> Reader:
        """Reads losses at every state: tomorrow's dynamics may lead anywhere."""
        return Reader(self.tables, self.ties, exactly=self.exact_when_ambiguous, everywhere=True)

    def settle(self, loss: FloatArray, number: int, states: BoolArray) -> Settled | None:
        """The advantages of a loss at every state, and the size of its values; None if near-ties are open."""
        from normalfan._kernels.settling import settle

        loss = self._checked(loss, number)
        advantages, tables = np.empty(loss.shape), self.tables
        clear, size = settle(
            loss, states, tables.per_step, *tables.rows, tables.twins, near_ties(self.mdp, self.ties),
            advantages, np.empty((2, self.mdp.n_states)),
        )  # fmt: skip
        _check_finite(advantages, loss, number)
        return (advantages, size) if clear else None

    def read(self, loss: FloatArray, number: int) -> Reading:
        """A loss read with care at every state."""
        loss = self._checked(loss, number)
        with np.errstate(over="ignore", invalid="ignore"):
            reading = self.reader_everywhere.read(loss)
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
        return dataclasses.replace(reading, marks=marks, reader=self.reader)

    def cross(self, rows: Sequence[Rows]) -> Any:
        """A sweep of p_0, a_0, p_1, a_1, …: of plans and settled advantages; every second row is meant."""
        return self.sweep_settled(np.concatenate(rows), named=False)

    def _checked(self, loss: FloatArray, number: int) -> FloatArray:
        check_losses("losses", loss[None], offset=(number,))
        return np.ascontiguousarray(as_allowed(self.mdp, loss, f"losses[{number}]"))


class MovingPricer:
    """Prices blocks of rounds with problems of their own; all have one shape, equal ones are one object."""

    def __init__(
        self,
        at_source: AtSource | None = None,
        most_problems: int = 0,
        *,
        details: Collection[str],
        **options: Any,
    ) -> None:
        self.details = [name for name in MOVED_DETAILS if name in details]
        self.at_source = at_source or (lambda _rounds, _problem: None)
        most = max(MOST_PROBLEMS, most_problems)
        self.dynamics = lru_cache(most)(partial(Dynamics, details=details, **options))
        self.variation = lru_cache(4 * most)(transition_variation)
        self.foreseen = lru_cache(4 * most)(foreseen)

    def __call__(self, first_round: int, shared: int, losses: FloatArray, problems: Sequence[MDP]) -> Columns:
        """As `BlockPricer`, with the problem of each row."""
        changes = [t for t in range(1, len(problems)) if problems[t] is not problems[t - 1]]
        runs = [range(*ends) for ends in pairwise([0, *changes, len(problems)])]
        together = _grouped(range(len(problems)), problems.__getitem__).values()
        try:
            # The rounds of each problem at once; what compares with the last one is wrong after a change.
            columns = self._by_problem(losses, problems, [(0, rows) for rows in together])
        except InputError:
            # The sentence may count wrongly, or compare rounds that are no neighbours: say it again in order.
            columns = self._by_problem(losses, problems, [(first_round + run[0], run) for run in runs])
        prices = columns["prices"]
        columns["until_surprise"] = prices.copy()
        unmoved = {"market_alone": prices, "effective_variations": columns.get("variations")}
        columns |= {name: np.array(unmoved.get(name, 0.0 * prices)) for name in self.details}
        at_once = max(1, CHANGES_BYTES // (80 * math.prod(losses.shape[1:])))
        for i in range(0, len(changes), at_once):
            _Bridge(self, first_round, losses, problems, columns).cross(changes[i : i + at_once])
        return {name: column[shared:] for name, column in columns.items()}

    def _by_problem(
        self, losses: FloatArray, problems: Sequence[MDP], parts: Sequence[tuple[int, Sequence[int]]]
    ) -> Columns:
        """Of parts with the number of the first round and the rows of one problem, all columns."""
        columns: Columns = {}
        for number, rows in parts:
            is_run = rows[-1] - rows[0] + 1 == len(rows)  # and so a view
            place: Any = slice(rows[0], rows[-1] + 1) if is_run else rows
            part = self.dynamics(problems[rows[0]])(number, 0, losses[place])
            for name, values in part.items():
                whole = columns.setdefault(name, np.empty((len(losses), *values.shape[1:]), values.dtype))
                whole[place] = values
        return columns


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
        found = {t: one[0] for t, one in quick.items() if one}
        clear = [t for t in changes if t - 1 in found and t in found]
        rows = self._price(clear, found)
        doubtful = sorted({*changes} - {*clear} | {*self._enclose_rounding(clear, quick)})
        readings = {
            t: self._dynamics(t).read(self.losses[t], self.first_round + t) for t in _both_days(doubtful)
        }
        rows |= self._price(doubtful, {t: one.advantages for t, one in readings.items()})
        self._enclose(doubtful, readings)
        self._end_at_surprises(changes, rows)
        if "dynamics_alone" in self.columns:
            self._dynamics_alone(changes, rows)
        if "market_alone" in self.columns:
            for yesterday, rounds in _grouped(changes, lambda t: self._dynamics(t - 1)).items():
                self._market_alone(yesterday, rounds)
        if self.pricer.details or "variations" in self.columns:
            self._measure(changes)

    def _dynamics(self, t: int) -> Dynamics:
        return self.pricer.dynamics(self.problems[t])

    def _settle(self, t: int, is_kept: bool) -> Settled | None:
        states = self.problems[t].reachable
        if is_kept:
            states = states | self.problems[t + 1].reachable
        return self._dynamics(t).settle(self.losses[t], self.first_round + t, states)

    def _price(self, rounds: list[int], advantages: Mapping[int, FloatArray]) -> dict[int, Rows]:
        """Price changes by the settled advantages of both days; returns the rows that were swept."""
        columns = self.columns
        rows = {t: (self._dynamics(t).plan(advantages[t - 1]), advantages[t]) for t in rounds}
        for today, some in _grouped(rounds, self._dynamics).items():
            swept = today.cross([rows[t] for t in some])
            if not swept.finite.all():
                raise overflow(self.first_round + some[int(swept.finite[1::2].argmin())])
            for name in columns.keys() & {*PLAN_COLUMNS}:
                columns[name][some] = getattr(swept, name)[1::2]
            if "cells" in columns:
                columns["cells"][some] = today.name_moves(self.losses[some], columns["cells"][some])
        return rows

    def _enclose_rounding(self, rounds: list[int], quick: Mapping[int, Settled | None]) -> list[int]:
        """Enclose prices where only rounding is open; the rounds in which that is too wide."""
        columns, wide = self.columns, list[int]()
        for today, some in _grouped(rounds, self._dynamics).items():
            sizes = np.array([one[1] for t in some if (one := quick[t])])
            lowest, highest, is_wide = today.reader.rounding_intervals(columns["prices"][some], sizes)
            columns["lowest_prices"][some], columns["highest_prices"][some] = lowest, highest
            columns["ambiguous"][some] = columns["decided_exactly"][some] = False
            wide += np.array(some)[is_wide].tolist()
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
            dynamics, number = self._dynamics(t), self.first_round + t
            own = self.pricer.at_source([number - 1], dynamics.mdp)
            loss = self.losses[t - 1] if own is None else own[0]
            try:
                settled = dynamics.settle(loss, number, dynamics.mdp.reachable)
                now = settled[0] if settled else dynamics.read(loss, number).advantages
            except InputError:
                self.columns["dynamics_alone"][t] = np.nan
            else:
                self.columns["dynamics_alone"][t] = dynamics.cross([(rows[t][0], now)]).prices[1]

    def _market_alone(self, dynamics: Dynamics, rounds: list[int]) -> None:
        """The price of today's losses, or prices, in yesterday's dynamics; NaN if there is no such round."""
        own = self.pricer.at_source([self.first_round + t for t in rounds], dynamics.mdp)
        losses = self.losses[rounds] if own is None else own
        makers, alone = self.losses[[t - 1 for t in rounds]], self.columns["market_alone"]
        try:
            alone[rounds] = dynamics.price_pairs(self.first_round, makers, losses)["prices"]
        except InputError:
            if len(rounds) == 1:
                alone[rounds] = np.nan
                return
            for t in rounds:
                self._market_alone(dynamics, [t])

    def _measure(self, changes: list[int]) -> None:
        for t in changes:
            before, after = self.problems[t - 1 : t + 1]
            old, new = forbid(before, self.losses[t - 1]), forbid(after, self.losses[t])
            number = self.first_round + t - 1
            if "transition_variations" in self.columns:
                self.columns["transition_variations"][t] = self.pricer.variation(before, after)
            if "variations" in self.columns:
                self.columns["variations"][t] = variations_of(np.stack([old, new]), number)[1]
            if "effective_variations" in self.columns:
                moved = np.stack([old, effective_loss(before, after, new)])
                self.columns["effective_variations"][t] = variations_of(moved, number)[1]


def _both_days(changes: list[int]) -> list[int]:
    return sorted({t - ago for t in changes for ago in (0, 1)})


def _check_finite(advantages: FloatArray, loss: FloatArray, number: int) -> None:
    if not (np.isfinite(advantages) | (loss == np.inf)).all():
        raise overflow(number)


def _grouped(rounds: Iterable[int], key: Callable[[int], Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for t in rounds:
        groups.setdefault(key(t), []).append(t)
    return groups
