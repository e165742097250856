"""Rounds whose dynamics move: those of one problem are priced together, then each change is bridged.

The price of a round is that of the policies that do, at *every* state, what was optimal the round before,
judged by today's advantages under today's dynamics (`normalfan.geometry.change`; docs/details/moving.md). A
plan crosses to other dynamics as a row of numbers that are 0 where it keeps an action and 1 elsewhere: as a
loss its values are 0 under any transitions, and its ties are the plan. Both rounds of a change are read with
care at all states, so that near-ties are enclosed as they are within one problem.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.change import effective_loss, foreseen, transition_variation
from normalfan.geometry.face import completed
from normalfan.geometry.ties import TieRule
from normalfan.pricing.blocks import BlockPricer, Columns, overflow, variations_of
from normalfan.pricing.reading import Reader, Reading
from normalfan.problem.arrays import FloatArray, check_losses
from normalfan.problem.losses import forbid
from normalfan.problem.mdp import MDP, check_way_on

AtSource: TypeAlias = Callable[[Sequence[int], MDP], FloatArray | None]
"""The losses [n, H, S, A] that a problem would have had in some rounds; None if they do not depend on it."""

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

    def read(self, loss: FloatArray, number: int) -> Reading:
        """A loss [H, S, A], read at every state: tomorrow's dynamics may lead anywhere."""
        check_losses("losses", loss[None], offset=(number,))
        loss = forbid(self.mdp, loss)
        check_way_on(self.mdp, loss < np.inf, f"losses[{number}]")
        with np.errstate(over="ignore", invalid="ignore"):
            reading = self.reader.read(loss)
        if not np.isfinite(reading.advantages[loss < np.inf]).all():
            raise overflow(number)
        return reading

    def plan(self, reading: Reading) -> Reading:
        """What a reading of other dynamics keeps, as a plan in these."""
        kept = completed(reading.advantages == 0.0, self.mdp.allowed)
        nothing = ~kept.any(axis=2, keepdims=True)  # nothing is allowed, so no policy is there
        return self._where_reached(reading, np.where(kept | nothing, 0.0, 1.0))

    def own(self, reading: Reading) -> Reading:
        """A reading of these dynamics without the states that none of its policies reaches."""
        return self._where_reached(reading, reading.advantages)

    def _where_reached(self, reading: Reading, advantages: FloatArray) -> Reading:
        marks = np.where(self.mdp.reachable[:, :, None], reading.marks, np.int8(0))
        return dataclasses.replace(
            reading, advantages=advantages, marks=marks, faces=self.reader.follow(marks)
        )

    def cross(self, plans: Sequence[Reading], now: Sequence[Reading]) -> Any:
        """Sweep these plans against these rounds: what it says of each."""
        return swept_pairs(self.pricer, [one.advantages for one in plans], [one.advantages for one in now])


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
        columns |= {"until_surprise": prices.copy(), "transition_variations": np.zeros(len(prices))}
        if self.full:
            columns |= {"market_alone": prices.copy(), "dynamics_alone": np.zeros(len(prices))}
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
        readings = {t: self._read(t) for t in sorted({t - ago for t in changes for ago in (0, 1)})}
        by_today = _grouped(changes, lambda t: self.problems[t])
        for today, rounds in by_today.items():
            dynamics = self.pricer.dynamics(today)
            plans = [dynamics.plan(readings[t - 1]) for t in rounds]
            now = [dynamics.own(readings[t]) for t in rounds]
            self._price(dynamics, rounds, plans, now)
            self._end_at_surprises(rounds, plans, now)
            if self.pricer.full:
                self._dynamics_alone(dynamics, rounds, plans)
        if self.pricer.full:
            for yesterday, rounds in _grouped(changes, lambda t: self.problems[t - 1]).items():
                self._market_alone(self.pricer.dynamics(yesterday), rounds)
            self._measure(changes)

    def _read(self, t: int) -> Reading:
        return self.pricer.dynamics(self.problems[t]).read(self.losses[t], self.first_round + t)

    def _price(self, dynamics: Dynamics, rounds: list[int], plans: list[Reading], now: list[Reading]) -> None:
        rows, columns = dynamics.cross(plans, now), self.columns
        if not rows.finite.all():
            raise overflow(self.first_round + rounds[int(rows.finite[1::2].argmin())])
        for name in (*PLAN_COLUMNS, *(PLAN_DETAILS if self.pricer.full else ())):
            columns[name][rounds] = getattr(rows, name)[1::2]
        if self.pricer.full:
            cells = columns["cells"][rounds]
            dynamics.pricer.name_moves(self.losses[rounds], cells)
            columns["cells"][rounds] = cells
        for t, old, new in zip(rounds, plans, now, strict=True):
            ends = dynamics.reader.enclose(old, new, float(columns["prices"][t]))
            columns["lowest_prices"][t], columns["highest_prices"][t], columns["ambiguous"][t] = ends
            columns["decided_exactly"][t] = old.exactly or new.exactly

    def _end_at_surprises(self, rounds: list[int], plans: list[Reading], now: list[Reading]) -> None:
        prices, ends = self.columns["prices"], self.columns["until_surprise"]
        ends[rounds] = prices[rounds]
        place = {t: i for i, t in enumerate(rounds)}
        for (before, after), some in _grouped(rounds, lambda t: tuple(self.problems[t - 1 : t + 1])).items():
            known = self.pricer.foreseen(before, after)
            if known is not None:
                advantages = np.stack([now[place[t]].advantages for t in some])
                kept = np.stack([plans[place[t]].advantages == 0.0 for t in some])
                paid = known.price(completed(kept, advantages < np.inf), advantages)
                ends[some] = np.minimum(paid, prices[some])  # not more, but for rounding

    def _dynamics_alone(self, dynamics: Dynamics, rounds: list[int], plans: list[Reading]) -> None:
        """The price of today's dynamics with yesterday's losses, or prices; NaN if there is no such round."""
        found: list[tuple[int, Reading, Reading]] = []
        for t, plan in zip(rounds, plans, strict=True):
            own = self.pricer.at_source([self.first_round + t - 1], dynamics.mdp)
            try:
                reading = dynamics.read(self.losses[t - 1] if own is None else own[0], t)
            except InputError:
                continue
            found.append((t, plan, dynamics.own(reading)))
        self.columns["dynamics_alone"][rounds] = np.nan
        if found:
            chosen, old, new = zip(*found, strict=True)
            self.columns["dynamics_alone"][list(chosen)] = dynamics.cross(old, new).prices[1::2]

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


def swept_pairs(pricer: BlockPricer, plans: Sequence[FloatArray], now: Sequence[FloatArray]) -> Any:
    """The rows of a sweep of p_0, a_0, p_1, a_1, …: of their prices every second one is meant."""
    return pricer.sweep_settled(np.stack([row for pair in zip(plans, now, strict=True) for row in pair]))


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
