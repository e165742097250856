"""The data of the page's charts, as small as what is drawn.

A series is {"at": rounds, "y": numbers}; names of rounds are sent once. A chart is about a thousand pixels
wide, so a series of more than `MOST_POINTS` rounds is cut into bins, and of each bin its smallest and its
largest entry stay: no peak is lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.regret.decompose import Decomposition
from normalfan.report.attribution_map import AttributionMap
from normalfan.report.fan import COLOURS, FanPicture, edges

MOST_POINTS = 5000
MOST_AMBIGUOUS = 500  # rounds that are marked as such
THINNEST = 0.05  # the part of the rounds, those with the smallest gaps, that is marked as thin
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")


def thin_rounds(gaps: FloatArray) -> BoolArray:
    """[T]: whether a round's smallest gap is among the `THINNEST` of those that have one."""
    finite = gaps[np.isfinite(gaps)]
    if not len(finite):
        return np.zeros(len(gaps), dtype=bool)
    return np.asarray(gaps <= np.quantile(finite, THINNEST, method="lower"))


def time_charts(
    motion: PricedMotion, variation: FloatArray, decomposition: Decomposition | None
) -> dict[str, Any]:
    """Price, variation, cumulative columns and margins."""
    margin, gap = (_series(_log_order(column), column) for column in (motion.margins, motion.advantage_gaps))
    margin["exact"] = motion.margin_exact[margin["at"]].tolist()
    gap["thin"] = thin_rounds(motion.advantage_gaps)[gap["at"]].tolist()
    if decomposition is None:
        columns = {"price": motion.prices, "best": motion.values, "kept": motion.values + motion.prices}
        sums = {key: np.cumsum(column) for key, column in columns.items()}
    else:
        sums = {key: decomposition.cumulative()[key] for key in ("price", "selection", "regret")}
    unsure = np.flatnonzero(motion.ambiguous)[:MOST_AMBIGUOUS]
    ends = {"y": motion.prices, "low": motion.lowest_prices, "high": motion.highest_prices}
    ambiguous = {"at": unsure.tolist()} | {key: rounded(column[unsure]) for key, column in ends.items()}
    series = {"price": _series(motion.prices), "variation": _series(variation)}
    series |= {"margin": margin, "gap": gap, "ambiguous": ambiguous}
    cumulative = {key: _series(column) for key, column in sums.items()}
    return series | {
        "cumulative": cumulative,
        "rounds": len(motion.prices),
        "dates": are_dates(motion.round_names),
        "names": _names_drawn([*series.values(), *cumulative.values()], motion.round_names),
    }


def attribution_chart(paid: AttributionMap) -> dict[str, Any]:
    return {
        "z": rounded(paid.paid),
        "byStep": rounded(paid.by_step),
        "steps": list(paid.steps),
        "states": list(paid.states),
    }


def fan_chart(
    fan: FanPicture, right: str, up: str, stops: Sequence[str], prices: Sequence[float]
) -> dict[str, Any]:
    """`right`, `up`: titles of the axes. `stops`, `prices`: of the losses of the path."""
    return {
        "xs": rounded(fan.xs),
        "ys": rounded(fan.ys),
        "xSpan": rounded(edges(fan.xs)[[0, -1]]),
        "ySpan": rounded(edges(fan.ys)[[0, -1]]),
        "xTitle": right,
        "yTitle": up,
        "walls": rounded(fan.walls().reshape(-1, 4)),
        "labels": fan.labels.tolist(),
        "colours": fan.colours.tolist(),
        "palette": list(COLOURS),
        "prices": rounded(fan.prices),
        "path": rounded(fan.path),
        "inPlane": fan.in_plane.tolist(),
        "stops": list(stops),
        "stopPrices": rounded(prices),
    }


def outline(column: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """The indices to draw, ascending: all of them, or the extremes of each of most/2 bins.

    >>> outline(np.array([0.0, 5.0, 1.0, 2.0, 2.0, 9.0]), most=4)
    array([0, 1, 3, 5])
    """
    if len(column) <= most:
        return np.arange(len(column))
    borders = np.linspace(0, len(column), most // 2 + 1).astype(np.int64)
    kept = [
        start + pick
        for start, end in pairwise(borders.tolist())
        for pick in (int(column[start:end].argmin()), int(column[start:end].argmax()))
    ]
    return np.unique(kept)


def are_dates(names: Sequence[str] | None) -> bool:
    """Whether names of rounds are ISO dates in order, so that a time axis can carry them."""
    if not names or any(not _DATE.fullmatch(name) for name in names):
        return False
    return all(earlier < later for earlier, later in pairwise(names))


def rounded(numbers: Any) -> Any:
    """Numbers to six digits; lists for arrays."""
    if isinstance(numbers, np.ndarray | list | tuple):
        return [rounded(number) for number in numbers]
    return float(f"{float(numbers):.6g}")


def _series(order: FloatArray, column: FloatArray | None = None) -> dict[str, Any]:
    """`column`, thinned by the outline of `order` (itself, unless it is drawn on another scale)."""
    at = outline(order)
    return {"at": at.tolist(), "y": rounded((order if column is None else column)[at])}


def _log_order(column: FloatArray) -> FloatArray:
    """For a log scale: what cannot be drawn there (0, ∞) is put in the middle, so it is never an extreme."""
    drawable = np.isfinite(column) & (column > 0)
    logs = np.zeros(len(column))
    np.log(column, out=logs, where=drawable)
    return np.where(drawable, logs, np.median(logs[drawable]) if drawable.any() else 0.0)


def _names_drawn(
    series: Sequence[dict[str, Any]], names: Sequence[str] | None
) -> dict[int, str] | list[str] | None:
    if names is None:
        return None
    drawn = {t for one in series for t in one["at"]}
    return list(names) if len(drawn) == len(names) else {t: names[t] for t in sorted(drawn)}
