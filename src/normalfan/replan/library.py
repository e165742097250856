"""Which plans do I need? The k plans that serve a stream best, each day by the one that suits it.

Every plan may serve every day, earlier ones too: which plans are worth having is asked in hindsight. To
choose the plan of a day without knowing its loss costs more.
"""

from __future__ import annotations

import math
from calendar import month_name
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from normalfan.errors import InputError, check_whole
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import FloatArray, IntArray, read_only
from normalfan.problem.losses import Losses, are_rewards, as_stream, names_of_rounds
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.replan.costs import costs_of_plans
from normalfan.replan.median import medians
from normalfan.text import amount, counted, html_table, number, percent

if TYPE_CHECKING:
    import polars

ENOUGH = 0.95  # of the value: as many plans as keep it are named in the sentence
MARKED = 1.3  # times their share of all days: months or weekends that a plan is for
FEW = 7  # days are named one by one
WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
COLUMNS = ("plans", "cost", "share kept", "lower bound", "plans of")
WEEKEND = 5  # Saturday, counted from Monday


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Choice:
    """So many plans, and the days that each serves: an entry of a `PlanLibrary`."""

    days: tuple[int, ...]  # whose plans they are, in increasing order
    serving: IntArray  # [n] the day whose plan serves
    regrets: FloatArray  # [n] what that costs beyond a new plan
    lower_bound: float  # no choice of as many plans costs less in all

    def __repr__(self) -> str:
        plans, least = counted(len(self.days), "plan"), number(self.lower_bound)
        return f"Choice: {plans} at a cost of {number(self.cost)}, where none is below {least}"

    @property
    def cost(self) -> float:
        """Over all days, beyond a new plan every day."""
        return math.fsum(self.regrets)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlanLibrary:
    """The best 1, 2, 3, … plans for a stream, and what they keep of its value; made by `plan_library`.

    Examples
    --------
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[-3.0, 0.0], [0.0, -1.0], [-2.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> library = plan_library(arms, losses, most=2)
    >>> library
    PlanLibrary: 3 days; two plans keep 100 % of what a new plan a day earns
    >>> library.choices[0].days, library.kept(1)
    ((0,), 0.8333333333333334)
    """

    choices: tuple[Choice, ...]  # with 1, 2, 3, … plans; as many as help
    values: FloatArray  # [n] J*, the best expected loss of each day, or reward
    first_plan_cost: float  # of keeping the plan of the first day for ever, beyond a new plan every day
    round_names: tuple[str, ...] | None = None  # [n] what the days are called; None where they are numbered
    rewards: bool = False  # `values` are rewards, the more the better; costs are what is lost either way

    def __repr__(self) -> str:
        sentence = self.sentence
        return f"PlanLibrary: {counted(len(self.values), 'day')}; {sentence[0].lower()}{sentence[1:-1]}"

    def _repr_html_(self) -> str:
        return html_table(self.sentence, COLUMNS, self.rows())

    def day_name(self, t: int) -> str:
        """The name of the round of day t, or its number."""
        return self.round_names[t] if self.round_names else str(t)

    def kept(self, plans: int | None) -> float:
        """The share of what a new plan a day earns that so many plans keep; nan if it earns nothing.

        None stands for the plan of the first day, never changed.
        """
        cost = self.first_plan_cost if plans is None else self._choice(plans).cost
        return (self._earned - cost) / self._earned if self._earned > 0 else math.nan

    @property
    def sentence(self) -> str:
        """How many plans are enough, or what the most of them do."""
        earned, costs = self._earned, [choice.cost for choice in self.choices]
        k = next((k for k, cost in enumerate(costs, 1) if cost <= (1 - ENOUGH) * abs(earned)), len(costs))
        plans, s = ("plan", "s") if k == 1 else ("plans", "")
        who, cost = f"{WORDS[k] if k < len(WORDS) else k} {plans}", costs[k - 1]
        if cost < earned:
            share = "over 99 %" if 0.995 <= self.kept(k) < 1 else percent(self.kept(k))  # never all of it
            return f"{who} keep{s} {share} of what a new plan a day earns."
        if self.rewards:
            return f"{who} earn{s} {number(cost)} less than a new plan a day."
        more = percent(cost / -earned) if earned < 0 else number(cost)
        return f"{who} cost{s} {more} more than a new plan a day."

    @property
    def _earned(self) -> float:
        """What a new plan a day earns."""
        return math.fsum(self.values) * (1 if self.rewards else -1)

    def rows(self, unit: str = "") -> list[tuple[str, ...]]:
        """For each number of plans: cost, share kept, lower bound, and the days whose plans they are."""
        return [
            (
                str(k),
                amount(choice.cost, unit),
                "–" if math.isnan(self.kept(k)) else f"{100 * self.kept(k):.1f} %",
                amount(choice.lower_bound, unit),
                ", ".join(map(self.day_name, choice.days)),
            )
            for k, choice in enumerate(self.choices, 1)
        ]

    def in_common(self, plans: int | None = None) -> dict[str, str]:
        """What the days that each plan serves have in common, in words; by default with the most plans."""
        choice = self._choice(plans)
        return {self.day_name(day): self._words(np.flatnonzero(choice.serving == day)) for day in choice.days}

    def to_frame(self, plans: int | None = None) -> polars.DataFrame:
        """A row a day: `round`, `plan` (the round whose plan serves) and its `cost`."""
        import polars

        choice = self._choice(plans)
        columns = {
            "round": list(map(self.day_name, range(len(self.values)))),
            "plan": [self.day_name(int(day)) for day in choice.serving],
            "cost": choice.regrets,
        }
        return polars.DataFrame(columns)

    def _choice(self, plans: int | None) -> Choice:
        if plans is None:
            return self.choices[-1]
        check_whole("plans", plans, "leave it out for the most")
        if plans > len(self.choices):
            raise InputError(
                f"plans is {plans}, but the library has at most {len(self.choices)}: choose from 1 to that."
            )
        return self.choices[plans - 1]

    def _words(self, served: IntArray) -> str:
        days = counted(len(served), "day")
        if len(served) <= FEW:
            return f"{days}: {', '.join(map(self.day_name, served.tolist()))}"
        dates = _as_dates(self.round_names)
        if not dates:
            return days
        own = [dates[t] for t in served]
        return "; ".join(filter(None, (days, _weekdays(own, dates), _months(own, dates))))


