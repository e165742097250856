"""How far each coefficient may move, one at a time, before the plan changes or costs more than a tolerance.

f(θ) = ⟨q, ℓ(θ)⟩ − J*(θ), what the plan q costs beyond the optimum, is convex and piecewise linear: the θ with
f ≤ ε form an interval along every line. Plans that are optimal today cost the same today, so the one of them
that a move hurts least is the best of them however far the move goes: one plan for each direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice
from normalfan.geometry.bellman import as_policy, completed_plan, occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import literal, new_figure
from normalfan.problem.arrays import BoolArray, FloatArray, check_finite, check_shape, read_numbers, read_only
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan.ranges.reading import Directions, Tolerance, read_today, read_tolerance
from normalfan.ranges.today import Plan, Swept, Today
from normalfan.text import counted, html_table, number, printable

if TYPE_CHECKING:
    import polars

AT_ONCE = 64  # coefficients whose ends share a sweep: memory grows with their square
MOST_DRAWN = 30  # bars
WIDEST = 4.0  # bars are cut at this multiple of the median distance


class Beyond(NamedTuple):
    """The plan that takes over at an end of a range."""

    policy: FloatArray  # [H, S, A]
    exposures: FloatArray  # [n] how much of each coefficient it takes


class Wall(NamedTuple):
    """The nearest end of a tolerated range."""

    feature: str  # that moves to it
    now: float  # where it stands
    end: float  # beyond which the plan costs more than the tolerance
    move: float  # end − now
    share: float | None  # |move / now|, if it does not stand at 0


class Bars(NamedTuple):
    """Ranges to draw, the narrowest first, as moves from where the coefficients stand."""

    order: list[int]  # [m] which coefficients
    optimal: FloatArray  # [m, 2] moves, cut off at ± edge
    within: FloatArray  # [m, 2]
    edge: float
    relative: bool  # moves are parts of the coefficients


@dataclass(frozen=True, eq=False, repr=False)
class Ranging:
    """How far each coefficient may move, the others standing still: what `ranging` returns.

    An end is a value of the coefficient itself, infinite if nothing ends there; NaN where there is no range.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]], feature_names=["buy", "make"])
    >>> nf.ranging(nf.MDP([[0, 0]], initial=0, horizon=1), losses, tolerance=1.0)
    Ranging: 2 coefficients of round 0, one at a time, value 3, tolerance 1
      buy, now 3: optimal up to 5, within tolerance up to 6
      make, now 5: optimal from 3 on, within tolerance from 2 on
    """

    names: tuple[str, ...]  # [n] of the coefficients
    now: FloatArray  # [n] where they stand
    exposures: FloatArray  # [n, 2] how much of each today's optimal plans take: the least and the most
    optimal: FloatArray  # [n, 2] the plan is optimal while the coefficient is between these
    within: FloatArray  # [n, 2] it costs at most the tolerance while between these
    matters: BoolArray  # [n] false if a coefficient is the same for every plan there is
    tolerance: float  # in the unit of the losses
    value: float  # of the best plan, as a loss or reward
    today: Today  # the round that was ranged
    plan: FloatArray | None = None  # [H, S, A] the user's own, if that was ranged

    def words(self, i: int) -> tuple[str, str]:
        """Where the plan is optimal and where it costs at most the tolerance, in words."""
        if np.isinf(self.now[i]):
            return ("it is infinite: it forbids actions, and cannot move",) * 2
        if not self.matters[i]:
            return ("no effect: it costs every plan the same",) * 2
        return _interval(*self.optimal[i]), _interval(*self.within[i])

    def beyond(self, i: int, end: Literal["low", "high"], *, tolerated: bool = False) -> Beyond | None:
        """The plan that is best just past an end of range i, of the optimal range or the tolerated one.

        None where nothing ends.
        """
        check_choice("end", end, ("low", "high"))
        sign = -1.0 if end == "low" else 1.0
        edge = (self.within if tolerated else self.optimal)[i, int(end == "high")] - self.now[i]
        if not np.isfinite(edge):
            return None
        policy = self.today.part(slice(i, i + 1)).policy_at(np.array([edge]), np.array([sign]))
        return Beyond(policy, read_only(self.today.sign * self.today.exposures(policy)))

    def share(self, error: npt.ArrayLike) -> float:
        """How much of all allowances an error [n] uses up together: Σ_k of error over allowance.

        Up to 1 today's plan surely costs at most the tolerance (f is convex: the 100 % rule); above, it may
        still. Where several plans are optimal today, one of them is meant, the first.
        """
        moved = read_numbers("error", error).astype(np.float64)
        check_shape("error", moved.shape, self.now.shape, "give one number for each coefficient, 0 for none")
        check_finite("error", moved)
        within = self.within
        if self.plan is None and np.ptp(self.exposures, axis=1).any():
            within = _ends(self.today, self.today.plan, self.tolerance)
        if np.isnan(within[~np.isinf(self.now)]).any():
            return np.inf
        room = np.where(moved > 0, within[:, 1] - self.now, self.now - within[:, 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(moved == 0, 0.0, np.abs(moved) / np.maximum(room, 0.0))
        return float(np.nan_to_num(shares, nan=np.inf, posinf=np.inf).sum())

    def allows(self, error: npt.ArrayLike) -> bool:
        """Say whether an error [n] of all coefficients at once is surely tolerable: `share` is at most 1."""
        return self.share(error) <= 1.0

    def to_frame(self) -> polars.DataFrame:
        """One row for each coefficient."""
        import polars

        pairs = {"exposure": self.exposures, "optimal": self.optimal, "within": self.within}
        sides = {"exposure": ("least", "most"), "optimal": ("from", "to"), "within": ("from", "to")}
        ends = {f"{name}_{sides[name][j]}": pairs[name][:, j] for name in pairs for j in (0, 1)}
        return polars.DataFrame({"name": self.names, "now": self.now, **ends, "matters": self.matters})

    @property
    def distances(self) -> FloatArray:
        """[n, 2]: how far it is down and up to the ends of the tolerated ranges; ∞ where nothing ends.

        Coefficients have units of their own, so a distance is in parts of the coefficient; of one that stands
        at 0, in its unit.
        """
        unit = np.where(self.now == 0, 1.0, np.abs(self.now))[:, None]
        with np.errstate(invalid="ignore"):
            away = np.abs(self.within - self.now[:, None]) / unit
        return np.where(np.isfinite(away), away, np.inf)

    @property
    def narrowest(self) -> list[int]:
        """The coefficients, those with the nearest ends first."""
        return np.argsort(self.distances.min(axis=1), kind="stable").tolist()  # type: ignore[no-any-return]

    def nearest_wall(self) -> Wall | None:
        """The end that is nearest; None if nothing ends."""
        away = self.distances
        i, j = divmod(int(away.argmin()), 2)
        if np.isinf(away[i, j]):
            return None
        now, end = float(self.now[i]), float(self.within[i, j])
        return Wall(self.names[i], now, end, end - now, float(away[i, j]) if now else None)

    def bars(self) -> Bars:
        """The ranges that end, as a chart shows them: in parts of now, or as they are if all are at 0."""
        relative, nearest = bool(self.now.any()), self.distances.min(axis=1)
        order = [i for i in self.narrowest if np.isfinite(nearest[i]) and (self.now[i] or not relative)]
        order = order[:MOST_DRAWN]
        edge = WIDEST * float(np.median(nearest[order])) if order else 0.0
        now = self.now[order, None]
        edge, unit = edge or 1.0, np.abs(now) if relative else 1.0
        low_high = (np.clip((ends[order] - now) / unit, -edge, edge) for ends in (self.optimal, self.within))
        optimal, within = map(np.nan_to_num, low_high)
        return Bars(order, optimal, within, edge, relative)

    def plot(self) -> Any:
        """Draw how far each coefficient may go, the narrowest ranges first; returns a matplotlib figure."""
        bars = self.bars()
        places = range(len(bars.order))[::-1]
        change = "change, in parts of the coefficient" if bars.relative else "change"
        figure, axes = new_figure(
            "How far may each move, one at a time?", x=change, size=(6.4, 1.2 + 0.25 * len(places))
        )
        for moves, colour, label in (
            (bars.within, "lightgrey", f"costs at most {number(self.tolerance)}"),
            (bars.optimal, "tab:blue", "stays optimal"),
        ):
            low, high = moves.T
            axes.barh(places, high - low, left=low, color=colour, label=label)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(places, [literal(f"{self.names[i]:.40}") for i in bars.order])
        axes.set_xlim(-bars.edge, bars.edge)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        return figure

    def __repr__(self) -> str:
        lines = [f"Ranging: {self._in_short()}"]
        for i in range(len(self.names))[:3]:
            optimal, within = self.words(i)
            said = f"optimal {optimal}, within tolerance {within}" if optimal != within else optimal
            lines.append(f"  {printable(self.names[i]):.60}, now {number(self.now[i])}: {said}")
        return "\n".join([*lines, "  …"] if len(self.names) > 3 else lines)

    def _repr_html_(self) -> str:
        head = ("coefficient", "now", "optimal", "within tolerance")
        rows = [(self.names[i], number(self.now[i]), *self.words(i)) for i in range(len(self.names))[:50]]
        return html_table(self._in_short(), head, rows)

    def _in_short(self) -> str:
        of = f" of round {printable(self.today.round_name):.40}" if self.today.round_name else ""
        return (
            f"{counted(len(self.names), 'coefficient')}{of}, one at a time, value {number(self.value)}, "
            f"tolerance {number(self.tolerance)}"
        )


def ranging(
    mdp: MDP,
    losses: Losses,
    *,
    at: int | str | None = None,
    tolerance: Tolerance = "1%",
    directions: Directions = None,
    plan: npt.ArrayLike | None = None,
    ties: TieRule = DEFAULT_TIES,
) -> Ranging:
    """Find how far each coefficient may move, one at a time, before the plan changes or costs too much.

    Parameters
    ----------
    mdp : MDP
    losses : FactoredLosses, LossStream, array_like [T, H, S, A] or one loss [H, S, A]
    at : int or str, optional
        The round, by number or by name; the last by default.
    tolerance : float or str, default "1%"
        What the plan may cost beyond the best one: an amount, or a share of the round's |value|.
    directions : str, sequence of str or array_like, optional
        What moves: names of features (by default all of factored losses), "entries" (each entry of the loss
        that some policy meets), or directions: losses [n, H, S, A], coefficients [n, K], or a single one.
    plan : array_like [H, S, A], optional
        A policy of your own, instead of the best plan. Its range may be empty, or not hold today.
    ties : TieRule, optional
        Which plans count as optimal.

    Returns
    -------
    Ranging

    Raises
    ------
    InputError
        If there is no such round, feature or tolerance, or an array has the wrong shape.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> found = nf.ranging(arms, [[[3.0, 5.0]]], directions="entries", tolerance=1)
    >>> found.optimal.tolist(), found.within.tolist()
    ([[-inf, 5.0], [3.0, inf]], [[-inf, 6.0], [2.0, inf]])
    >>> found.beyond(0, "high").policy.tolist(), found.share([1.0, -1.0])
    ([[[0.0, 1.0]]], 0.6666666666666666)
    """
    today = read_today(mdp, losses, at, directions, ties)
    allowed, own = read_tolerance(today, tolerance), None
    if plan is not None:
        own = read_only(completed_plan(mdp, as_policy(mdp, plan), "plan"))
        if occupancy(mdp, own)[today.loss == np.inf].any():
            raise InputError(
                "plan takes an action that the round does not allow, but its cost must be finite: choose "
                "another."
            )
    parts = [
        _range(today.part(slice(k, k + AT_ONCE)), allowed, own) for k in range(0, len(today.now), AT_ONCE)
    ]
    optimal, within, exposures, matters = (
        read_only(np.concatenate(columns)) for columns in zip(*parts, strict=True)
    )
    return Ranging(
        names=today.names,
        now=today.now,
        exposures=exposures,
        optimal=optimal,
        within=within,
        matters=matters,
        tolerance=allowed,
        value=today.sign * today.value,
        today=today,
        plan=own,
    )


def _range(
    today: Today, tolerance: float, own: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Between which ends each stays optimal and within tolerance, [K, 2]; exposures; what matters."""
    count, moves = len(today.now), both_ways(len(today.now))
    if own is None:
        plan, taken = today.best_plans(moves)
    else:
        plan, one = today.plan_of(own), today.exposures(own)
        taken = np.append(-one, one)
    asymptote = today.far_out(moves, plan)
    size = today.largest * today.mdp.horizon * today.rounding
    most_less_least = -asymptote.values.reshape(2, -1).sum(axis=0)  # of what a plan takes
    exposures = 0.0 + np.sort(today.sign * np.stack([-taken[:count], taken[count:]], axis=1), axis=1)
    exposures[:, 1] = np.where(np.ptp(exposures, axis=1) > size, exposures[:, 1], exposures[:, 0])
    optimal = within = _ends(today, plan, 0.0, asymptote, is_optimal=own is None)
    if tolerance > 0:
        within = _ends(today, plan, tolerance, asymptote, is_optimal=own is None)
    return optimal, within, exposures, most_less_least > size


