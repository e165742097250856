"""The priced motion of a stream: what every round cost, and the usual yardsticks beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from normalfan.dates import periods_of
from normalfan.errors import InputError, check_choice
from normalfan.plots import bar_width, new_figure, round_axis
from normalfan.pricing.blocks import DETAILS
from normalfan.pricing.crossing import PREVIOUS, Plans, keeping
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, read_only
from normalfan.problem.mdp import Labels
from normalfan.text import counted, html_table, number, printable

if TYPE_CHECKING:
    import polars

NORMS = ("l1", "l2", "linf")

_NORM_NAMES = {1: "l1", 2: "l2", np.inf: "linf", "inf": "linf"}

COLUMNS = (
    *("prices", "values", "crossed", "dimensions", "ambiguous", "lowest_prices", "highest_prices"),
    *("decided_exactly", "dynamics", "until_surprise", "variations", "margins", "margin_exact"),
    *("advantage_gaps", "market_alone", "dynamics_alone", "interaction", "effective_variations"),
    "transition_variations",
)
"""Arrays [T], or [T, 3] of the three norms, in the order of frames, where their names are in the singular."""

NONE: Callable[[], Any] = NoneType


@dataclass(frozen=True, slots=True)
class CostliestCell:
    """The step and state at which the plan that is priced pays most, the first of them in order.

    Actions with the same loss and the same distribution of the next state are one move. It is called by the
    shortest of their names, the first of them in order: an empty battery that is told to discharge rests.
    """

    step: str  # by name, as the next three
    state: str  # in which it is
    action: str  # what the plan that is priced does there
    best_action: str  # what is optimal under the new loss
    paid: float  # the part of the price paid there
    step_index: int  # the same by index
    state_index: int  # of `state`
    action_index: int  # of `action`
    best_action_index: int  # of `best_action`


@dataclass(frozen=True, eq=False)
class Moved:
    """What is told of a stream whose dynamics move, beside its prices."""

    dynamics: IntArray  # [T]: the problem of each round, of equal ones the first
    until_surprise: FloatArray  # [T]: the price, if plans are made anew at the first unforeseen move
    transition_variations: FloatArray | None = None  # [T]: V^P, how far the transitions moved, from 0 to 2H
    market_alone: FloatArray | None = None  # [T]: the price, had only the losses, or prices, moved
    dynamics_alone: FloatArray | None = None  # [T]: the price, had only the dynamics moved
    effective_variations: FloatArray | None = None  # [T, 3]: how far both moved, as a loss in old dynamics


@dataclass(frozen=True, eq=False, repr=False)
class PricedMotion:
    """Every round of a stream, priced: what `price_stream` returns.

    Rounds without the plan that was asked for (round 0 has none before it) have price 0. After
    ``detail="prices"`` there are no `by_step`, `variations`, `margins` and `advantage_gaps`; asking for what
    was left out is an `InputError`.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.ArrayLosses([[0.0, 1.0], [0.0, 9.0], [2.0, 1.5]], axes="TA")
    >>> nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), losses)
    PricedMotion: 3 rounds, 1 crossed, 1 with a price, total 0.5; costliest: 2 (0.5)
    """

    prices: FloatArray  # [T]: Γ_t, what keeping the best of the previous optimal plans costs
    values: FloatArray  # [T]: J*_t, the best expected loss, or reward
    crossed: BoolArray  # [T]: the optimal face is not the previous one
    dimensions: IntArray  # [T]: of the optimal face; 0 if one plan alone is optimal
    ambiguous: BoolArray  # [T]: the price or the crossing depends on how a near-tie is read
    lowest_prices: FloatArray  # [T]: the exact price of the numbers given is at least this
    highest_prices: FloatArray  # [T]: and at most this; they differ by rounding, or by the open near-ties
    decided_exactly: BoolArray  # [T]: the near-ties were decided in rational arithmetic
    by_step: FloatArray = field(default_factory=NONE)  # [T, H]: the part of each price paid at each step
    cells: IntArray = field(default_factory=NONE)  # [T, 4]: costliest step, state, action, best action; or -1
    cell_prices: FloatArray = field(default_factory=NONE)  # [T]: the part of each price paid there
    variations: FloatArray = field(default_factory=NONE)  # [T, 3]: ‖ℓ_t − ℓ_{t−1}‖ in L1, L2 and L∞
    margins: FloatArray = field(default_factory=NONE)  # [T]: what the best plan off the face loses, or ∞
    margin_exact: BoolArray = field(default_factory=NONE)  # [T]: the margin is exact, not a lower bound
    advantage_gaps: FloatArray = field(default_factory=NONE)  # [T]: least advantage of an action left out
    round_names: tuple[str, ...] | None = None  # [T]; None if rounds are numbered
    labels: Labels = field(default_factory=Labels)  # of steps, states and actions
    plans: Plans = PREVIOUS  # what was priced
    moved: Moved | None = None  # what is told if dynamics move; None if there is one problem
    rewards: bool = False  # `values` are rewards, the more the better; prices are what is lost either way

    def __post_init__(self) -> None:
        for name in DETAILS:  # if not asked for, the attribute is missing, and `__getattr__` says why
            if vars(self)[name] is None:
                del vars(self)[name]

    def __getattr__(self, name: str) -> NoReturn:
        if name not in DETAILS:
            raise AttributeError(name)
        _left_out(name)

    @property
    def details(self) -> PricedMotion:
        """The motion itself: what a full pricing adds used to be found here, and callers still look."""
        return self

    @property
    def total(self) -> float:
        """The sum of all prices, rounded once at the end."""
        return math.fsum(self.prices)

    @property
    def kept_values(self) -> FloatArray:
        """[T]: the expected loss, or reward, of the plans that were priced."""
        kept: FloatArray = self.values - self.prices if self.rewards else self.values + self.prices
        return kept

    def variation(self, norm: str | float = "l1") -> FloatArray:
        """‖ℓ_t − ℓ_{t−1}‖ [T] in "l1", "l2" or "linf" (or 1, 2, inf): how far the loss moved."""
        return in_norm(self.variations, norm)

    @property
    def until_surprise(self) -> FloatArray:
        """[T]: the price, if the old plan is given up at the first move that its dynamics held impossible."""
        return self._if_moved("until_surprise", self.prices)

    @property
    def market_alone(self) -> FloatArray:
        """[T]: the price, had only the losses moved; by source, only their coefficients."""
        return self._if_moved("market_alone", self.prices)

    @property
    def dynamics_alone(self) -> FloatArray:
        """[T]: the price, had only the dynamics moved (the start is part of them)."""
        return self._if_moved("dynamics_alone", 0.0 * self.prices)

    @property
    def interaction(self) -> FloatArray:
        """[T]: price − market alone − dynamics alone, of either sign."""
        return np.asarray(self.prices - self.market_alone - self.dynamics_alone)

    def shapley(self) -> tuple[FloatArray, FloatArray]:
        """The parts [T] of the price of market and dynamics, the interaction shared equally by both."""
        half = self.interaction / 2
        return self.market_alone + half, self.dynamics_alone + half

    @property
    def transition_variations(self) -> FloatArray:
        """[T]: V^P = Σ_h max_{s,a} ‖ΔP_h(·|s,a)‖₁, how far the transitions moved."""
        return self._if_moved("transition_variations", 0.0 * self.prices)

    def effective_variation(self, norm: str | float = "l1") -> FloatArray:
        """‖ℓ̃_t − ℓ_{t−1}‖ [T]: how far loss and dynamics moved together, as a loss in the old dynamics."""
        if self.moved is None:
            return self.variation(norm)
        return in_norm(self._if_moved("effective_variations", self.prices), norm)

    def _if_moved(self, name: str, otherwise: FloatArray) -> FloatArray:
        column: FloatArray | None = otherwise if self.moved is None else getattr(self.moved, name)
        return _left_out(name) if column is None else column

    def costliest(self, count: int) -> IntArray:
        """Indices of at most `count` rounds with a price, costliest first."""
        order = np.argsort(-self.prices, kind="stable")[:count]
        return order[self.prices[order] > 0]

    def round_name(self, t: int) -> str:
        """What round `t` is called: its name, or its number if rounds have no names."""
        return self.round_names[t] if self.round_names else str(t)

    def costliest_cell(self, t: int) -> CostliestCell | None:
        """Where most of the price of round `t` is paid, by name; None if nothing is."""
        labels, (h, s, action, best) = self.labels, self.cells[t].tolist()
        if h < 0:
            return None
        names = (labels.step(h), labels.state(s), labels.action(action), labels.action(best))
        return CostliestCell(*names, float(self.cell_prices[t]), h, s, action, best)

    def columns(self) -> dict[str, Any]:
        """Arrays [T] by their name in frames, files and `PricedRound`: `price`, `value`, …; no `by_step`."""
        told = dict(vars(self))
        if self.moved is not None:
            told |= vars(self.moved)
            if self.moved.market_alone is not None and self.moved.dynamics_alone is not None:
                told["interaction"] = self.interaction
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            if (column := told.get(name)) is not None:
                of_one = name if name in ("ambiguous", "dynamics") else name.removesuffix("s")
                in_norms = {f"{of_one}_{norm}": in_norm(column, norm) for norm in NORMS if column.ndim == 2}
                columns |= in_norms or {of_one: column}
        return columns

    def to_frame(self, *, long: bool = False) -> polars.DataFrame:
        """The rounds as a table: `round` (name or number), every column of `columns`, the costliest cell.

        With `long`, one row for each round and step: `round`, `step`, and the `price` paid there.
        """
        import polars

        rounds = np.array(self.round_names or range(len(self.prices)))
        if not long:
            return polars.DataFrame({"round": rounds} | self.columns() | self._cell_columns())
        n_rounds, horizon = self.by_step.shape
        steps = np.array(self.labels.steps or range(horizon))
        return polars.DataFrame(
            {
                "round": np.repeat(rounds, horizon),
                "step": np.tile(steps, n_rounds),
                "price": self.by_step.ravel(),
            }
        )

    def by_period(self, period: str) -> polars.DataFrame:
        """Prices and values summed by "week", "month" or "year", if rounds are dates: `period`, `price`, …

        A period has the number of its `rounds`; a week is called as in ISO 8601, such as 2021-W07.
        """
        import polars

        columns = {"period": periods_of([self.round_name(t) for t in range(len(self.prices))], period)}
        frame = polars.DataFrame(columns | {"price": self.prices, "value": self.values})
        sums = polars.col("price", "value").sum(), polars.len().cast(polars.Int64).alias("rounds")
        return frame.group_by("period", maintain_order=True).agg(*sums)

    def plot(self, norm: str | float = "l1") -> Any:
        """Draw every price and, below, how far the loss moved: a matplotlib figure."""
        moved = self.variation(norm)
        figure, above = new_figure(
            f"{keeping(self.plans.name, self.plans.short)}: what it costs", y="price", size=(7.2, 4.8)
        )
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

    def _cell_columns(self) -> dict[str, Any]:
        if not {"cells", "cell_prices"} <= vars(self).keys():
            return {}
        cells = [self.costliest_cell(t) for t in range(len(self.prices))]
        return {
            f"costliest_{name}": [None if cell is None else getattr(cell, name) for cell in cells]
            for name in ("step", "state", "action", "best_action", "paid")
        }

    def _in_short(self) -> str:
        text = (
            f"{counted(len(self.prices), 'round')}, {np.count_nonzero(self.crossed):,} crossed, "
            f"{np.count_nonzero(self.prices):,} with a price, total {number(self.total)}"
        )
        unsure = np.count_nonzero(self.ambiguous)
        return f"{text}, {unsure:,} ambiguous" if unsure else text


def motion_of(columns: dict[str, Any], dynamics: IntArray | None, **about: Any) -> PricedMotion:
    """What was priced, of columns that have those of moving dynamics beside them if rounds have numbers."""
    told = {name: read_only(column) for name, column in columns.items()}
    if dynamics is not None:
        own = {one.name: told.pop(one.name) for one in fields(Moved) if one.name in told}
        about["moved"] = Moved(read_only(dynamics), **own)
    return PricedMotion(**told, **about)


def _left_out(name: str) -> NoReturn:
    raise InputError(
        f'{name} is asked for, but this stream was priced in less detail, such as detail="prices", which '
        f'leaves it out: price it again with detail="full".'
    )


def in_norm(variations: FloatArray, norm: str | float) -> FloatArray:
    """The column of `variations` [T, 3] that belongs to a norm."""
    return variations[:, NORMS.index(norm_name(norm))]


def norm_name(norm: str | float) -> str:
    """One of `NORMS`, however it is written."""
    asked = norm.lower() if isinstance(norm, str) else norm
    name = _NORM_NAMES.get(asked, asked)
    check_choice("norm", name, NORMS)
    return str(name)
