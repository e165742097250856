"""What is said of ranges: a table, a few sentences, and the data of a tornado chart."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import Face
from normalfan.pricing.kernels import Tables
from normalfan.ranges.radius import Radius
from normalfan.ranges.ranging import Ranging
from normalfan.report.costliest import likely_moves
from normalfan.text import amount, counted, number, percent

ENDS: dict[str, Literal["low", "high"]] = {"below": "low", "above": "high"}
LISTED = 50
LISTED_IN_REPORT = 10
MOST_IN_REPORT = 500  # features: beyond, a page is not the place for their ranges


class RangeRow(NamedTuple):
    """The range of one coefficient, in words."""

    feature: str
    now: str
    exposure: str
    optimal: str
    within: str
    beyond: dict[str, tuple[str, str]]  # "below" and "above": where the tolerated range ends, the plan there


def range_rows(found: Ranging, top: int | None = None) -> dict[int, RangeRow]:
    """Rows of the `top` narrowest ranges, or of all in their own order if they are few, by number."""
    is_whole = top is None and len(found.names) <= LISTED
    tables, rows = Tables(found.today.mdp), {}
    for i in range(len(found.names)) if is_whole else found.narrowest[: top or LISTED]:
        least, most = map(number, found.exposures[i])
        exposure = least if least == most else f"{least} to {most}"
        beyond = {
            side: (number(limit), plan)
            for (side, end), limit in zip(ENDS.items(), found.within[i], strict=True)
            if (plan := _takes_over(found, tables, i, end))
        }
        rows[i] = RangeRow(found.names[i], number(found.now[i]), exposure, *found.words(i), beyond)
    return rows


def _takes_over(found: Ranging, tables: Tables, i: int, end: Literal["low", "high"]) -> str:
    """The first step at which the plan beyond an end differs from the optimal one of today nearest to it."""
    other, today, labels = found.beyond(i, end, tolerated=True), found.today, found.today.mdp.labels
    if other is None:
        return ""
    _, kept = Face(today.mdp, today.tied).minimise(np.where(other.policy > 0, 0.0, 1.0))
    visits = (occupancy(today.mdp, policy) for policy in (kept, other.policy))
    old, new = (likely_moves(tables, one, today.loss) for one in visits)
    for h, (was, now) in enumerate(zip(old, new, strict=True)):
        if was.state != now.state:
            return f"{labels.step(h)}: {was.text} → {now.text}"
        if was.action != now.action:
            actions = f"{labels.action(was.action)} → {labels.action(now.action)}"
            return f"{labels.step(h)}, {labels.state(was.state)}: {actions}"
    return f"takes {number(other.exposures[i])}, by other actions in less likely states"


def range_sentences(found: Ranging, reach: Radius, unit: str) -> list[str]:
    """The round, how wrong everything may be at once, and what the ranges are."""
    share = f" ({percent(found.tolerance / abs(found.value))} of the value)" if found.value else ""
    more = f"costs more than {amount(found.tolerance, unit)}{share}"
    sense = "reward" if found.today.sign < 0 else "loss"
    moved = int(np.sum(np.isfinite(found.now) & (found.now != 0)))
    all_of = (
        f"all {counted(moved, 'feature')}" if moved == len(found.now) else f"the {moved:,} that are not 0"
    )
    value = f"expected {sense} of {amount(found.value, unit)}"
    sentences = [
        f"In round {found.today.round_name} the best plan has an {value}.",
        _radius_sentence(all_of, reach, more),
        "The ranges are one at a time: of each feature while the others stand still.",
    ]
    if np.ptp(found.exposures, axis=1).any():
        sentences.append(
            "Several plans are optimal now: each range is that of the plan that lasts longest there; what "
            "may be wrong at once is for the first plan."
        )
    return sentences


def _radius_sentence(all_of: str, reach: Radius, more: str) -> str:
    if np.isinf(reach.lower):
        return f"However wrong {all_of} may be at once, in parts of themselves, this plan never {more}."
    if not reach.upper:
        return f"If {all_of} may be wrong at once, by however little, this plan {more}."
    if not reach.lower:
        return (
            f"If {all_of} may be wrong at once, by however little, it is open whether this plan {more}: rare "
            f"states decide, so ask with a larger tolerance."
        )
    ends = [f"±{number(float(f'{100 * bound:.3g}'))} %" for bound in (reach.lower, reach.upper)]
    text = f"{all_of[0].upper()}{all_of[1:]} may be wrong by {ends[0]} at once before this plan {more}"
    if reach.exact or ends[0] == ends[1]:
        return f"{text}."
    known = "how far beyond is not known" if np.isinf(reach.upper) else f"beyond {ends[1]} it can"
    return f"{text}, at least; {known}."


def chart_and_table(
    found: Ranging, reach: Radius, unit: str, top: int | None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The data of the chart of ranges, bars by feature, and the texts around it."""
    bars, rows = found.bars(), list(range_rows(found, top).values())
    scale = 100.0 if bars.relative else 1.0  # moves in parts of now are percentages
    chart = {
        "names": [found.names[i] for i in bars.order],
        "texts": [[number(found.now[i]), *found.words(i)] for i in bars.order],
        "optimal": (scale * bars.optimal).round(6).tolist(),
        "within": (scale * bars.within).round(6).tolist(),
        "edge": scale * bars.edge,
        "relative": bars.relative,
    }
    of_all = f", the {len(rows)} narrowest of {len(found.names)}" if len(rows) < len(found.names) else ""
    drawn = "No range ends: there is nothing to draw."
    if bars.order:
        left_out = len(found.names) - len(bars.order)
        drawn = "The narrowest ranges first; bars that reach an edge go on."
        drawn += f" Not drawn: {counted(left_out, 'feature')}." if left_out else ""
    table = {
        "caption": f"One at a time, the others standing still{of_all}",
        "rows": rows,
        "drawn": drawn,
        "height": 110 + 22 * len(bars.order) if bars.order else 0,
    }
    texts = {"range_table": table, "sentences": range_sentences(found, reach, unit)}
    return chart if bars.order else None, texts
