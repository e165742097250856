"""Which rule to use: settings chosen on the first days of a stream, judged on the days after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normalfan.errors import InputError, check_number
from normalfan.replan.costs import HoldingCosts
from normalfan.replan.curve import Point, RegretCurve, frame_of_schedules, least_of_each, try_rules
from normalfan.replan.rules import Accumulated, Cusum, Drift, Periodic, Rule, SingleDay, replay
from normalfan.replan.schedule import Schedule, schedule_of
from normalfan.text import amount, counted, percent

if TYPE_CHECKING:
    import polars

NEVER, PERIODIC = "never", "periodic"
BY_COST = "accumulated, set by the cost"
SIMPLE = (NEVER, PERIODIC, BY_COST, "accumulated", "single day")  # before all others, the simplest first


@dataclass(frozen=True, slots=True)
class Judged:
    """A rule with the setting that was cheapest where it was tuned."""

    family: str  # such as "CUSUM"
    rule: Rule | None  # None never re-plans
    tuned_total: float  # regret + cost · re-plans on the days it was tuned on
    run: Schedule  # on the days it is judged on

    def when(self, unit: str = "") -> str:
        """When it re-plans, in words."""
        match self.rule:
            case None:
                return NEVER
            case Periodic(days):
                return "every day" if days == 1 else f"every {days} days"
            case Accumulated(threshold):
                return f"when the prices since the last re-plan add up to {amount(threshold, unit)}"
            case Cusum(threshold, allowance):
                beyond = f"beyond {amount(allowance, unit)} a day"
                return f"when the CUSUM of the prices {beyond} reaches {amount(threshold, unit)}"
            case SingleDay(threshold):
                return f"when the price of a day reaches {amount(threshold, unit)}"
            case Drift(detector):
                return f"when {detector} reports a drift of the prices"
        return f"by {self.rule!r}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recommendation:
    """The rule that was cheapest where all were tuned, and what each then cost; made by `recommend`.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.triu(np.arange(8.0)[None, :] - np.arange(8.0)[:, None])
    >>> recommend(HoldingCosts(costs, np.zeros(8), "before", 1), cost=3.0)
    Re-plan every 2 days: in hindsight that costs 13 in all, 54 % less than never and as much as re-planning
    when the prices since the last re-plan add up to 3.
    """

    cost: float  # of one re-plan
    judged: tuple[Judged, ...]  # every family, the simplest first
    chosen: Judged  # of these, the cheapest where they were tuned
    days: HoldingCosts  # that they are judged on
    tuned_days: int  # the number of days before those, on which settings were chosen; 0: in hindsight
    unit: str = ""  # of the losses, such as "$"

    def __repr__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """What to do, what that costs, and how it compares with simpler things."""
        rule, total = self.chosen, self.chosen.run.total(self.cost)
        advice = "Never re-plan" if rule.rule is None else f"Re-plan {rule.when(self.unit)}"
        days = "in hindsight"
        if self.tuned_days:
            days = f"on the {counted(self.days.n_days, 'day')} from {self.days.day_name(0)} on"
        compared = " and ".join(self._compared(other, total) for other in self._others())
        return f"{advice}: {days} that costs {amount(total, self.unit)} in all, {compared}."

    @property
    def beaten_by(self) -> tuple[Judged, ...]:
        """The families that cost less where they are judged, the cheapest first."""
        ours = self.chosen.run.total(self.cost)
        cheaper = [one for one in self.judged if one.run.total(self.cost) < ours]
        return tuple(sorted(cheaper, key=lambda one: one.run.total(self.cost)))

    def to_frame(self) -> polars.DataFrame:
        """A row for each day judged: `round`, `value` (the best), re-plan and regret of each family."""
        return frame_of_schedules(self.days, {one.family: one.run for one in self.judged})

    def _others(self) -> list[Judged]:
        """What to compare with: a fixed period and never; in place of one of them the next best rule."""
        never, periodic, *rules = self.judged
        simple = [one for one in (periodic, never) if one != self.chosen]
        return [*simple, min(rules, key=lambda one: one.tuned_total)][:2]

    def _compared(self, other: Judged, total: float) -> str:
        theirs = other.run.total(self.cost)
        name = other.when(self.unit)
        name = f"re-planning {name}" if name.startswith(("when", "by")) else name
        if total == theirs:
            return f"as much as {name}"
        share = percent(abs(total - theirs) / theirs) if theirs else amount(total, self.unit)
        return f"{share} {'less' if total < theirs else 'more'} than {name}"


def recommend(
    costs: HoldingCosts,
    cost: float,
    *,
    holdout: float | str | None = None,
    detectors: bool = False,
    unit: str = "",
) -> Recommendation:
    """Choose the rule, with its setting, that is cheapest on the first days; judge it on the others.

    Parameters
    ----------
    costs, cost, detectors
        As in `regret_curve`.
    holdout : float or str, optional
        The share of the days that are held out, at the end, or the first round of them. If not given all
        rules are tuned and judged in hindsight, on all days.
    unit : str
        Of the losses, such as "$", for the sentence.

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        If the cost is negative or not finite, or `holdout` is no share and no round, or leaves a part empty.

    Examples
    --------
    >>> import numpy as np
    >>> odd = np.resize([0.0, 0.0, 0.0, 1.0], 40)                      # one day in four is another
    >>> costs = np.triu(np.abs(odd[None, :] - odd[:, None]))
    >>> recommend(HoldingCosts(costs, np.zeros(40), "before", 1), cost=2.0, holdout=0.5).chosen.family
    'never'
    """
    check_number("cost", cost, "say what a re-plan costs")
    tuned = days = costs
    if holdout is not None:
        first = _first_held_out(costs, holdout)
        tuned, days = costs.part(0, first), costs.part(first, costs.n_days)
    return _judge(try_rules(tuned, detectors=detectors), cost, tuned, days, unit)


def recommend_in_hindsight(curve: RegretCurve, unit: str = "") -> Recommendation:
    """`recommend` without a holdout, from rules that have been tried."""
    return _judge(curve.points, curve.cost, curve.costs, curve.costs, unit)


def _judge(
    points: Iterable[Point], cost: float, tuned: HoldingCosts, days: HoldingCosts, unit: str
) -> Recommendation:
    """Judge each family with its cheapest setting; of rules that tie, the simplest is chosen."""

    def run(rule: Rule | None, part: HoldingCosts) -> Schedule:
        return schedule_of(part, ()) if rule is None else replay(rule, part)

    cheapest = least_of_each(points, lambda point: point.total(cost))
    rules: dict[str, Rule | None] = dict.fromkeys(SIMPLE)
    rules |= {BY_COST: Accumulated(cost)} | {family: point.rule for family, point in cheapest.items()}
    judged = tuple(
        Judged(family, rule, run(rule, tuned).total(cost), run(rule, days)) for family, rule in rules.items()
    )
    chosen = min(judged, key=lambda one: one.tuned_total)
    return Recommendation(cost, judged, chosen, days, 0 if days is tuned else tuned.n_days, unit)


def _first_held_out(costs: HoldingCosts, holdout: float | str) -> int:
    names = [costs.day_name(t) for t in range(costs.n_days)]
    try:
        share = float(holdout)
    except (TypeError, ValueError):
        share = 0.0
    is_share = 0 < share < 1
    if str(holdout) in names and not is_share:
        first = names.index(str(holdout))
    elif is_share and str(holdout) not in names:
        first = costs.n_days - round(share * costs.n_days)
    else:
        reason = "is a share and a round" if is_share else "is neither a share nor a round"
        raise InputError(
            f"holdout is {holdout!r}, but {reason}: give a share between 0 and 1, or the first round that is "
            f"held out, such as {names[len(names) // 2]}."
        )
    if not 2 <= first <= costs.n_days - 2:
        raise InputError(
            f"holdout is {holdout!r}, but leaves {first} days to choose settings on and "
            f"{costs.n_days - first} to judge them on: leave at least 2 of each."
        )
    return first
