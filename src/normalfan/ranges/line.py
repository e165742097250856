"""Every plan along a line.

J*(θ + tδ) is concave and piecewise linear in t, a piece for each plan. Two pieces meet where a backup finds
nothing better; where it does, that is a piece between them (Eisner and Severance): 2B + 1 backups for B
breakpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import new_figure
from normalfan.problem.arrays import FloatArray, read_numbers, read_only
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan.ranges.reading import Directions, check_ways, read_today, read_window
from normalfan.ranges.today import Today
from normalfan.text import counted, html_table, number, printable

if TYPE_CHECKING:
    import polars

Piece: TypeAlias = tuple[float, float, float]

ROUNDING = 1e-12  # two plans whose costs differ by less, relatively, are one


@dataclass(frozen=True, eq=False, repr=False)
class Breakpoints:
    """Every plan along a line, n of them: what `breakpoints` returns.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]], feature_names=["buy", "make"])
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.breakpoints(arms, losses, direction="buy", within=(0, 10))
    Breakpoints: 2 plans for buy from 0 to 10, now 3; another plan from 5 on
    """

    name: str  # of the coefficient that moves
    now: float  # where it stands
    edges: FloatArray  # [n+1] plan i is optimal from edges[i] to edges[i+1]
    values: FloatArray  # [n+1] the best expected loss, or reward, at the edges
    prices: FloatArray  # [n+1] what today's plan costs beyond it there; between edges both are linear
    exposures: FloatArray  # [n] how much of the coefficient each plan takes
    today: Today  # the round

    def policy(self, i: int) -> FloatArray:
        """Plan i as a policy [H, S, A]."""
        middle = self.edges[[i, i + 1]].mean() - self.now
        return self.today.policy_at(np.array([middle]), np.zeros(1))

    def price(self, at: npt.ArrayLike) -> FloatArray:
        """What today's plan costs beyond the best one where the coefficient is `at`, within the line."""
        places = read_numbers("at", at)
        if not ((self.edges[0] <= places) & (places <= self.edges[-1])).all():
            raise InputError(
                f"at is {at!r}, but plans are known from {self.edges[0]} to {self.edges[-1]}: widen `within`."
            )
        return np.asarray(np.interp(places, self.edges, self.prices))

    def to_frame(self) -> polars.DataFrame:
        """One row for each plan."""
        import polars

        ends = {
            f"{name}_{side}": array[part]
            for name, array in (("coefficient", self.edges), ("value", self.values), ("price", self.prices))
            for side, part in (("from", slice(-1)), ("to", slice(1, None)))
        }
        return polars.DataFrame({"plan": range(len(self.exposures)), **ends, "exposure": self.exposures})

    def plot(self) -> Any:
        """Draw what today's plan costs along the line; returns a matplotlib figure."""
        figure, axes = new_figure("What today's plan costs", x=self.name, y="price")
        axes.plot(self.edges, self.prices, marker=".")
        axes.axvline(self.now, color="grey", linewidth=0.8)
        return figure

    def __repr__(self) -> str:
        others = ", ".join(map(number, self.edges[1:-1][:5].tolist())) + ", …" * (len(self.edges) > 7)
        return f"Breakpoints: {self._in_short()}" + (f"; another plan from {others} on" if others else "")

    def _repr_html_(self) -> str:
        columns = (self.edges[:-1], self.edges[1:], self.exposures, self.prices[:-1], self.prices[1:])
        rows = [list(map(number, row)) for row in zip(*columns, strict=True)][:50]
        head = ("from", "to", "exposure", "price at the start", "price at the end")
        return html_table(self._in_short(), head, rows)

    def _in_short(self) -> str:
        line = f"{printable(self.name):.40} from {number(self.edges[0])} to {number(self.edges[-1])}"
        return f"{counted(len(self.exposures), 'plan')} for {line}, now {number(self.now)}"


