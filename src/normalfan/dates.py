"""Rounds that are dates or numbers: in which order they come, what is missing, which of them are meant.

Names of rounds are text. They lie on a line if all of them are numbers, or all are dates in ISO format.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from statistics import median_low

from normalfan.errors import InputError, check_choice

DAY = 86400 - 1e-6  # seconds up to the last moment of a day
LONG = 1.5  # from this many times the usual distance on, two rounds have a gap between them
PERIODS = {"week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}  # an ISO week is of the year of its Thursday


def times_of(names: Sequence[str]) -> list[float] | None:
    """Where rounds lie on a line: numbers as they are, dates in seconds; None if they are neither."""
    try:
        times = [float(name) for name in names]
    except ValueError:
        try:
            dates = [datetime.fromisoformat(name) for name in names]
            times = [(date - dates[0]).total_seconds() for date in dates]
        except (ValueError, TypeError):  # no dates, or some with and some without a time zone
            return None
    return times if all(map(math.isfinite, times)) else None


def gaps_between(names: Sequence[str] | None) -> list[tuple[str, str]]:
    """Where rounds are missing: each round that comes too late, and the round before it.

    >>> gaps_between(["2021-03-11", "2021-03-12", "2021-03-14"])
    [('2021-03-14', '2021-03-12')]
    """
    times = times_of(names or ())
    if times is None or len(times) < 3:
        return []
    distances = [now - before for before, now in pairwise(times)]
    usual = median_low(distances)
    if min(distances) <= 0:
        return []  # the order is the user's own
    rounds = zip(pairwise(names or ()), distances, strict=True)
    return [(now, before) for (before, now), distance in rounds if distance >= LONG * usual]


def periods_of(names: Sequence[str], period: str) -> list[str]:
    """The ISO week, the month or the year that each round is in: what sums go by.

    >>> periods_of(["2021-01-03", "2021-01-04"], "week"), periods_of(["2021-01-31T23:00"], "month")
    (['2020-W53', '2021-W01'], ['2021-01'])
    """
    check_choice("period", period, tuple(PERIODS))
    try:
        return [datetime.fromisoformat(name).strftime(PERIODS[period]) for name in names]
    except ValueError:
        raise InputError(
            f"rounds are called {names[0]}, …, {names[-1]}, but a {period} is made of dates: name each round "
            f"by its date, like 2021-03-14."
        ) from None


def rounds_between(names: Sequence[str], first: str | None, last: str | None) -> list[int]:
    """The places of the rounds from `first` to `last`, both included; a last day has all its hours.

    >>> rounds_between(["2021-03-12", "2021-03-14T07:00", "2021-03-15"], "2021-03-13", "2021-03-14")
    [1]
    """
    ends = {"first (--from)": first, "last (--to)": last}
    given = {option: end for option, end in ends.items() if end is not None}
    # All together: 20210314 is a number among numbers, and a date beside 2021-03-14.
    times = times_of([*names, *given.values()])
    if times is None:
        unknown = [option for option, end in given.items() if end not in names]
        if unknown:
            option = min(unknown, key=lambda option: times_of([*names, given[option]]) is not None)
            raise InputError(
                f"{option} is {given[option]!r}, but the rounds are called {names[0]}, …, {names[-1]}: name "
                f"one of them, or a date or number between them."
            )
        times = [*range(len(names)), *map(names.index, given.values())]
    low = -math.inf if first is None else times[len(names)]
    high = math.inf if last is None else times[-1] + _rest_of_day(names, last)
    kept = [t for t, place in enumerate(times[: len(names)]) if low <= place <= high]
    if not kept:
        raise InputError(
            f"no round lies from {first or names[0]} to {last or names[-1]}, but at least one is needed: "
            f"choose from {names[0]} to {names[-1]}."
        )
    return kept


def _rest_of_day(names: Sequence[str], last: str) -> float:
    """The seconds of a day that follow its beginning, if rounds are dates and `last` is a whole day."""
    try:
        datetime.fromisoformat(names[0])
        date.fromisoformat(last)
    except ValueError:
        return 0.0
    return 0.0 if names[0].isdecimal() else DAY  # 20210314 is a number
