"""The data of the page's charts, as compact JSON: what is drawn, and nothing else.

A series is {"at": rounds, "y": numbers}. Names of rounds are sent once, for the rounds that are drawn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.regret.decompose import Decomposition
from normalfan.report.fan import COLOURS, FanPicture, edges
from normalfan.report.paid import PaidMap
from normalfan.report.series import are_dates, outline, rounded

THINNEST = 0.05
"""The part of the rounds, those with the smallest gaps, that is marked as thin."""


def thin_rounds(gaps: FloatArray) -> BoolArray:
    """[T]: whether a round's smallest gap is among the `THINNEST` of those that have one."""
    finite = gaps[np.isfinite(gaps)]
    if not len(finite):
        return np.zeros(len(gaps), dtype=bool)
    return np.asarray(gaps <= np.quantile(finite, THINNEST, method="lower"))


def time_charts(
    motion: PricedMotion, names: Sequence[str] | None, norm: str, decomposition: Decomposition | None
) -> dict[str, Any]:
    """Price, variation, cumulative columns and margins, thinned alike."""
    columns = motion.columns()
    charts: dict[str, Any] = {
        "price": _series(motion.prices),
        "variation": _series(motion.variation(norm)),
        "margin": _series(_log_order(columns["margin"]), columns["margin"]),
        "gap": _series(_log_order(columns["advantage_gap"]), columns["advantage_gap"]),
    }
    charts["margin"]["exact"] = columns["margin_exact"][charts["margin"]["at"]].tolist()
    charts["gap"]["thin"] = thin_rounds(columns["advantage_gap"])[charts["gap"]["at"]].tolist()
    if decomposition is None:
        charts["cumulative"] = {
            "price": _series(np.cumsum(motion.prices)),
            "anew": _series(np.cumsum(motion.values)),
            "behind": _series(np.cumsum(motion.values + motion.prices)),
        }
    else:
        sums = decomposition.cumulative()
        charts["cumulative"] = {key: _series(sums[key]) for key in ("price", "selection", "regret")}
    unsure = np.flatnonzero(columns["ambiguous"])[:500]
    charts["ambiguous"] = {
        "at": unsure.tolist(),
        "y": rounded(motion.prices[unsure]),
        "low": rounded(motion.lowest_prices[unsure]),
        "high": rounded(motion.highest_prices[unsure]),
    }
    charts["rounds"] = len(motion.prices)
    charts["dates"] = are_dates(names)
    charts["names"] = _names(charts, names)
    return charts


def paid_chart(paid: PaidMap) -> dict[str, Any]:
    return {
        "z": rounded(paid.paid),
        "byStep": rounded(paid.by_step),
        "steps": list(paid.steps),
        "states": list(paid.states),
    }


def fan_chart(
    fan: FanPicture, right: str, up: str, stops: Sequence[str], prices: Sequence[float]
) -> dict[str, Any]:
    """`right`, `up`: what the axes are called. `stops`, `prices`: of the losses of the path."""
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


def as_script(data: Any) -> str:
    """JSON that is inert within an HTML script element, whatever the labels say."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _series(order: FloatArray, column: FloatArray | None = None) -> dict[str, Any]:
    """`column`, thinned by the outline of `order` (itself, unless it is drawn on another scale)."""
    at = outline(order)
    return {"at": at.tolist(), "y": rounded((order if column is None else column)[at])}


def _log_order(column: FloatArray) -> FloatArray:
    """For a log scale: what cannot be drawn there (0, ∞) is in the middle and is never an extreme."""
    drawable = np.isfinite(column) & (column > 0)
    logs = np.zeros(len(column))
    np.log(column, out=logs, where=drawable)
    return np.where(drawable, logs, np.median(logs[drawable]) if drawable.any() else 0.0)


def _names(charts: dict[str, Any], names: Sequence[str] | None) -> dict[int, str] | list[str] | None:
    if names is None:
        return None
    series = [charts[key] for key in ("price", "variation", "margin", "gap", "ambiguous")]
    drawn = {t for one in (*series, *charts["cumulative"].values()) for t in one["at"]}
    return list(names) if len(drawn) == len(names) else {t: names[t] for t in sorted(drawn)}
