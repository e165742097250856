"""The report: one HTML file that carries its data, its styles, its scripts and its words.

The words and the table are in the file as text, so that they can be read, searched and printed without
running anything; the charts are drawn from the data by plotly, which is embedded. The page asks the network
for nothing, and a content-security policy keeps it so. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.summary import summarise
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_stream, names_of_rounds
from normalfan.problem.mdp import MDP
from normalfan.regret.decompose import Decomposition
from normalfan.report.charts import fan_chart, paid_chart, time_charts
from normalfan.report.crossing_fan import CrossingFan, slice_through
from normalfan.report.findings import look_again
from normalfan.report.paid import fold
from normalfan.report.rendering import write_page
from normalfan.report.sentences import captions, summary_sentences
from normalfan.report.series import MOST_POINTS
from normalfan.report.table import rows_of

NORM_NAMES = {"l1": "L1", "l2": "L2", "linf": "L∞"}


def write_report(
    path: str | Path,
    mdp: MDP,
    losses: Any,
    motion: PricedMotion,
    *,
    title: str,
    unit: str = "",
    note: str = "",
    norm: str = "l1",
    decomposition: Decomposition | None = None,
    ties: TieRule = DEFAULT_TIES,
) -> None:
    """Write what `motion = price_stream(mdp, losses, ties)` found as a page to `path`.

    `losses` are read once more, so an iterator that is used up will not do. `unit`: of the losses ("$").
    `note`: a sentence under the title, for the source of the data or a date. `norm`: of the loss variation
    beside the price. `decomposition`: of a learner's run on the same losses, to be drawn instead of the
    cumulative values.
    """
    variation = motion.variation(norm)  # refuses an unknown norm, and a motion without details
    measure = NORM_NAMES.get(norm.lower(), norm)
    names = names_of_rounds(as_stream(losses))

    def called(t: int) -> str:
        return names[t] if names else f"round {t}"

    found = look_again(mdp, losses, motion, ties)
    fan = slice_through(mdp, found.around, found.centre, called, ties)
    paid = fold(found.attribution, motion.by_step.sum(axis=0), mdp.labels)
    rows = rows_of(mdp, motion, variation, found.changes, names, unit)
    data = {
        "unit": unit,
        "norm": measure,
        "time": time_charts(motion, names, norm, decomposition),
        "paid": paid_chart(paid),
        "fan": _fan_data(fan, motion.prices, called),
    }
    write_page(
        path,
        "report.html",
        data,
        title=title,
        note=note,
        summary=summary_sentences(summarise(mdp, losses, motion, norm=norm, ties=ties), measure, unit),
        captions=captions(motion, found, paid, fan, decomposition, called, unit),
        rows=rows,
        thinned=len(motion.prices) > MOST_POINTS,
        most_points=MOST_POINTS,
        n_rounds=len(motion.prices),
        shape=mdp.shape,
        norm=measure,
        unit=unit,
    )


def _fan_data(fan: CrossingFan | None, prices: FloatArray, called: Callable[[int], str]) -> Any:
    if fan is None:
        return None
    stops = [called(t) for t in fan.stops]
    return fan_chart(fan.picture, fan.right, fan.up, stops, [float(prices[t]) for t in fan.stops])