def breakpoints(
    mdp: MDP,
    losses: Losses,
    *,
    direction: Directions,
    within: tuple[float, float],
    at: int | str | None = None,
    ties: TieRule = DEFAULT_TIES,
) -> Breakpoints:
    """Find every plan that is optimal somewhere along a line, and what today's plan costs there.

    Plans that never differ in cost by more than rounding count as one.

    Parameters
    ----------
    mdp, losses, at, ties
        As in `ranging`.
    direction : str or array_like
        What moves: a feature's name, or a direction as coefficients [K] or a loss [H, S, A].
    within : (float, float)
        From where to where: values of the feature's coefficient, or multiples of the direction.

    Returns
    -------
    Breakpoints

    Raises
    ------
    InputError
        If there is no such round or feature, or `within` is no interval.

    Examples
    --------
    >>> import normalfan as nf
    >>> found = nf.breakpoints(nf.MDP([[0, 0]], initial=0, horizon=1), [[[3.0, 5.0]]],
    ...                        direction=[[[1.0, 0.0]]], within=(-5, 5))
    >>> found.edges, found.price([0.0, 4.0])
    (array([-5.,  2.,  5.]), array([0., 2.]))
    """
    today = read_today(mdp, losses, at, direction, ties)
    check_ways(today, "direction", 1, "a line has one")
    now = float(today.now[0])
    low, high = read_window("within", within)
    edges, slopes = _pieces(today, low - now, high - now)
    plan, _ = today.best_plans(np.where(edges < 0, -1.0, 1.0)[:, None])
    swept = today.backups(edges[:, None], np.ones((len(edges), 1)), plan=plan)
    return Breakpoints(
        name=today.names[0],
        now=now,
        edges=read_only(np.concatenate([[low], now + edges[1:-1], [high]])),
        values=read_only(0.0 + today.sign * swept.values),
        prices=read_only(swept.gaps),
        exposures=read_only(0.0 + today.sign * slopes),
        today=today,
    )


def _pieces(today: Today, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Where J* bends between `low` and `high`, both included, [n+1], and its slopes between, [n]."""

    # A piece is (t, J*(t), slope): the line through a point that was backed up.
    def pieces_at(places: list[float], side: float = 1.0) -> list[Piece]:
        along = np.ones((len(places), 1))
        swept = today.backups(np.array(places)[:, None], along, side=side)
        return list(zip(places, swept.values.tolist(), swept.slopes.tolist(), strict=True))

    (first,), (last,) = pieces_at([low], -1.0), pieces_at([high])
    steepest = max(abs(first[2]), abs(last[2]))
    size = abs(first[1]) + abs(last[1]) + steepest * (high - low)
    between, waiting = list[Piece](), [(first, last)]
    while waiting:
        found, pairs, waiting = pieces_at([_meet(*pair) for pair in waiting]), waiting, []
        for (left, right), piece in zip(pairs, found, strict=True):
            t, value, slope = piece
            is_lower = left[1] + left[2] * (t - left[0]) - value > ROUNDING * size
            if is_lower and left[2] - ROUNDING * steepest > slope > right[2] + ROUNDING * steepest:
                between.append(piece)
                waiting += [(left, piece), (piece, right)]
    pieces = [first, *sorted(between, key=lambda piece: -piece[2]), last]
    kept = [first, *(new for old, new in pairwise(pieces) if old[2] - new[2] > ROUNDING * steepest)]
    edges = np.array([low, *(_meet(*pair) for pair in pairwise(kept)), high])
    slopes = np.array([slope for *_, slope in kept])
    wide = np.diff(edges) > ROUNDING * (high - low)
    wide[0] |= not wide.any()
    return np.append(edges[:-1][wide], high), slopes[wide]


def _meet(left: Piece, right: Piece) -> float:
    """Where two lines meet, the left one steeper; the left end of a line that is the same."""
    fall = left[2] - right[2]
    if fall <= 0:
        return left[0]
    over = left[1] + left[2] * (right[0] - left[0]) - right[1]
    return min(max(right[0] - over / fall, left[0]), right[0])
