"""Regret against the number of re-plans, for every rule over many settings.

Each rule trades regret for re-plans through a setting of its own, so each family is run with many: what it
can do with at most k re-plans is the least regret of its points with at most k. Settings are picked in
hindsight: the curve shows what a rule could do if tuned well, not how to tune it; a family with more settings
has more tries. The hindsight curve below all of them (`least_regrets`) is what no rule can beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.plots import literal, new_figure
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.progress import progress_bar
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.rules import (
    Accumulated,
    Cusum,
    Periodic,
    Rule,
    SingleDay,
    detector_families,
    replay,
    replays,
)
from normalfan.replan.schedule import Schedule, cheapest_schedule, least_regrets, schedule_of
from normalfan.text import amount, counted, html_table, number

if TYPE_CHECKING:
    import polars

THRESHOLDS = 120  # that each rule is tried with
ALLOWANCES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the CUSUM, in typical prices
ALLOWANCE = 0.1  # of the CUSUM that is set by the cost: a tenth of a re-plan a day
ALL_BUDGETS_UP_TO = 1000  # days; with more the hindsight curve ends at a sixth: it takes O(n²) a re-plan
CHEAPEST = "cheapest in hindsight"

DECADES_SHOWN = 2.3  # below the largest regret
REPLANS = "re-plans (at most)"
HINDSIGHT = "best in hindsight"

PENS = {  # colour, dashes (in plotly's words) and width of each family's line
    "accumulated": ("#1f6fb4", "solid", 2.4),
    "CUSUM": ("#d1495b", "solid", 2.4),
    "single day": ("#edae49", "dash", 2.0),
    "periodic": ("#7a7a7a", "dot", 2.0),
    "ADWIN": ("#66a182", "dashdot", 1.6),
    "Page-Hinkley": ("#8e6bbf", "dashdot", 1.6),
    "KSWIN": ("#8c564b", "dashdot", 1.6),
}
_LINESTYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a rule: a point of a `RegretCurve`."""

    family: str  # such as "CUSUM"
    rule: Rule  # with its settings
    replans: int  # how many
    regret: float  # over all days, without the cost of re-planning

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the rule by name."""
        return settings_of(self.rule)

    def total(self, cost: float) -> float:
        """Regret + cost · re-plans."""
        return self.regret + cost * self.replans


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegretCurve:
    """What can be said about re-planning one stream at one cost; made by `regret_curve`.

    Examples
    --------
    >>> costs = np.array([[0.0, 1.0, 5.0], [np.nan, 0.0, 5.0], [np.nan, np.nan, 0.0]])
    >>> curve = regret_curve(HoldingCosts(costs, np.zeros(3), "before", 1), cost=2.0, detectors=False)
    >>> curve.best_within(replans=1)["periodic"]
    Point(family='periodic', rule=Periodic(days=2), replans=1, regret=1.0)
    """

    costs: HoldingCosts  # of n days
    cost: float  # of one re-plan
    schedules: dict[str, Schedule]  # cheapest in hindsight; rules set by the cost itself; every day; never
    points: tuple[Point, ...]  # every family of rules with every setting
    least_regrets: FloatArray  # [K + 1] the least regret with at most k re-plans

    def __repr__(self) -> str:
        best = self.schedules[CHEAPEST]
        return (
            f"RegretCurve: {self.costs.description}; at {number(self.cost)} a re-plan the cheapest schedule "
            f"has {counted(best.replans, 're-plan')} and a total of {number(best.total(self.cost))}; "
            f"{counted(len(self.points), 'point')}"
        )

    def _repr_html_(self) -> str:
        return html_table(self.caption(), ("schedule", "re-plans", "regret", "total"), self.rows())

    def caption(self, unit: str = "") -> str:
        """What is compared, at which cost; `unit` is that of the losses, such as "$"."""
        return f"{self.costs.description}; a re-plan costs {amount(self.cost, unit)}"

    def rows(self, unit: str = "") -> list[tuple[str, ...]]:
        """For each schedule: its name, re-plans, regret and total."""
        return [(name, *texts_of(run, self.cost, unit)) for name, run in self.schedules.items()]

    def best_within(self, replans: int) -> dict[str, Point]:
        """Of each family the point of least regret with at most so many re-plans, if it has one."""
        within = (point for point in self.points if point.replans <= replans)
        return least_of_each(within, lambda point: point.regret)

    def cheapest(self) -> dict[str, Point]:
        """Of each family the point of least regret + cost · re-plans."""
        return least_of_each(self.points, lambda point: point.total(self.cost))

    def envelope(self, family: str) -> list[Point]:
        """A family's points that no other of its points beats in both respects, by re-plans upwards."""
        own = (point for point in self.points if point.family == family)
        kept = list[Point]()
        for point in sorted(own, key=lambda point: (point.replans, point.regret)):
            if not kept or point.regret < kept[-1].regret:
                kept.append(point)
        return kept

    def to_frame(self) -> polars.DataFrame:
        """A row a day: `round`, `value` (the best possible), re-plan and regret of each schedule."""
        return frame_of_schedules(self.costs, self.schedules)

    def plot(self, *, title: str | None = None, unit: str = "") -> Any:
        """Draw regret against re-plans; `unit` is that of the losses, such as "$"."""
        title = self.costs.description if title is None else title
        y = f"regret ({unit})" if unit else "regret"
        figure, axes = new_figure(title, x=REPLANS, y=y, size=(8.4, 5.2))
        from matplotlib.ticker import EngFormatter

        low, high = self.heights()
        for name, corners in self.lines().items():
            color, dash, width = PENS.get(name, ("black", "solid", 1.6))
            pen = {"color": color, "linestyle": _LINESTYLES[dash], "linewidth": width}
            at, regrets = np.reshape(corners, (-1, 2)).T
            axes.step(at, regrets, where="post", label=name, **pen)
            if name == HINDSIGHT:  # no rule gets below it
                shade = {"color": color, "alpha": 0.06, "linewidth": 0}
                axes.fill_between(at, np.maximum(regrets, low), low, step="post", **shade)
        pen = {"color": "black", "markerfacecolor": "white", "markersize": 8}
        for (name, place), marker in zip(self.marks(unit).items(), "sD", strict=False):
            axes.plot(*place, marker, label=literal(name), **pen)
        axes.set(xscale="log", yscale="log", ylim=(low, high), xlim=(1, max(len(self.least_regrets), 2)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(EngFormatter(sep=""))
        axes.grid(which="major", color="#dddddd", linewidth=0.6)
        axes.legend(frameon=False, fontsize=9, loc="lower left")
        return figure

    def lines(self) -> dict[str, list[tuple[int, float]]]:
        """The corners (re-plans, regret) of the best in hindsight and of each family's line.

        Both axes are logarithmic, so that points without any re-plan or any regret are left out.
        """
        least = enumerate(self.least_regrets.tolist())
        lines = {HINDSIGHT: [(k, regret) for k, regret in least if k and regret > 0]}
        for family in dict.fromkeys(point.family for point in self.points):
            if corners := _drawable(self.envelope(family)):
                lines[family] = [*corners, (len(self.least_regrets), corners[-1][1])]  # on to the right
        return lines

    def marks(self, unit: str = "") -> dict[str, tuple[int, float]]:
        """Where two schedules for the cost itself are: the cheapest, and the accumulated rule's."""
        return {
            f"{name}, at cost {amount(self.cost, unit)}": place
            for name in (CHEAPEST, "accumulated")
            for place in _drawable([self.schedules[name]])
        }

    def heights(self) -> tuple[float, float]:
        """The lowest and the highest regret that is drawn."""
        top = max((regret for line in self.lines().values() for _, regret in line), default=1.0)
        return top / 10**DECADES_SHOWN, top * 1.3


def settings_of(rule: Rule | None) -> dict[str, Any]:
    """The settings of a rule by name; None, which never re-plans, has none."""
    settings: dict[str, Any] = asdict(rule) if rule is not None else {}  # type: ignore[call-overload]
    return settings | dict(settings.pop("settings", ()))


def texts_of(run: Schedule | Point, cost: float, unit: str) -> tuple[str, str, str]:
    """Re-plans, regret and total of a run, as tables show them."""
    return str(run.replans), amount(run.regret, unit), amount(run.total(cost), unit)


def frame_of_schedules(costs: HoldingCosts, schedules: dict[str, Schedule]) -> polars.DataFrame:
    """A row a day: `round`, `value` (the best possible), re-plan and regret of each schedule."""
    import polars

    days = range(costs.n_days)
    columns: dict[str, Any] = {"round": list(map(costs.day_name, days)), "value": costs.values}
    for name, run in schedules.items():
        columns |= {f"{name}: re-plan": np.isin(days, run.days), f"{name}: regret": run.regrets}
    return polars.DataFrame(columns)


def regret_curve(
    costs: HoldingCosts, cost: float, *, detectors: bool = True, progress: bool = False
) -> RegretCurve:
    """Compare every rule, over many settings, with the best that is possible in hindsight.

    Parameters
    ----------
    costs : HoldingCosts
    cost : float
        Of one re-plan.
    detectors : bool
        Include the drift detectors of river, which take some seconds.
    progress : bool

    Returns
    -------
    RegretCurve

    Raises
    ------
    InputError
        If the cost is negative or not finite, or `detectors` are wanted and river is not installed.

    Examples
    --------
    >>> costs = np.where(np.tri(8, k=-1) > 0, np.nan, np.arange(8)[None, :] - np.arange(8)[:, None])
    >>> curve = regret_curve(HoldingCosts(costs, np.zeros(8), "before", 1), cost=5.0, detectors=False)
    >>> {name: run.total(5.0) for name, run in curve.schedules.items()}
    {'cheapest in hindsight': 17.0, 'accumulated': 17.0, 'CUSUM': 17.0, 'single day': 18.0,
     'every day': 35.0, 'never': 28.0}
    """
    n_days = costs.n_days
    schedules = {
        CHEAPEST: cheapest_schedule(costs, cost),
        "accumulated": replay(Accumulated(cost), costs),
        "CUSUM": replay(Cusum(cost, ALLOWANCE * cost), costs),
        "single day": replay(SingleDay(cost), costs),
        "every day": schedule_of(costs, range(1, n_days)),
        "never": schedule_of(costs, ()),
    }
    points = try_rules(costs, detectors=detectors, progress=progress)
    least = least_regrets(costs, None if n_days <= ALL_BUDGETS_UP_TO else n_days // 6)
    return RegretCurve(costs, cost, schedules, points, read_only(least))


def try_rules(costs: HoldingCosts, *, detectors: bool, progress: bool = False) -> tuple[Point, ...]:
    """Every family with each of its settings; thresholds range over the sizes that occur in `costs`."""
    priced = costs.costs[costs.costs > 0]
    typical = float(np.median(priced)) if priced.size else 1.0
    largest = max(float(costs.costs[0].sum()), typical)  # of keeping the first plan for ever
    thresholds = np.geomspace(typical / 100, largest, THRESHOLDS).tolist()
    families: dict[str, Iterable[Rule]] = {
        "accumulated": [Accumulated(h) for h in thresholds],
        "CUSUM": [Cusum(h, a * typical) for a in ALLOWANCES for h in thresholds],
        "single day": [SingleDay(h) for h in thresholds],
        "periodic": [Periodic(k) for k in range(1, costs.n_days + 1)],
    }
    if detectors:
        families |= detector_families(typical)
    tries = [(family, rule) for family, rules in families.items() for rule in rules]
    points, runs = list[Point](), replays((rule for _, rule in tries), costs)
    with progress_bar("trying rules", len(tries), progress) as advance:
        for (family, rule), run in zip(tries, runs, strict=True):
            points.append(Point(family, rule, run.replans, run.regret))
            advance(1)
    return tuple(points)


def least_of_each(points: Iterable[Point], size: Callable[[Point], float]) -> dict[str, Point]:
    """Of each family the point of least size; the first of equal ones."""
    best = dict[str, Point]()
    for point in points:
        best[point.family] = min(best.get(point.family, point), point, key=size)
    return best


def _drawable(runs: Iterable[Point | Schedule]) -> list[tuple[int, float]]:
    """Where runs are on logarithmic axes, which have no 0."""
    return [(run.replans, run.regret) for run in runs if run.replans and run.regret > 0]
