"""Holding costs: what it costs to keep any plan on any later day.

A plan of day j with occupancy q_j costs C[j,t] = ⟨q_j, ℓ_t⟩ − J*_t = ⟨q_j, A_t⟩ ≥ 0 on day t beyond the best.
For factored losses ℓ_t = Σ_k θ_t[k] Φ_k a plan matters through its K exposures ⟨q_j, Φ_k⟩ only: C is one
product of an [n, K] and a [K, n] matrix. Other losses take the second form, in blocks. The price of a *face*
is that of its best policy on each day, min over u ∈ F_j of ⟨u, ℓ_t⟩ − J*_t: never more. Where dynamics move
too, a plan is a table of actions, followed in those of each day: C[j,t] = ⟨q_{j,t}, A_t⟩. Where a day does
not allow what a plan does, or it says nothing, the best that is allowed takes its place (see forbidden.md).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.bellman import Backup, finite_backup, occupancy, optimal_backup
from normalfan.geometry.face import Face, completed
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.blocks import overflow
from normalfan.pricing.crossing import price
from normalfan.pricing.dynamics import MovingStream
from normalfan.pricing.stream import BLOCK_BYTES, block_rounds, price_stream
from normalfan.problem.arrays import BoolArray, FloatArray, read_only
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import (
    ArrayLosses,
    IterableLosses,
    Losses,
    LossStream,
    are_rewards,
    as_stream,
    each_round,
    factors_of,
    names_of_rounds,
    rounds_of,
)
from normalfan.problem.mdp import MDP, check_way_on
from normalfan.progress import progress_bar
from normalfan.text import counted

BATCH_BYTES = 2**22  # of losses that are planned for at once: what a processor's cache holds
DAYS_AT_ONCE = 64  # that are read together where dynamics move

Known: TypeAlias = Literal["before", "after"]
Reading: TypeAlias = Literal["plan", "face"]
Plan: TypeAlias = tuple[FloatArray, BoolArray]  # its occupancy [H·S·A] and its mask [H, S, A]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HoldingCosts:
    """What keeping every plan costs on every later day; made by `holding_costs`.

    Examples
    --------
    >>> HoldingCosts(np.array([[0.0, 1.0], [np.nan, 0.0]]), np.zeros(2), "before", 1)
    HoldingCosts: 2 days, plans for the last day, losses known before acting
    """

    costs: FloatArray  # [n, n] at [d, t] of the plan that serves from day d on, on day t; nan where t < d
    values: FloatArray  # [n] J*, the best expected loss of each day, or reward
    known: Known  # whether the loss of a day is known before acting on it, or only after
    window: int  # plans are made for the mean loss of so many days
    round_names: tuple[str, ...] | None = None  # [n] what the days are called; None where they are numbered
    rewards: bool = False  # `values` are rewards, the more the better; costs are what is lost either way

    def __repr__(self) -> str:
        return f"HoldingCosts: {self.description}"

    @property
    def n_days(self) -> int:
        """The number of days of acting."""
        return len(self.values)

    @property
    def first_round(self) -> int:
        """The round of the stream that is day 0 here."""
        return 0 if self.known == "before" else 1

    @property
    def description(self) -> str:
        """How many days, which plans, and when losses are known."""
        plans = "the last day" if self.window == 1 else f"the mean of {self.window} days"
        what = "rewards" if self.rewards else "losses"
        return f"{counted(self.n_days, 'day')}, plans for {plans}, {what} known {self.known} acting"

    def day_name(self, t: int) -> str:
        """The name of the round of day t, or its number in the stream."""
        return self.round_names[t] if self.round_names else str(t + self.first_round)

    def part(self, first: int, stop: int) -> HoldingCosts:
        """The days from `first` up to `stop` on their own: they begin with the plan of the first of them."""
        days = slice(first, stop)
        return replace(
            self,
            costs=self.costs[days, days],
            values=self.values[days],
            round_names=tuple(map(self.day_name, range(first, stop))),
        )

    def learned_after(self) -> HoldingCosts:
        """The same plans, each serving a day later: losses known only after acting."""
        if self.known == "after":
            return self
        if self.n_days < 2:
            raise InputError(
                "losses have 1 round, but if they are known only after acting the first one can only be "
                "learned from: give at least 2 rounds."
            )
        return replace(
            self,
            costs=_from_first_day_on(self.costs[:-1, 1:]),
            values=self.values[1:],
            known="after",
            round_names=self.round_names and self.round_names[1:],
        )


def holding_costs(
    mdp: MDP | Sequence[MDP],
    losses: Losses,
    *,
    dynamics_of_round: npt.ArrayLike | None = None,
    window: int = 1,
    known: Known = "before",
    reading: Reading = "plan",
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
) -> HoldingCosts:
    """Price every plan on every later day, C[d,t] = ⟨q_d, ℓ_t⟩ − J*_t.

    Parameters
    ----------
    mdp : MDP or sequence of MDP
        Several, if the dynamics move: a plan, a table of actions, is kept through them.
    losses : array_like or LossStream
        One round a day.
    dynamics_of_round : array_like of int [T], optional
        Which of several problems each day has; then `window` and `reading` are the default ones.
    window : int
        A plan is made for the mean of so many last losses.
    known : {"before", "after"}
        With "after" the plan of day d uses the losses up to day d − 1: acting starts on the second day.
    reading : {"plan", "face"}
        Price the plan (the first of tied actions), or the best policy of its face each day: n² backups.
    ties : TieRule
    progress : bool

    Returns
    -------
    HoldingCosts
        8n² bytes for n days.

    Raises
    ------
    InputError
        If the losses do not fit the problem or are not finite, or an option is not one of the above.

    Examples
    --------
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [2.0, 1.5], [0.0, 3.0]]).reshape(3, 1, 1, 2)
    >>> holding_costs(arms, losses, known="after").costs
    array([[0.5, 0. ],
           [nan, 3. ]])
    """
    check_choice("known", known, get_args(Known))
    check_choice("reading", reading, get_args(Reading))
    stream: LossStream
    if isinstance(mdp, MDP) and dynamics_of_round is None:
        stream = as_stream(losses)
        costs, values = costs_of_plans(mdp, stream, window, ties, reading=reading, progress=progress)
    elif dynamics_of_round is None or isinstance(mdp, MDP) or (window, reading) != (1, "plan"):
        raise InputError(
            "plans are kept through several problems only as they are, made for the last day: pass a list of "
            "problems with dynamics_of_round, and leave window and reading out."
        )
    else:
        moving = MovingStream(mdp, losses, dynamics_of_round)
        stream = moving.losses
        costs, values = _through_dynamics(moving, ties)
        values = read_only(0.0 - values if are_rewards(stream) else values)
    costs, names = _from_first_day_on(costs), names_of_rounds(stream)
    before = HoldingCosts(costs, values, "before", int(window), names, are_rewards(stream))
    return before if known == "before" else before.learned_after()


def costs_of_plans(
    mdp: MDP,
    given: LossStream,
    window: int,
    ties: TieRule,
    *,
    reading: Reading = "plan",
    earlier: bool = False,
    progress: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """C[j,t] [n, n] of the plan of each day j, on days t before it only if `earlier`; and J* [n]."""
    check_whole("window", window, "1 is the last day")
    stream = _readable_again(mdp, given)
    planned = _trailing_means(mdp, stream, window)
    if reading == "face":
        costs, values = _of_faces(mdp, stream, planned, ties, progress=progress)
    else:
        values = np.concatenate([mdp.initial @ backup.values[0] for backup in _backups(mdp, stream)])
        with progress_bar("planning", len(values), progress) as advance:
            plans = _plans(mdp, planned, ties, advance)
            if isinstance(stream, FactoredLosses):
                costs = _by_exposures(stream, plans, values, ties)
            else:
                costs = _by_advantages(mdp, stream, plans, len(values), ties, earlier=earlier)
    return costs, read_only(0.0 - values if are_rewards(given) else values)


def _from_first_day_on(costs: FloatArray) -> FloatArray:
    """The costs, without those of days before a plan serves."""
    return read_only(np.where(np.tri(len(costs), k=-1, dtype=bool), np.nan, costs))


# --- costs, by the kind of losses


def _by_exposures(
    stream: FactoredLosses, plans: Iterator[Plan], values: FloatArray, ties: TieRule
) -> FloatArray:
    theta = stream.coefficients
    exposures = np.stack([stream.features @ visits for visits, _ in plans])
    costs = exposures @ theta.T - values
    # A difference of large numbers: what is left of equal ones is rounding of the terms, and counts as none.
    turnover = np.abs(exposures) @ np.abs(theta).T
    costs[costs <= ties.absolute + ties.relative * turnover] = 0.0
    return costs


def _by_advantages(
    mdp: MDP, stream: LossStream, plans: Iterator[Plan], n_days: int, ties: TieRule, *, earlier: bool
) -> FloatArray:
    costs = np.full((n_days, n_days), np.nan)
    at_once = max(1, BLOCK_BYTES // (8 * math.prod(mdp.shape)))
    first = 0
    while rows := list(islice(plans, at_once)):
        occupancies = np.stack([visits for visits, _ in rows])
        start = 0 if earlier else first
        for backup in _backups(mdp, stream, start):
            paid = backup.settled(mdp, ties).reshape(occupancies.shape[1], -1)
            stop = start + paid.shape[1]
            closed = occupancies @ (paid == np.inf)
            paid[paid == np.inf] = 0.0
            costs[first : first + len(rows), start:stop] = occupancies @ paid
            for j, t in np.argwhere(closed if earlier else np.triu(closed, first - start)):
                kept = Face(mdp, rows[j][1])
                costs[first + j, start + t] = price(kept, backup.loss[..., t], ties=ties).price
            start = stop
        first += len(rows)
    return costs


def _of_faces(
    mdp: MDP, stream: LossStream, planned: LossStream, ties: TieRule, *, progress: bool
) -> tuple[FloatArray, FloatArray]:
    """The prices of faces, age by age, with what is planned for as forecasts; and J*."""
    days, forecasts = (
        one if isinstance(one, FactoredLosses) else _in_memory(mdp, one) for one in (stream, planned)
    )
    values = price_stream(mdp, days, ties=ties, detail="prices").values
    n_days = len(values)
    costs = np.full((n_days, n_days), np.nan)
    with progress_bar("pricing faces", n_days, progress) as advance:
        for age in range(n_days):
            later, plans = rounds_of(days, slice(age, None)), rounds_of(forecasts, slice(n_days - age))
            motion = price_stream(mdp, later, against=plans, ties=ties, detail="prices")
            costs[range(n_days - age), range(age, n_days)] = motion.prices
            advance(1)
    return costs, values


def _through_dynamics(moving: MovingStream, ties: TieRule) -> tuple[FloatArray, FloatArray]:
    """C[j,t] of the table of actions of each day j in the dynamics of each day t, and J*; all in memory."""
    days = list(moving.rounds(DAYS_AT_ONCE))
    backups = [finite_backup(mdp, loss, f"losses[{t}]") for t, (mdp, loss) in enumerate(days)]
    tied = np.stack([backup.tied(mdp, ties) for backup, (mdp, _) in zip(backups, days, strict=True)])
    plans = tied & (tied.cumsum(axis=3) == 1)
    costs = np.empty((len(days), len(days)))
    for problem in dict.fromkeys(mdp for mdp, _ in days):
        visits = np.stack([_visits(problem, plan) for plan in plans])
        for t in (t for t, (mdp, _) in enumerate(days) if mdp is problem):
            advantages = np.where(tied[t], 0.0, backups[t].advantages)
            allowed = advantages < np.inf
            costs[:, t] = visits @ np.where(allowed, advantages, 0.0).reshape(-1)
            silent = (visits * ~(plans & allowed).reshape(visits.shape)).any(axis=1)
            for j in np.flatnonzero(silent):
                kept = Face(problem, completed(plans[j], problem.allowed))
                costs[j, t] = price(kept, days[t][1], ties=ties).price
    return costs, np.array([backup.value(mdp) for backup, (mdp, _) in zip(backups, days, strict=True)])


# --- losses, values and plans, one day after the other


def _readable_again(mdp: MDP, stream: LossStream) -> LossStream:
    """The stream in a form that can be read twice, and by its factors where it has some."""
    if factors := factors_of(stream):
        sign = -1.0 if are_rewards(stream) else 1.0
        stream = FactoredLosses(sign * factors.coefficients, factors.features)
    forbids = factors is not None and np.isinf(factors.coefficients).any()  # no matrix product
    return _in_memory(mdp, stream) if forbids or stream.n_rounds is None else stream


def _in_memory(mdp: MDP, stream: LossStream) -> ArrayLosses:
    return ArrayLosses(np.stack(list(_each_round(mdp, stream))))


def _trailing_means(mdp: MDP, stream: LossStream, window: int) -> LossStream:
    """The mean of each loss and the `window` − 1 before it, of fewer at the beginning: what plans are for."""

    def means(rows: Iterable[FloatArray]) -> Iterator[FloatArray]:
        recent = deque[FloatArray](maxlen=window)
        for t, row in enumerate(rows):
            recent.append(row)
            mean = row if len(recent) == 1 else np.mean(recent, axis=0)
            if row.ndim == 3:  # what one of them forbids the mean forbids, too
                name = f"the mean of losses[{t - len(recent) + 1}] to losses[{t}]"
                check_way_on(mdp, mean != np.inf, name, "plan for the mean of fewer days")
            yield mean

    if isinstance(stream, FactoredLosses):
        theta = stream.coefficients
        return FactoredLosses(np.reshape(list(means(theta)), theta.shape), stream.features)
    return IterableLosses(means(_each_round(mdp, stream)))


def _each_round(mdp: MDP, stream: LossStream) -> Iterator[FloatArray]:
    return each_round(mdp, stream, block_rounds(mdp, stream))


def _backups(mdp: MDP, stream: LossStream, start: int = 0) -> Iterator[Backup]:
    """The backups of the days from `start` on, as many at once as a cache holds: their arrays end in [n]."""
    losses = islice(_each_round(mdp, stream), start, None)
    while some := list(islice(losses, max(1, BATCH_BYTES // (8 * math.prod(mdp.shape))))):
        with np.errstate(over="ignore", invalid="ignore"):
            backup = optimal_backup(mdp, np.stack(some, axis=-1))
            are_finite = np.isfinite(mdp.initial @ backup.values[0])
        if not are_finite.all():
            raise overflow(start + int(are_finite.argmin()))
        yield backup
        start += len(some)


def _plans(mdp: MDP, stream: LossStream, ties: TieRule, advance: Callable[[int], object]) -> Iterator[Plan]:
    """A plan for each loss, of optimal actions the first."""
    for backup in _backups(mdp, stream):
        tied = backup.tied(mdp, ties)
        for mask in np.moveaxis(tied & (tied.cumsum(axis=2) == 1), -1, 0):
            yield _visits(mdp, mask), mask
            advance(1)


def _visits(mdp: MDP, plan: BoolArray) -> FloatArray:
    """Where a plan [H, S, A] goes, [H·S·A]; where it says nothing, the first action stands for that."""
    return occupancy(mdp, np.eye(mdp.n_actions)[plan.argmax(axis=2)]).reshape(-1)
