"""What it costs to hold any plan on any later day.

A plan made on day j and held on day t costs, beyond the best possible on that day,

    C[j,t] = ⟨q_j, ℓ_t⟩ − J*_t = ⟨q_j, A_t⟩ ≥ 0,

with q_j the plan's occupancy measure and A_t the optimal advantages of day t. For factored losses
ℓ_t = Σ_k θ_t[k] Φ_k a plan matters through its K exposures ⟨q_j, Φ_k⟩ only, so all of C is one product of an
[n, K] and a [K, n] matrix. Other losses take the second form, a product of occupancies and advantages, in
blocks.

That is the price of a *plan*. The price of a *face* is what its best policy of the day would have cost,
min over u ∈ F_j of ⟨u, ℓ_t⟩ − J*_t: never more, and the same where the face is a vertex or differs only in
actions that do the same. C[t−1,t] in this reading is the price of the stream.

When losses are known *before* acting, a plan made on day d uses the loss of day d and serves from that day
on. When they are known only *after*, it uses the losses up to day d−1; nothing is known before the first
day, so acting begins on the second. Either way `costs[d, t]` is what the plan that began to serve on the
d-th day of acting costs on the t-th.

    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [2.0, 1.5], [0.0, 3.0]]).reshape(3, 1, 1, 2)
    >>> holding_costs(arms, losses).costs
    array([[0. , 0.5, 0. ],
           [nan, 0. , 3. ],
           [nan, nan, 0. ]])
    >>> holding_costs(arms, losses, known="after").costs
    array([[0.5, 0. ],
           [nan, 3. ]])
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.stream import BLOCK_BYTES, price_stream
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import (
    ArrayLosses,
    FactoredLosses,
    IterableLosses,
    LossStream,
    Negated,
    as_stream,
)
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.replan.plans import advantages, each_round, plan_occupancies, trailing_means

Known = Literal["before", "after"]
Reading = Literal["plan", "face"]


@dataclass(frozen=True, slots=True, eq=False)
class HoldingCosts:
    """The regret of every plan on every day from its first on."""

    costs: FloatArray  # [n, n]  of the plan that serves from day d, on day t; nan where t < d
    values: FloatArray  # [n]     J*, the best expected loss of each day
    known: Known  # whether a day's loss is known before acting or after
    window: int  # of how many days' mean loss a plan is made

    @property
    def n_days(self) -> int:
        return len(self.values)

    @property
    def first_round(self) -> int:
        """The round of the stream that is day 0 here."""
        return 0 if self.known == "before" else 1

    def learned_after(self) -> HoldingCosts:
        """The same plans, each serving a day later: losses known only after acting."""
        if self.known == "after":
            return self
        if self.n_days < 2:
            raise InputError(
                "losses hold 1 round, but where they are known only after acting the first can but be "
                "learned from: give at least 2 rounds."
            )
        shifted = _from_first_day_on(self.costs[:-1, 1:])
        return replace(self, costs=shifted, values=self.values[1:], known="after")


def holding_costs(
    mdp: MDP,
    losses: Any,
    *,
    window: int = 1,
    known: Known = "before",
    reading: Reading = "plan",
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
) -> HoldingCosts:
    """Price every plan on every later day.

    `losses`: as for `price_stream`. `window`: plans are made for the mean of so many last losses.
    `reading`: the price of one policy, or of the best of its face, n² backups (see the module).
    """
    _check_choice("known", known, get_args(Known))
    _check_choice("reading", reading, get_args(Reading))
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise InputError(
            f"window is {window!r}, but must be a whole number of days from 1: 1 is the last day."
        )
    stream = _readable_again(mdp, as_stream(losses))
    values = price_stream(mdp, stream, ties=ties, detail="prices").values
    if reading == "face":
        from normalfan.replan.faces import face_costs

        costs = face_costs(mdp, stream, window, ties, progress=progress)
    elif isinstance(stream, FactoredLosses):
        costs = _by_exposures(mdp, stream, window, ties, values, progress=progress)
    else:
        costs = _by_advantages(mdp, stream, window, ties, len(values), progress=progress)
    held = HoldingCosts(_from_first_day_on(costs), values, "before", int(window))
    return held if known == "before" else held.learned_after()


def _from_first_day_on(costs: FloatArray) -> FloatArray:
    """The costs, without those of days before a plan serves."""
    return read_only(np.where(np.tri(len(costs), k=-1, dtype=bool), np.nan, costs))


def _by_exposures(
    mdp: MDP, stream: FactoredLosses, window: int, ties: TieRule, values: FloatArray, *, progress: bool
) -> FloatArray:
    theta = stream.coefficients
    planned = FactoredLosses(np.array(list(trailing_means(theta, window))), stream.features)
    exposures = np.empty_like(theta)
    plans = plan_occupancies(mdp, each_round(mdp, planned), ties)
    with progress_bar("planning", len(theta), progress) as advance:
        for j, visits in enumerate(plans):
            exposures[j] = stream.features @ visits.reshape(-1)
            advance(1)
    costs = exposures @ theta.T - values
    # A difference of large numbers: what is left of equal ones is rounding of the terms, and counts as none.
    turnover = np.abs(exposures) @ np.abs(theta).T
    costs[costs <= ties.absolute + ties.relative * turnover] = 0.0
    return costs


def _by_advantages(
    mdp: MDP, stream: LossStream, window: int, ties: TieRule, n_days: int, *, progress: bool
) -> FloatArray:
    costs = np.full((n_days, n_days), np.nan)
    at_once = max(1, BLOCK_BYTES // (8 * math.prod(mdp.shape)))
    plans = plan_occupancies(mdp, trailing_means(each_round(mdp, stream), window), ties)
    first = 0
    with progress_bar("planning", n_days, progress) as advance:
        for occupancies in _stacked(plans, at_once):
            days = advantages(mdp, islice(each_round(mdp, stream), first, None), ties)
            start = first
            for paid in _stacked(days, at_once):
                costs[first : first + len(occupancies), start : start + len(paid)] = occupancies @ paid.T
                start += len(paid)
            first += len(occupancies)
            advance(len(occupancies))
    return costs


def _stacked(arrays: Iterator[FloatArray], at_once: int) -> Iterator[FloatArray]:
    """Arrays [H, S, A] in matrices of at most `at_once` rows [H·S·A]."""
    while rows := [array.reshape(-1) for array in islice(arrays, at_once)]:
        yield np.stack(rows)


def _readable_again(mdp: MDP, stream: LossStream) -> LossStream:
    """The stream in a form that can be read twice, and by its factors where it has some."""
    if isinstance(stream, Negated) and isinstance(stream.stream, FactoredLosses):
        return FactoredLosses(-stream.stream.coefficients, stream.stream.features)
    if isinstance(stream, IterableLosses) or stream.n_rounds is None:
        rounds = list(each_round(mdp, stream))
        return ArrayLosses(np.stack(rounds) if rounds else np.empty((0, *mdp.shape)))
    return stream


def _check_choice(name: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        quoted = " or ".join(f'"{choice}"' for choice in choices)
        raise InputError(f"{name} is {given!r}, but must be {quoted}: choose one of them.")
