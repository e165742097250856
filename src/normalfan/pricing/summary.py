"""A priced stream in a few numbers: how often it mattered, where, and whether loss variation knew.

A round is *free* if its price is zero, *negligible* if its price is below one percent of the round's value
(|J*_t|), and *priced* otherwise. The first round has no plan before it and counts as none of them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.attribution import CostliestCell, costliest_cell
from normalfan.pricing.crossing import price
from normalfan.pricing.motion import PricedMotion, norm_name
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.losses import Losses, LossStream, as_stream, rounds_of
from normalfan.problem.mdp import MDP
from normalfan.text import counted, html_table, number, printable

NEGLIGIBLE = 0.01  # a price below this share of the round's value


@dataclass(frozen=True, slots=True)
class CostlyRound:
    """A round with a high price, and the cell of the plan that carries most of it.

    Attributes
    ----------
    round, name : int, str
        The round.
    price, value, variation : float
        Its price, its best expected loss, and how far the loss moved.
    variation_rank : int
        1 + the number of rounds that moved further.
    cell : CostliestCell or None
        Where most is paid; None where only a closer reading of a near-tie finds a price.
    """

    round: int
    name: str
    price: float
    value: float
    variation: float
    variation_rank: int
    cell: CostliestCell | None


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """A priced stream in a few numbers: what `summarise` returns.

    Attributes
    ----------
    rounds, free, negligible, priced : int
        How many rounds, and how many have no price, one below 1 % of the round's value, or a higher one.
    crossed : int
        Rounds whose optimal face is not the one before.
    total, value : float
        The sums of all prices, and of all best expected losses J*.
    costliest : tuple of CostlyRound
        Costliest first; rounds without a price are left out.
    norm : str
        Of the loss variation.
    free_variation : float
        The share of the loss variation that fell on free rounds.
    rank_correlation : float or None
        Spearman's, of price and variation; None where one of them is constant.
    shared : int
        How many of the costliest rounds are among as many that moved furthest.
    ambiguous : int
        Rounds whose price or crossing depends on a near-tie.
    total_lowest, total_highest : float
        The exact total lies between them: as far apart as rounding, and as near-ties leave it open.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[0.0, 9.0]]], [[[2.0, 1.5]]]]
    >>> summarise(arms, losses, nf.price_stream(arms, losses))
    Summary: 3 rounds, 1 free, 0 negligible, 1 priced, total price 0.5; costliest: 2 (0.5)
    """

    rounds: int
    free: int
    negligible: int
    priced: int
    crossed: int
    total: float
    value: float
    costliest: tuple[CostlyRound, ...]
    norm: str
    free_variation: float
    rank_correlation: float | None
    shared: int
    ambiguous: int
    total_lowest: float
    total_highest: float

    def __repr__(self) -> str:
        top = ", ".join(f"{printable(one.name):.40} ({number(one.price)})" for one in self.costliest[:3])
        return f"Summary: {self._in_short()}" + (f"; costliest: {top}" if top else "")

    def _repr_html_(self) -> str:
        places = ("step", "state", "old plan", "best action", "paid there")
        head = ("round", "price", "rank by variation", *places)
        rows = [
            (one.name, number(one.price), one.variation_rank, *_cell_texts(one.cell))
            for one in self.costliest
        ]
        return html_table(f"{self._in_short()}; the costliest rounds", head, rows)

    def _in_short(self) -> str:
        return (
            f"{counted(self.rounds, 'round')}, {self.free:,} free, {self.negligible:,} negligible, "
            f"{self.priced:,} priced, total price {number(self.total)}"
        )


def summarise(
    mdp: MDP,
    losses: Losses,
    motion: PricedMotion,
    *,
    costliest: int = 5,
    norm: str | float = "l1",
    ties: TieRule = DEFAULT_TIES,
) -> Summary:
    """Sum up a priced stream; its costliest rounds are read once more.

    Parameters
    ----------
    mdp : MDP
        The problem.
    losses : array [T, H, S, A] or LossStream
        The losses that were priced; they must be readable a second time.
    motion : PricedMotion
        What `price_stream(mdp, losses, ties=ties)` returned.
    costliest : int
        How many of the costliest rounds to look at.
    norm : str or float
        Of the loss variation: "l1", "l2" or "linf"; 1, 2 and inf mean the same.
    ties : TieRule
        The tie rule that the stream was priced with.

    Returns
    -------
    Summary
        Counts, totals and the costliest rounds.

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
    kinds = kinds_of_rounds(motion)
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
            cell=_costliest_cell(mdp, as_stream(losses), t, ties),
        )
        for t in motion.costliest(costliest).tolist()
    )
    counts = Counter(kinds.tolist())
    return Summary(
        rounds=len(kinds),
        **{kind: counts[kind] for kind in ("free", "negligible", "priced")},
        crossed=int(np.count_nonzero(motion.crossed)),
        total=motion.total,
        value=math.fsum(motion.values),
        costliest=costly,
        norm=norm_name(norm),
        free_variation=float(moved[motion.prices == 0].sum() / moved.sum()) if moved.any() else 0.0,
        rank_correlation=_rank_correlation(motion.prices[1:], moved[1:]),
        shared=sum(one.variation_rank <= len(costly) for one in costly),
        ambiguous=int(np.count_nonzero(motion.ambiguous)),
        total_lowest=_sum_rounded(motion.lowest_prices, -math.inf),
        total_highest=_sum_rounded(motion.highest_prices, math.inf),
    )


def kinds_of_rounds(motion: PricedMotion) -> npt.NDArray[np.str_]:
    """[T]: "first", "free", "negligible" or "priced"."""
    small = motion.prices < NEGLIGIBLE * np.abs(motion.values)
    kinds = np.where(motion.prices == 0, "free", np.where(small, "negligible", "priced"))
    kinds[:1] = "first"
    return kinds


def ranks_from_largest(numbers: FloatArray) -> IntArray:
    """1 + how many are larger, for each number: equal ones share a rank."""
    return 1 + len(numbers) - np.searchsorted(np.sort(numbers), numbers, side="right")


def _costliest_cell(mdp: MDP, stream: LossStream, t: int, ties: TieRule) -> CostliestCell | None:
    previous, loss = next(rounds_of(stream, t - 1, t + 1).blocks(mdp.shape, 2))
    crossing = price(optimal_face(mdp, previous, ties=ties), loss, ties=ties)
    return costliest_cell(mdp, crossing, loss, ties=ties)


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
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)
