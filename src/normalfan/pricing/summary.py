"""A priced stream in a few numbers: how often it mattered, where, and whether loss variation knew.

A round is *free* if its price is zero, *negligible* if its price is below one percent of the round's value
(|J*_t|), and *priced* otherwise. A round without a plan, such as the first, counts as none of them.

Slow drift hides from a plan that is one round old: each step is free or nearly so. So beside the total of
what was priced stand those of a plan one round old and of the first plan, never changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import FIRST, PREVIOUS, Plans
from normalfan.pricing.dynamics import rounds_again
from normalfan.pricing.motion import CostliestCell, PricedMotion, norm_name
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.losses import Losses, rounds_of
from normalfan.problem.mdp import MDP
from normalfan.text import counted, html_table, number, printable

NEGLIGIBLE = 0.01  # a price below this share of the round's value


@dataclass(frozen=True, slots=True)
class CostlyRound:
    """A round with a high price, and the cell of the plan that carries most of it."""

    round: int  # its number
    name: str  # what it is called
    price: float  # Γ_t
    value: float  # J*_t, the best expected loss, or reward
    variation: float  # how far the loss moved
    variation_rank: int  # 1 + the number of rounds that moved further
    cell: CostliestCell | None  # None where only a closer reading of a near-tie finds a price


@dataclass(frozen=True, slots=True)
class MovedSummary:
    """The rounds whose dynamics are not those of the round before, in a few numbers: sums over them."""

    rounds: int  # how many
    price: float  # what keeping the plan cost
    until_surprise: float  # if plans are made anew at the first unforeseen move
    market_alone: float  # had only the losses, or prices, moved
    dynamics_alone: float  # had only the dynamics moved
    interaction: float  # the rest, of either sign
    unsplit: int  # rounds that are in none of the last three, for one of the two cannot move alone


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """A priced stream in a few numbers: what `summarise` returns.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[0.0, 9.0]]], [[[2.0, 1.5]]]]
    >>> summarise(arms, losses, nf.price_stream(arms, losses))
    Summary: 3 rounds, 1 free, 0 negligible, 1 priced, price 0.5 (never changed: 0.5); costliest: 2 (0.5)
    """

    plan: str  # what was priced, in words
    plan_in_short: str  # likewise
    rewards: bool  # values are rewards; prices are what is lost
    rounds: int  # how many
    planless: int  # rounds at the beginning that have no such plan
    free: int  # rounds without a price
    negligible: int  # with a price below 1 % of the round's value
    priced: int  # with a higher one
    crossed: int  # rounds whose optimal face is not that of the plan
    total: float  # the sum of all prices
    one_round_old: float  # the total if the plan of the round before is kept
    never_changed: float | None  # the total if the plan of the first round is kept; None if dynamics move
    value: float  # the sum of all best expected losses J*, or rewards
    costliest: tuple[CostlyRound, ...]  # costliest first; rounds without a price are left out
    norm: str  # of the loss variation
    free_variation: float  # the share of the loss variation that fell on free rounds
    rank_correlation: float | None  # Spearman's, of price and variation; None where one is constant
    shared: int  # how many of the costliest rounds are among as many that moved furthest
    ambiguous: int  # rounds whose price or crossing depends on a near-tie
    total_lowest: float  # the exact total is at least this
    total_highest: float  # and at most this; they differ by rounding, and by the open near-ties
    never_changed_prices: FloatArray | None = field(compare=False)  # [T]: of the plan of the first round
    moved: MovedSummary | None = None  # of the rounds whose dynamics moved; None if there is one problem

    def __repr__(self) -> str:
        top = ", ".join(f"{printable(one.name):.40} ({number(one.price)})" for one in self.costliest[:3])
        return f"Summary: {self._in_short()}" + (f"; costliest: {top}" if top else "")

    def _repr_html_(self) -> str:
        places = ("step", "state", self.plan_in_short.removeprefix("the "), "best action", "paid there")
        head = ("round", "price", "rank by variation", *places)
        rows = [
            (one.name, number(one.price), one.variation_rank, *_cell_texts(one.cell))
            for one in self.costliest
        ]
        return html_table(f"{self._in_short()}; the costliest rounds", head, rows)

    def to_dict(self) -> dict[str, Any]:
        """All that is no array, as `--json` prints it."""
        return {name: entry for name, entry in asdict(self).items() if not isinstance(entry, np.ndarray)}

    def _in_short(self) -> str:
        text = (
            f"{counted(self.rounds, 'round')}, {self.free:,} free, {self.negligible:,} negligible, "
            f"{self.priced:,} priced, price {number(self.total)}"
        )
        never = self.never_changed
        return text if never is None else f"{text} (never changed: {number(never)})"


def summarise(
    mdp: MDP | Sequence[MDP],
    losses: Losses,
    motion: PricedMotion,
    *,
    costliest: int = 5,
    norm: str | float = "l1",
    ties: TieRule = DEFAULT_TIES,
) -> Summary:
    """Sum up a priced stream: the losses are read once more, for the plan that is never changed.

    Parameters
    ----------
    mdp : MDP or sequence of MDP
        The problem that was priced, or the problems if they move.
    losses : array_like [T, H, S, A] or LossStream
        The losses that were priced; they must be readable a second time.
    motion : PricedMotion
        What `price_stream(mdp, losses, ties=ties)` returned, against whichever plan.
    costliest : int, default 5
        How many of the costliest rounds to look at.
    norm : {"l1", "l2", "linf", 1, 2, inf}, default "l1"
        Of the loss variation.
    ties : TieRule, optional

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        If `motion` has no details, or `losses` cannot be read again.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms, losses = nf.MDP([[0, 0]], initial=0, horizon=1), [[[[0.0, 1.0]]], [[[2.0, 1.5]]]]
    >>> summarise(arms, losses, nf.price_stream(arms, losses)).costliest[0].cell.paid
    0.5
    """
    problem_of, stream = rounds_again(mdp, losses, motion)
    rounds_of(stream, slice(1))  # refuses what was used up

    def prices_of(plans: Plans) -> FloatArray:
        if motion.plans.name == plans.name:
            return motion.prices
        against = "first" if plans is FIRST else "previous"
        return price_stream(problem_of(0), stream, against=against, ties=ties, detail="prices").prices

    kinds = kinds_of_rounds(motion)
    planless = motion.plans.planless
    unchanging = prices_of(FIRST) if motion.moved is None else None
    moved = motion.variation(norm)
    ranks = ranks_from_largest(moved)
    costly = tuple(
        CostlyRound(
            round=t,
            name=motion.round_name(t),
            price=float(motion.prices[t]),
            value=float(motion.values[t]),
            variation=float(moved[t]),
            variation_rank=int(ranks[t]),
            cell=motion.costliest_cell(t),
        )
        for t in motion.costliest(costliest).tolist()
    )
    counts = Counter(kinds.tolist())
    return Summary(
        plan=motion.plans.name,
        plan_in_short=motion.plans.short,
        rewards=motion.rewards,
        rounds=len(kinds),
        planless=min(planless, len(kinds)),
        **{kind: counts[kind] for kind in ("free", "negligible", "priced")},
        crossed=int(np.count_nonzero(motion.crossed)),
        total=motion.total,
        one_round_old=math.fsum(prices_of(PREVIOUS)),
        never_changed=None if unchanging is None else math.fsum(unchanging),
        value=math.fsum(motion.values),
        costliest=costly,
        norm=norm_name(norm),
        free_variation=float(moved[motion.prices == 0].sum() / moved.sum()) if moved.any() else 0.0,
        rank_correlation=_rank_correlation(motion.prices[planless:], moved[planless:]),
        shared=sum(one.variation_rank <= len(costly) for one in costly),
        ambiguous=int(np.count_nonzero(motion.ambiguous)),
        total_lowest=_sum_rounded(motion.lowest_prices, -math.inf),
        total_highest=_sum_rounded(motion.highest_prices, math.inf),
        never_changed_prices=unchanging,
        moved=None if motion.moved is None else _moved(motion, motion.moved.dynamics),
    )


def _moved(motion: PricedMotion, dynamics: IntArray) -> MovedSummary:
    changed = np.flatnonzero(np.diff(dynamics)) + 1
    parts = {
        name: getattr(motion, name)[changed] for name in ("market_alone", "dynamics_alone", "interaction")
    }
    told = np.isfinite(parts["interaction"])
    return MovedSummary(
        rounds=len(changed),
        price=math.fsum(motion.prices[changed]),
        until_surprise=math.fsum(motion.until_surprise[changed]),
        **{name: math.fsum(column[told]) for name, column in parts.items()},
        unsplit=int(np.count_nonzero(~told)),
    )


def kinds_of_rounds(motion: PricedMotion) -> npt.NDArray[np.str_]:
    """[T]: "planless", "free", "negligible" or "priced"."""
    small = motion.prices < NEGLIGIBLE * np.abs(motion.values)
    kinds = np.where(motion.prices == 0, "free", np.where(small, "negligible", "priced"))
    kinds[: motion.plans.planless] = "planless"
    return kinds


def ranks_from_largest(numbers: FloatArray) -> IntArray:
    """1 + how many are larger, for each number: equal ones share a rank."""
    return 1 + len(numbers) - np.searchsorted(np.sort(numbers), numbers, side="right")


def _sum_rounded(numbers: FloatArray, towards: float) -> float:
    """The sum, rounded towards −∞ or ∞: the nearest float, or the next if that is on the wrong side."""
    total = math.fsum(numbers)
    missing = math.fsum((*numbers, -total))
    return math.nextafter(total, towards) if missing * towards > 0 else total


def _cell_texts(cell: CostliestCell | None) -> tuple[str, ...]:
    if cell is None:
        return ("–",) * 5
    return cell.step, cell.state, cell.action, cell.best_action, number(cell.paid)


def _rank_correlation(first: FloatArray, second: FloatArray) -> float | None:
    """Spearman's; None where one of the columns is constant."""
    # Not scipy.stats.spearmanr: its import would take a third of the time of `normalfan price`.
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    # Equal numbers share the mean of their ranks: that from above and that from below, added up.
    ranks = [ranks_from_largest(-one) - ranks_from_largest(one) + len(one) for one in (first, second)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
