"""What the page says of a priced stream: paragraphs, the data of its charts, and their captions (alt texts).

It carries every round at full precision, for its filter, sums and download, unless there are too many.

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

from normalfan.pricing.crossing import FIRST, PREVIOUS, Plans, keeping
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.summary import NEGLIGIBLE, MovedSummary, Summary
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.regret import Decomposition
from normalfan.report.costliest import PARTS, AttributionMap, CostliestRounds, split_in_words
from normalfan.report.fan import COLOURS, FanPicture
from normalfan.text import amount, counted, number, percent

MOST_POINTS = 5000
MOST_CARRIED = 20_000  # rounds, about 100 bytes each
MOST_AMBIGUOUS = 500  # rounds that are marked as such
MOST_RANKS = 5  # of the costliest rounds, in a sentence
THINNEST = 0.05  # the part of the rounds, those with the smallest gaps, that is marked as thin
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")


def norm_symbol(norm: str) -> str:
    """A norm as people write it.

    >>> norm_symbol("l1"), norm_symbol("linf")
    ('L1', 'L∞')
    """
    return norm.upper().replace("INF", "∞")


def summary_paragraphs(summary: Summary, unit: str) -> list[str]:
    if summary.rounds <= summary.planless:
        only = "There is only one round" if summary.rounds == 1 else f"There are only {summary.rounds} rounds"
        return [f"{only} and no plan before, so there is nothing to price yet."]
    how_often = (
        f"{keeping(summary.plan, summary.plan_in_short)} was free in {summary.free:,} of "
        f"{counted(summary.rounds - summary.planless, 'round')}, negligible (below {percent(NEGLIGIBLE)} of "
        f"the round's value) in {summary.negligible:,} and priced in {summary.priced:,}. It cost "
        f"{amount(summary.total, unit)} in all; the expected {'rewards' if summary.rewards else 'losses'} of "
        f"the best plans add up to {amount(summary.value, unit)}."
    )
    paragraphs = [how_often]
    if summary.never_changed is not None:
        paragraphs.append(_old_and_older(summary, summary.never_changed, unit))
    if summary.moved is not None:
        paragraphs.append(what_moved(summary.moved, unit))
    if summary.costliest:
        paragraphs += [_costliest_round(summary, unit), _beside_variation(summary)]
    if summary.ambiguous:
        low, high = amount(summary.total_lowest, unit), amount(summary.total_highest, unit)
        total = f"lies between {low} and {high}" if low != high else f"is {low}, to the digits shown"
        paragraphs.append(
            f"In {counted(summary.ambiguous, 'round')} a near-tie leaves the price, or whether the optimal "
            f"face moved, open; the exact total {total}."
        )
    return paragraphs


def what_a_price_is(plans: Plans) -> str:
    """The first sentence over the chart of prices."""
    if plans.policy is not None:
        return "The price of a round is what your plan loses against the best plan."
    if plans.forecasts is not None:
        kind = "that is optimal for the round's forecast"
    else:
        when = "the first round" if plans.age is None else "the round before"
        kind = f"that was optimal {f'{plans.age} rounds before' if (plans.age or 1) > 1 else f'in {when}'}"
    return f"The price of a round is the least that a plan {kind} loses, now, against the best plan."


def sense(rewards: bool) -> str:
    return "reward" if rewards else "loss"


def what_moved(moved: MovedSummary, unit: str) -> str:
    """Which part of the price is the market's, and which the equipment's."""
    cost, anew = amount(moved.price, unit), amount(moved.until_surprise, unit)
    parts = {part: getattr(moved, part) for part in PARTS}
    text = (
        f"In {counted(moved.rounds, 'round')} the dynamics moved, too. Keeping the plan cost {cost} there "
        f"({anew} if a new plan is made at the first state that could not have been), "
        f"{split_in_words(parts, unit)}."
    )
    if moved.unsplit:
        text += f" {counted(moved.unsplit, 'round')} could not be split: one of the two cannot move alone."
    return text


def _old_and_older(summary: Summary, never_changed: float, unit: str) -> str:
    """What a plan one round old costs beside one that is never changed; what was said is not said again."""
    old, first = amount(summary.one_round_old, unit), amount(never_changed, unit)
    if summary.plan == PREVIOUS.name:
        return f"The plan of the first round, never changed, would have cost {first}."
    one_round = f"A plan one round old would have cost {old}"
    if summary.plan == FIRST.name:
        return f"{one_round}."
    return f"{one_round}; {FIRST.name}, never changed, {first}."


def _costliest_round(summary: Summary, unit: str) -> str:
    one = summary.costliest[0]
    text = f"The costliest round is {one.name}, at {amount(one.price, unit)}"
    if one.cell is None:
        return f"{text}; this price depends on a near-tie."
    return (
        f"{text}. The largest part of it, {amount(one.cell.paid, unit)}, is paid at step {one.cell.step} in "
        f"state {one.cell.state}, where {summary.plan_in_short} takes {one.cell.action} and the best action "
        f"is {one.cell.best_action}."
    )


def _beside_variation(summary: Summary) -> str:
    costliest = summary.costliest[:MOST_RANKS]
    ranks = ", ".join(f"{one.variation_rank:,}" for one in costliest)
    many = len(costliest)
    text = (
        f"{f'The {many} costliest rounds rank' if many > 1 else 'It ranks'} {ranks} by "
        f"{sense(summary.rewards)} variation ({norm_symbol(summary.norm)}); free rounds have "
        f"{percent(summary.free_variation)} of the variation."
    )
    if summary.rank_correlation is not None:
        text += f" The rank correlation of price and variation is {summary.rank_correlation:.2f}."
    return text


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
        columns = {"price": motion.prices, "best": motion.values, "kept": motion.kept_values}
        sums = {key: np.cumsum(column) for key, column in columns.items()}
    else:
        sums = {key: decomposition.cumulative()[key] for key in ("price", "selection", "regret")}
    unsure = np.flatnonzero(motion.ambiguous)[:MOST_AMBIGUOUS]
    ends = {"y": motion.prices, "low": motion.lowest_prices, "high": motion.highest_prices}
    ambiguous = {"at": unsure.tolist()} | {key: rounded(column[unsure]) for key, column in ends.items()}
    series = {"price": _series(motion.prices), "variation": _series(variation)}
    series |= {"margin": margin, "gap": gap, "ambiguous": ambiguous}
    cumulative = {key: _series(column) for key, column in sums.items()}
    names: Any = motion.round_names
    drawn = sorted({t for one in (*series.values(), *cumulative.values()) for t in one["at"]})
    if names and len(drawn) < len(names):
        names = {t: names[t] for t in drawn}
    return series | {
        "cumulative": cumulative,
        "rounds": len(motion.prices),
        "dates": are_dates(motion.round_names),
        "names": names,
    }


def fan_chart(
    fan: FanPicture, right: str, up: str, stops: Sequence[str], prices: Sequence[float]
) -> dict[str, Any]:
    """`right`, `up`: titles of the axes. `stops`, `prices`: of the losses of the path."""
    found = fan.regions
    costs = found.today.sign * np.column_stack([found.values, found.exposures])
    return {
        "window": found.window.tolist(),
        "xTitle": right,
        "yTitle": up,
        "polygons": [rounded(polygon) for polygon in found.polygons],
        "costs": costs.tolist(),
        "kept": (found.today.sign * found.kept).tolist(),
        "colours": fan.colours.tolist(),
        "palette": list(COLOURS),
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


def every_round(motion: PricedMotion, norm: str) -> dict[str, Any] | None:
    """Columns [T] by their names in frames and files, and names; None if there are too many rounds."""
    if len(motion.prices) > MOST_CARRIED:
        return None
    kept = ("price", "value", f"variation_{norm}", "crossed", "ambiguous", "lowest_price", "highest_price")
    columns = motion.columns()
    return {"names": motion.round_names, "columns": {name: columns[name].tolist() for name in kept}}


def input_of_rounds(motion: PricedMotion) -> dict[str, Any]:
    """The attributes of an input element that chooses a round: a date, a time, or its number."""
    if not are_dates(motion.round_names):
        return {"type": "number", "min": 0, "max": len(motion.prices) - 1, "step": 1}
    names = [name.replace(" ", "T")[:16] for name in motion.round_names or ()]
    days = max(map(len, names)) == 10
    first, last = (name if days or len(name) > 10 else f"{name}T00:00" for name in (names[0], names[-1]))
    return {"type": "date" if days else "datetime-local", "min": first, "max": last}


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


def name_of(motion: PricedMotion, t: int) -> str:
    """What a sentence calls a round."""
    return motion.round_name(t) if motion.round_names else f"round {t}"


def time_caption(motion: PricedMotion, variation: FloatArray, unit: str) -> str:
    highest, furthest = int(motion.prices.argmax()), int(variation.argmax())
    unsure = int(motion.ambiguous.sum())
    if not motion.total:
        text = f"Every price is zero: {motion.plans.name} was optimal in each round."
    else:
        text = (
            f"The highest price is {amount(motion.prices[highest], unit)} ({name_of(motion, highest)}). The "
            f"{sense(motion.rewards)} moved furthest in {name_of(motion, furthest)}, at a price of "
            f"{amount(motion.prices[furthest], unit)}."
        )
    if unsure:
        drawn = f" (the first {MOST_AMBIGUOUS} are drawn)" if unsure > MOST_AMBIGUOUS else ""
        text += (
            f" Marked: {counted(unsure, 'round')} with a near-tie{drawn}, each with the interval in which "
            f"its exact price lies."
        )
    return text


def cumulative_caption(motion: PricedMotion, decomposition: Decomposition | None, unit: str) -> str:
    if decomposition is None:
        best, kept = (amount(float(column.sum()), unit) for column in (motion.values, motion.kept_values))
        return (
            f"With a new plan in each round (solid line) the expected {sense(motion.rewards)} adds up to "
            f"{best}; with {motion.plans.name} (dashed line), to {kept}. The difference is the price."
        )
    text = (
        f"The learner's regret of {amount(decomposition.total_regret, unit)} is the sum of "
        f"{amount(decomposition.first_regret, unit)} in the first round, "
        f"{amount(decomposition.total_price, unit)} of price and "
        f"{amount(decomposition.total_selection, unit)} of selection error (dotted line)."
    )
    if not decomposition.exact:
        off = int((~decomposition.on_face).sum())
        text += (
            f" In {counted(off, 'round')} the learner left the old face: there no theorem gives this split."
        )
    return text


def attribution_caption(
    motion: PricedMotion, costliest: CostliestRounds, paid: AttributionMap, unit: str
) -> str:
    if not costliest.attributed:
        return "Nothing was paid."
    state, step = np.unravel_index(int(paid.paid.argmax()), paid.paid.shape)
    top = int(paid.by_step.argmax())
    text = (
        f"Most is paid at step {paid.steps[top]}: {percent(paid.by_step[top] / motion.total)} of the price. "
        f"The costliest cell is state {paid.states[state]} at step {paid.steps[step]}: "
        f"{amount(float(paid.paid[state, step]), unit)}. The bars count all rounds. The map counts the "
        f"{counted(costliest.attributed, 'round')} with {percent(costliest.attributed_price / motion.total)} "
        f"of the price; its colour shows the square root of what is paid."
    )
    if paid.states_left_out:
        text += (
            f" It shows the {len(paid.states)} states that pay most ({percent(paid.shown)} of it) and leaves "
            f"out {paid.states_left_out:,}."
        )
    return text


def margins_caption(motion: PricedMotion) -> str:
    gaps, margins = motion.advantage_gaps, motion.margins
    finite = np.isfinite(gaps)
    if not finite.any():
        return "There are no gaps to show: in every round all plans are optimal."
    thinnest = int(np.where(finite, gaps, np.inf).argmin())
    text = (
        f"The smallest gap is {number(float(gaps[thinnest]))} ({name_of(motion, thinnest)}). Marked: the "
        f"{counted(int(thin_rounds(gaps).sum()), 'round')} with the smallest gaps ({percent(THINNEST)})."
    )
    bounds = int((~motion.margin_exact & np.isfinite(margins)).sum())
    if bounds:
        text += f" Hollow: {counted(bounds, 'margin')} of which only a lower bound is known."
    undrawn = int((~np.isfinite(margins) | (margins <= 0)).sum())
    if undrawn:
        text += f" Not drawn: {counted(undrawn, 'margin')} that a log scale cannot show (zero or infinite)."
    return text


def fan_caption(fan: FanPicture, before: str, at: str, up: str, unit: str) -> str:
    found = fan.regions
    count = f"{'' if found.complete else 'at least '}{counted(len(found.polygons), 'plan')}"
    return (
        f"A plane of losses, with the loss of {before} at (0, 0) and that of {at} at (1, 0); the vertical "
        f"axis goes {up}. Each region has a best plan of its own ({count} in this window); neighbours differ "
        f"in colour. Moving inside a region is free. Keeping the plan of {before} costs up to "
        f"{amount(fan.corner_price, unit)} at the corners of this window. Hollow points lie outside the "
        f"plane and are drawn at the nearest point of it."
    )


def fan_sentences(fan: FanPicture, unit: str) -> list[str]:
    found = fan.regions
    known, most = counted(len(found.polygons), "plan"), amount(fan.corner_price, unit)
    free = percent(fan.free_share)
    sentences = [
        f"{known} {'is' if len(found.polygons) == 1 else 'are'} optimal somewhere in this window."
        if found.complete
        else f"At least {known} are optimal somewhere in this window; the search was stopped there.",
        f"Keeping the plan of the origin is free on {free} of it, and costs up to {most} at its corners.",
    ]
    if len(fan.path):
        sentences.append(
            f"{int(fan.in_plane.sum()):,} of the {len(fan.path):,} losses of the path lie in the plane; the "
            f"others are drawn hollow, at the nearest point of it."
        )
    return sentences
