"""Holding costs: what it costs to keep any plan on any later day.

A plan of day j with occupancy q_j costs C[j,t] = ⟨q_j, ℓ_t⟩ − J*_t = ⟨q_j, A_t⟩ ≥ 0 on day t beyond the best.
For factored losses ℓ_t = Σ_k θ_t[k] Φ_k a plan matters through its K exposures ⟨q_j, Φ_k⟩ only: C is one
product of an [n, K] and a [K, n] matrix. Other losses take the second form, in blocks. The price of a *face*
is that of its best policy on each day, min over u ∈ F_j of ⟨u, ℓ_t⟩ − J*_t: never more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, occupancy, optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.stream import BLOCK_BYTES, block_rounds, price_stream
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import (
    ArrayLosses,
    FactoredLosses,
    IterableLosses,
    LossStream,
    Negated,
    as_stream,
    names_of_rounds,
)
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.text import counted

Known: TypeAlias = Literal["before", "after"]
Reading: TypeAlias = Literal["plan", "face"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HoldingCosts:
    """What keeping every plan costs on every later day; made by `holding_costs`.

    Examples
    --------
    >>> HoldingCosts(np.array([[0.0, 1.0], [np.nan, 0.0]]), np.zeros(2), "before", 1)
    HoldingCosts: 2 days, plans for the last day, losses known before acting
    """

    costs: FloatArray  # [n, n] at [d, t] of the plan that serves from day d on, on day t; nan where t < d
    values: FloatArray  # [n] J*, the best expected loss of each day
    known: Known  # whether the loss of a day is known before acting on it, or only after
    window: int  # plans are made for the mean loss of so many days
    round_names: tuple[str, ...] | None = None  # [n] what the days are called; None where they are numbered

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
        return f"{counted(self.n_days, 'day')}, plans for {plans}, losses known {self.known} acting"

    def day_name(self, t: int) -> str:
        """The name of the round of day t, or its number in the stream."""
        return self.round_names[t] if self.round_names else str(t + self.first_round)

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
    mdp: MDP,
    losses: npt.ArrayLike | LossStream | Iterable[npt.ArrayLike],
    *,
    window: int = 1,
    known: Known = "before",
    reading: Reading = "plan",
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
) -> HoldingCosts:
    """Price every plan on every later day, C[d,t] = ⟨q_d, ℓ_t⟩ − J*_t.

    Parameters
    ----------
    mdp : MDP
    losses : array_like or LossStream
        One round a day.
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
    _check_choice("known", known, get_args(Known))
    _check_choice("reading", reading, get_args(Reading))
    check_days("window", window, "1 is the last day")
    given = as_stream(losses)
    stream = _readable_again(mdp, given)
    values = price_stream(mdp, stream, ties=ties, detail="prices").values
    if reading == "face":
        costs = _of_faces(mdp, stream, window, ties, progress=progress)
    elif isinstance(stream, FactoredLosses):
        costs = _by_exposures(mdp, stream, window, ties, values, progress=progress)
    else:
        costs = _by_advantages(mdp, stream, window, ties, len(values), progress=progress)
    before = HoldingCosts(_from_first_day_on(costs), values, "before", int(window), names_of_rounds(given))
    return before if known == "before" else before.learned_after()


def _from_first_day_on(costs: FloatArray) -> FloatArray:
    """The costs, without those of days before a plan serves."""
    return read_only(np.where(np.tri(len(costs), k=-1, dtype=bool), np.nan, costs))


def _by_exposures(
    mdp: MDP, stream: FactoredLosses, window: int, ties: TieRule, values: FloatArray, *, progress: bool
) -> FloatArray:
    theta = stream.coefficients
    planned = FactoredLosses(np.array(list(_trailing_means(theta, window))), stream.features)
    exposures = np.empty_like(theta)
    with progress_bar("planning", len(theta), progress) as advance:
        for j, loss in enumerate(_each_round(mdp, planned)):
            exposures[j] = stream.features @ _plan(mdp, loss, ties)
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
    plans = (_plan(mdp, loss, ties) for loss in _trailing_means(_each_round(mdp, stream), window))
    first = 0
    with progress_bar("planning", n_days, progress) as advance:
        for occupancies in _stacked(plans, at_once):
            days = islice(_each_round(mdp, stream), first, None)
            advantages = (optimal_backup(mdp, loss).settled(mdp, ties).reshape(-1) for loss in days)
            start = first
            for paid in _stacked(advantages, at_once):
                costs[first : first + len(occupancies), start : start + len(paid)] = occupancies @ paid.T
                start += len(paid)
            first += len(occupancies)
            advance(len(occupancies))
    return costs