def plan_library(
    mdp: MDP,
    losses: Losses,
    most: int,
    *,
    window: int = 1,
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
) -> PlanLibrary:
    """Choose the plans that serve a stream best: the best one, the best two, … up to `most`.

    Parameters
    ----------
    mdp : MDP
    losses : array_like or LossStream
        One round a day; the plans to choose from are those of the days.
    most : int
        The largest number of plans; it ends earlier where one more does not help.
    window, ties, progress
        As in `holding_costs`.

    Returns
    -------
    PlanLibrary
        Found by greedy steps and swaps; `lower_bound` (linear relaxation) says how far from the best at most.

    Raises
    ------
    InputError
        If the losses do not fit the problem or are not finite, or `most` or `window` is below 1.

    Examples
    --------
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [2.0, 1.5], [0.0, 3.0]]).reshape(3, 1, 1, 2)
    >>> plan_library(arms, losses, most=1).choices
    (Choice: 1 plan at a cost of 0.5, where none is below 0.5,)
    """
    check_whole("most", most, "try 5")
    stream = as_stream(losses)
    costs, values = costs_of_plans(mdp, stream, window, ties, earlier=True, progress=progress)
    choices = []
    with progress_bar("choosing plans", most, progress) as advance:
        for chosen, bound in medians(costs, most, advance):
            serving = read_only(chosen[costs[chosen].argmin(axis=0)])
            regrets = read_only(costs[serving, np.arange(len(values))])
            bound = min(max(bound, 0.0), math.fsum(regrets))
            choices.append(Choice(tuple(chosen.tolist()), serving, regrets, bound))
    names, first = names_of_rounds(stream), math.fsum(costs[0])
    return PlanLibrary(tuple(choices), values, first, names, are_rewards(stream))


def _as_dates(names: tuple[str, ...] | None) -> list[datetime]:
    try:
        return [datetime.fromisoformat(name) for name in names or ()]
    except ValueError:
        return []


def _weekdays(own: list[datetime], dates: list[datetime]) -> str:
    """Whether a plan is one for weekends or for working days."""
    share, usual = (sum(date.weekday() >= WEEKEND for date in some) / len(some) for some in (own, dates))
    if share >= MARKED * usual > 0:
        return _told(share, "at weekends", usual)
    return _told(1 - share, "on Mondays to Fridays", 1 - usual) if share <= usual / MARKED else ""


def _months(own: list[datetime], dates: list[datetime]) -> str:
    """The months in which a plan serves more often than their length explains."""
    counts, usual = (Counter(date.month for date in some) for some in (own, dates))
    marked = [m for m in sorted(counts) if counts[m] / len(own) >= MARKED * usual[m] / len(dates)]
    share, of_all = (sum(some[m] for m in marked) / some.total() for some in (counts, usual))
    return _told(share, f"in {', '.join(_runs(marked))}", of_all) if marked else ""


def _told(share: float, where: str, usual: float) -> str:
    return f"{percent(share)} {where} ({percent(usual)} of all days are)"


def _runs(months: list[int]) -> list[str]:
    """Months, those in a row as one: November to March."""
    runs = []
    for first in (m for m in months if (m - 2) % 12 + 1 not in months):
        last = first
        while last % 12 + 1 in months:
            last = last % 12 + 1
        runs.append(month_name[first] if last == first else f"{month_name[first]} to {month_name[last]}")
    return runs
