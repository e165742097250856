"""The priced motion of a stream: what every round cost, and the usual yardsticks beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from normalfan.errors import InputError
from normalfan.plots import bar_width, new_figure, round_axis
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.text import counted, html_table, number, printable

if TYPE_CHECKING:
    import polars

NORMS = ("l1", "l2", "linf")

_NORM_NAMES = {1: "l1", 2: "l2", np.inf: "linf", "inf": "linf"}

Column = TypeVar("Column")


class FullOnly(Generic[Column]):
    """A field that only detail="full" fills: without it None inside, and refused when asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, motion: None, owner: type) -> None: ...
    @overload
    def __get__(self, motion: PricedMotion, owner: type) -> Column: ...
    def __get__(self, motion: PricedMotion | None, owner: type) -> Column | None:
        if motion is None:
            return None  # the field's default
        column: Column | None = vars(motion)[self.name]
        if column is None:
            raise InputError(
                f'{self.name} is asked for, but this stream was priced with detail="prices", which leaves it '
                f'out: price it again with detail="full".'
            )
        return column

    def __set__(self, motion: PricedMotion, column: Column | None) -> None:
        vars(motion)[self.name] = column


@dataclass(frozen=True, eq=False, repr=False)
class PricedMotion:
    """Every round of a stream, priced: what `price_stream` returns.

    Round 0 has no previous face: its price and its variation are 0. After ``detail="prices"`` there are no
    `by_step`, `variations`, `margins` and `advantage_gaps`; asking for them is an `InputError`.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.ArrayLosses([[0.0, 1.0], [0.0, 9.0], [2.0, 1.5]], axes="TA")
    >>> nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), losses)
    PricedMotion: 3 rounds, 1 crossed, 1 with a price, total 0.5; costliest: 2 (0.5)
    """

    prices: FloatArray  # [T]: Γ_t, what keeping the best of the previous optimal plans costs
    values: FloatArray  # [T]: J*_t, the best expected loss
    crossed: BoolArray  # [T]: the optimal face is not the previous one
    dimensions: IntArray  # [T]: of the optimal face; 0 if one plan alone is optimal
    ambiguous: BoolArray  # [T]: the price or the crossing depends on how a near-tie is read
    lowest_prices: FloatArray  # [T]: the exact price of the numbers given is at least this
    highest_prices: FloatArray  # [T]: and at most this; they differ by rounding, or by the open near-ties
    decided_exactly: BoolArray  # [T]: the near-ties were decided in rational arithmetic
    by_step: FullOnly[FloatArray] = FullOnly()  # [T, H]: the part of each price paid at each step
    variations: FullOnly[FloatArray] = FullOnly()  # [T, 3]: ‖ℓ_t − ℓ_{t−1}‖ in L1, L2 and L∞
    margins: FullOnly[FloatArray] = FullOnly()  # [T]: what the best plan outside the face loses, or ∞
    margin_exact: FullOnly[BoolArray] = FullOnly()  # [T]: the margin is exact, not a lower bound
    advantage_gaps: FullOnly[FloatArray] = FullOnly()  # [T]: the least advantage of an action left out
    round_names: tuple[str, ...] | None = None  # [T]; None if rounds are numbered
    step_names: tuple[str, ...] | None = None  # [H]; None if steps are numbered

    @property
    def details(self) -> PricedMotion:
        """The motion itself: what a full pricing adds used to be found here, and callers still look."""
        return self

    @property
    def total(self) -> float:
        """The sum of all prices, rounded once at the end."""
        return math.fsum(self.prices)

    def variation(self, norm: str | float = "l1") -> FloatArray:
        """‖ℓ_t − ℓ_{t−1}‖ [T] in "l1", "l2" or "linf" (or 1, 2, inf): how far the loss moved."""
        return in_norm(self.variations, norm)

    def costliest(self, count: int) -> IntArray:
        """Indices of at most `count` rounds with a price, costliest first."""
        order = np.argsort(-self.prices, kind="stable")[:count]
        return order[self.prices[order] > 0]

    def round_name(self, t: int) -> str:
        """What round `t` is called: its name, or its number if rounds have no names."""
        return self.round_names[t] if self.round_names else str(t)

    def columns(self) -> dict[str, Any]:
        """Arrays [T] by their name in frames, files and `PricedRound`: `price`, `value`, …; no `by_step`."""
        columns: dict[str, Any] = {
            "price": self.prices,
            "value": self.values,
            "crossed": self.crossed,
            "dimension": self.dimensions,
            "ambiguous": self.ambiguous,
            "lowest_price": self.lowest_prices,
            "highest_price": self.highest_prices,
            "decided_exactly": self.decided_exactly,
        }
        if self._is_full:
            columns |= {f"variation_{norm}": self.variation(norm) for norm in NORMS}
            columns |= {
                "margin": self.margins,
                "margin_exact": self.margin_exact,
                "advantage_gap": self.advantage_gaps,
            }
        return columns

    def to_frame(self, *, long: bool = False) -> polars.DataFrame:
        """The rounds as a table: `round` (name or number) and every column of `columns`.

        With `long`, one row for each round and step: `round`, `step`, and the `price` paid there.
        """
        import polars

        rounds = np.array(self.round_names or range(len(self.prices)))
        if not long:
            return polars.DataFrame({"round": rounds} | self.columns())
        n_rounds, horizon = self.by_step.shape
        steps = np.array(self.step_names or range(horizon))
        return polars.DataFrame(
            {
                "round": np.repeat(rounds, horizon),
                "step": np.tile(steps, n_rounds),
                "price": self.by_step.ravel(),
            }
        )

    def plot(self, norm: str | float = "l1") -> Any:
        """Draw every price and, below, how far the loss moved: a matplotlib figure."""
        moved = self.variation(norm)
        figure, above = new_figure("What keeping the previous plan costs", y="price", size=(7.2, 4.8))
        grid = figure.add_gridspec(2, 1, height_ratios=(2, 1))
        above.set_subplotspec(grid[0])
        below = figure.add_subplot(grid[1], sharex=above)
        below.set(xlabel="round", ylabel=f"variation ({norm_name(norm)})")
        below.spines[["top", "right"]].set_visible(False)
        at, width = round_axis(below, self.round_names, len(moved)), bar_width(len(moved))
        above.vlines(at, 0.0, self.prices, linewidth=width)
        above.set_ylim(bottom=0.0)
        above.tick_params(labelbottom=False)
        below.vlines(at, 0.0, moved, linewidth=width, color="grey")
        below.set_ylim(bottom=0.0)
        return figure

    def __repr__(self) -> str:
        top = ", ".join(
            f"{printable(self.round_name(t)):.40} ({number(self.prices[t])})" for t in self.costliest(3)
        )
        return f"PricedMotion: {self._in_short()}" + (f"; costliest: {top}" if top else "")

    def _repr_html_(self) -> str:
        top = self.costliest(5)
        rows = [(self.round_name(t), number(self.prices[t]), number(self.values[t])) for t in top]
        return html_table(f"{self._in_short()}; the costliest rounds", ("round", "price", "value"), rows)

    @property
    def _is_full(self) -> bool:
        return vars(self)["by_step"] is not None

    def _in_short(self) -> str:
        text = (
            f"{counted(len(self.prices), 'round')}, {np.count_nonzero(self.crossed):,} crossed, "
            f"{np.count_nonzero(self.prices):,} with a price, total {number(self.total)}"
        )
        unsure = np.count_nonzero(self.ambiguous)
        return f"{text}, {unsure:,} ambiguous" if unsure else text


def in_norm(variations: FloatArray, norm: str | float) -> FloatArray:
    """The column of `variations` [T, 3] that belongs to a norm."""
    return variations[:, NORMS.index(norm_name(norm))]


def norm_name(norm: str | float) -> str:
    """One of `NORMS`, however it is written."""
    asked = norm.lower() if isinstance(norm, str) else norm
    name = _NORM_NAMES.get(asked, asked)
    if name not in NORMS:
        raise InputError(
            f'norm is {norm!r}, but must be "l1", "l2" or "linf" (or 1, 2, inf): choose one of them.'
        )
    return str(name)
