"""The order of rounds, and the gaps in it.

A round is priced against the round before it, so their order decides every price. Rounds that are dates or
numbers must come in order; a file in which they do not is refused until the user says which order is meant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median_low

from normalfan.errors import InputError

ORDERS = ("file", "sorted")
LONG = 1.5  # from this many times the usual distance on, two rounds have a gap between them


def order_rounds(path: Path, names: Sequence[str], order: str | None) -> list[int]:
    """The rounds of a file in the order in which they are priced, as indices of `names`."""
    if order not in (None, *ORDERS):
        raise InputError(f"order is {order!r}, but must be one of {', '.join(ORDERS)}: choose one of them.")
    as_they_are = list(range(len(names)))
    if order == "file":
        return as_they_are
    times = _times(names)
    if times is None:
        if order == "sorted":
            raise InputError(
                f"{path} has rounds like {names[0]!r}, but only dates (2021-03-14) and numbers can be "
                f"sorted: put its rows in order and leave order out."
            )
        return as_they_are
    if order == "sorted":
        return sorted(as_they_are, key=times.__getitem__)
    for t, (before, now) in enumerate(pairwise(times), start=1):
        if now <= before:
            raise InputError(
                f"{path} has round {names[t]} after round {names[t - 1]}, but dates and numbers must come "
                f"in order: sort them with --order sorted (order='sorted'), or keep them as they are with "
                f"--order file."
            )
    return as_they_are


def gaps_between(names: Sequence[str] | None) -> list[tuple[str, str]]:
    """Where rounds are missing: each round that comes too late, and the round before it.

    >>> gaps_between(["2021-03-11", "2021-03-12", "2021-03-14"])
    [('2021-03-14', '2021-03-12')]
    """
    times = _times(names or ())
    if times is None or len(times) < 3:
        return []
    distances = [now - before for before, now in pairwise(times)]
    usual = median_low(distances)
    if min(distances) <= 0:
        return []  # the order is the user's own
    rounds = zip(pairwise(names or ()), distances, strict=True)
    return [(now, before) for (before, now), distance in rounds if distance >= LONG * usual]


def _times(names: Sequence[str]) -> list[float] | None:
    """Rounds on a line, if all of them are numbers or all are dates in ISO format."""
    try:
        times = [float(name) for name in names]
    except ValueError:
        try:
            dates = [datetime.fromisoformat(name) for name in names]
            times = [(date - dates[0]).total_seconds() for date in dates]
        except (ValueError, TypeError):  # no dates, or some with and some without a time zone
            return None
    return times if all(map(math.isfinite, times)) else None