def _of_faces(mdp: MDP, stream: LossStream, window: int, ties: TieRule, *, progress: bool) -> FloatArray:
    # A stream is priced against the face of the round before. So for each age k the rounds are laid out in
    # pairs, the loss m_j that a plan is made for and the day on which it is kept, m_0, ℓ_k, m_1, ℓ_{k+1}, …,
    # and every second price is one of those wanted.
    if isinstance(stream, FactoredLosses):
        days, features = stream.coefficients, stream.features
    else:
        days, features = np.stack(list(_each_round(mdp, stream))), None
    planned = np.stack(list(_trailing_means(days, window)))
    n_days = len(days)
    costs = np.full((n_days, n_days), np.nan)
    with progress_bar("pricing faces", n_days, progress) as advance:
        for age in range(n_days):
            plans = n_days - age
            pairs = np.stack([planned[:plans], days[age:]], axis=1).reshape(2 * plans, *days.shape[1:])
            losses = ArrayLosses(pairs) if features is None else FactoredLosses(pairs, features)
            prices = price_stream(mdp, losses, ties=ties, detail="prices").prices
            costs[range(plans), range(age, n_days)] = prices[1::2]
            advance(1)
    return costs


def _each_round(mdp: MDP, stream: LossStream) -> Iterator[FloatArray]:
    """The losses [H, S, A] of a stream, each once."""
    shared = 0
    for block in stream.blocks(mdp.shape, block_rounds(mdp, is_view=stream.is_view)):
        yield from block[shared:]
        shared = 1


def _trailing_means(losses: Iterable[FloatArray], window: int) -> Iterator[FloatArray]:
    """The mean of each loss and the `window` − 1 before it; of fewer at the beginning."""
    recent = deque[FloatArray](maxlen=window)
    for loss in losses:
        recent.append(loss)
        yield loss if len(recent) == 1 else np.mean(recent, axis=0)


def _plan(mdp: MDP, loss: FloatArray, ties: TieRule) -> FloatArray:
    """[H·S·A]: the occupancy of a plan that takes, of optimal actions, the one with the lowest index."""
    tied = optimal_backup(mdp, loss).tied(mdp, ties)
    return occupancy(mdp, as_deterministic_policy(mdp, tied.argmax(axis=2))).reshape(-1)


def _stacked(vectors: Iterator[FloatArray], at_once: int) -> Iterator[FloatArray]:
    """Vectors as the rows of matrices, `at_once` of them in each."""
    while rows := list(islice(vectors, at_once)):
        yield np.stack(rows)


def _readable_again(mdp: MDP, stream: LossStream) -> LossStream:
    """The stream in a form that can be read twice, and by its factors where it has some."""
    if isinstance(stream, Negated) and isinstance(stream.stream, FactoredLosses):
        return FactoredLosses(-stream.stream.coefficients, stream.stream.features)
    if isinstance(stream, IterableLosses) or stream.n_rounds is None:
        rounds = list(_each_round(mdp, stream))
        return ArrayLosses(np.stack(rounds) if rounds else np.empty((0, *mdp.shape)))
    return stream


def check_days(name: str, days: int, remedy: str) -> None:
    """Refuse what is not a number of days."""
    if isinstance(days, bool) or not isinstance(days, int | np.integer) or days < 1:
        raise InputError(f"{name} is {days!r}, but must be a whole number of days from 1: {remedy}.")


def _check_choice(name: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        quoted = " or ".join(f'"{choice}"' for choice in choices)
        raise InputError(f"{name} is {given!r}, but must be {quoted}: choose one of them.")