def _ends(
    today: Today, plan: Plan, tolerance: float, asymptote: Swept | None = None, *, is_optimal: bool = True
) -> FloatArray:
    """[K, 2]: between which values of each coefficient a plan costs at most the tolerance."""
    far = today.far_ends(both_ways(len(today.now)), plan, tolerance, asymptote)
    if is_optimal:  # where it stands: what is below is rounding
        far = np.fmax(far, 0.0)
    moves = np.stack([-far[: len(today.now)], far[len(today.now) :]], axis=1)
    moves[np.isnan(moves).any(axis=1) | np.isinf(today.now)] = np.nan
    ends = today.now[:, None] + moves
    ends[np.abs(ends) <= 1e-14 * np.abs(today.now)[:, None]] = 0.0  # rounding, where all is taken away
    return ends


def both_ways(count: int) -> FloatArray:
    """[2K, K]: each coefficient down by one, then each up by one."""
    return np.concatenate([-np.eye(count), np.eye(count)])


def _interval(low: float, high: float) -> str:
    if np.isnan(low) or low > high:
        return "nowhere"
    if np.isinf(low) and np.isinf(high):
        return "anywhere"
    if np.isinf(low):
        return f"up to {number(high)}"
    return f"from {number(low)} on" if np.isinf(high) else f"from {number(low)} to {number(high)}"
