"""A priced stream in sentences: paragraphs for a page or a terminal, and captions (alt texts) of charts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.summary import NEGLIGIBLE, CostlyRound, Summary
from normalfan.problem.arrays import FloatArray
from normalfan.regret.decompose import Decomposition
from normalfan.report.attribution_map import AttributionMap, CostliestRounds
from normalfan.report.charts import MOST_AMBIGUOUS, THINNEST, thin_rounds
from normalfan.report.fan import CrossingFan
from normalfan.text import amount, counted, number, percent


def norm_symbol(norm: str) -> str:
    """A norm as people write it.

    >>> norm_symbol("l1"), norm_symbol("linf")
    ('L1', 'L∞')
    """
    return norm.upper().replace("INF", "∞")


def summary_paragraphs(summary: Summary, unit: str) -> list[str]:
    """The stream in a few paragraphs."""
    if summary.rounds < 2:
        return ["There is only one round and no plan before it, so there is nothing to price yet."]
    how_often = (
        f"Keeping the plan of the round before was free in {summary.free:,} of "
        f"{counted(summary.rounds - 1, 'round')}, negligible (below {percent(NEGLIGIBLE)} of the round's "
        f"value) in {summary.negligible:,} and priced in {summary.priced:,}. It cost "
        f"{amount(summary.total, unit)} in all; the expected losses of the best plans add up to "
        f"{amount(summary.value, unit)}."
    )
    paragraphs = [how_often]
    if summary.costliest:
        paragraphs += [_costliest_round(summary.costliest[0], unit), _beside_variation(summary)]
    if summary.ambiguous:
        low, high = amount(summary.total_lowest, unit), amount(summary.total_highest, unit)
        total = f"lies between {low} and {high}" if low != high else f"is {low}, to the digits shown"
        paragraphs.append(
            f"In {counted(summary.ambiguous, 'round')} a near-tie leaves the price, or whether the optimal "
            f"face moved, open; the exact total {total}."
        )
    return paragraphs


def _costliest_round(one: CostlyRound, unit: str) -> str:
    text = f"The costliest round is {one.name}, at {amount(one.price, unit)}"
    if one.cell is None:
        return f"{text}; this price depends on a near-tie."
    return (
        f"{text}. The largest part of it, {amount(one.cell.paid, unit)}, is paid at step {one.cell.step} in "
        f"state {one.cell.state}, where the old plan takes {one.cell.action} and the best action is "
        f"{one.cell.best_action}."
    )


def _beside_variation(summary: Summary) -> str:
    ranks = ", ".join(f"{one.variation_rank:,}" for one in summary.costliest)
    many = len(summary.costliest)
    text = (
        f"{f'The {many} costliest rounds rank' if many > 1 else 'It ranks'} {ranks} by loss variation "
        f"({norm_symbol(summary.norm)}); free rounds have {percent(summary.free_variation)} of the variation."
    )
    if summary.rank_correlation is not None:
        text += f" The rank correlation of price and variation is {summary.rank_correlation:.2f}."
    return text


def captions(
    motion: PricedMotion,
    variation: FloatArray,
    costliest: CostliestRounds,
    paid: AttributionMap,
    fan: CrossingFan | None,
    decomposition: Decomposition | None,
    name_of: Callable[[int], str],
    unit: str,
) -> dict[str, str]:
    """A text for each chart, by the chart's name."""
    return {
        "time": _time(motion, variation, name_of, unit),
        "cumulative": _cumulative(motion, decomposition, unit),
        "attribution": _attribution(motion, costliest, paid, unit),
        "margins": _margins(motion, name_of),
        "fan": _fan(fan, name_of, unit),
    }


def _time(motion: PricedMotion, variation: FloatArray, name_of: Callable[[int], str], unit: str) -> str:
    highest, furthest = int(motion.prices.argmax()), int(variation.argmax())
    unsure = int(motion.ambiguous.sum())
    if not motion.total:
        text = "Every price is zero: in each round an old optimal plan was still optimal."
    else:
        text = (
            f"The highest price is {amount(motion.prices[highest], unit)} ({name_of(highest)}). The loss "
            f"moved furthest in {name_of(furthest)}, at a price of {amount(motion.prices[furthest], unit)}."
        )
    if unsure:
        drawn = f" (the first {MOST_AMBIGUOUS} are drawn)" if unsure > MOST_AMBIGUOUS else ""
        text += (
            f" Marked: {counted(unsure, 'round')} with a near-tie{drawn}, each with the interval in which "
            f"its exact price lies."
        )
    return text


def _cumulative(motion: PricedMotion, decomposition: Decomposition | None, unit: str) -> str:
    if decomposition is None:
        best = float(motion.values.sum())
        return (
            f"With a new plan in each round (solid line) the expected loss adds up to {amount(best, unit)}; "
            f"with the plan of the round before (dashed line), to {amount(best + motion.total, unit)}. The "
            f"difference is the price."
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


def _attribution(motion: PricedMotion, costliest: CostliestRounds, paid: AttributionMap, unit: str) -> str:
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


def _margins(motion: PricedMotion, name_of: Callable[[int], str]) -> str:
    gaps, margins = motion.advantage_gaps, motion.margins
    finite = np.isfinite(gaps)
    if not finite.any():
        return "There are no gaps to show: in every round all plans are optimal."
    thinnest = int(np.where(finite, gaps, np.inf).argmin())
    text = (
        f"The smallest gap is {number(float(gaps[thinnest]))} ({name_of(thinnest)}). Marked: the "
        f"{counted(int(thin_rounds(gaps).sum()), 'round')} with the smallest gaps ({percent(THINNEST)})."
    )
    bounds = int((~motion.margin_exact & np.isfinite(margins)).sum())
    if bounds:
        text += f" Hollow: {counted(bounds, 'margin')} of which only a lower bound is known."
    undrawn = int((~np.isfinite(margins) | (margins <= 0)).sum())
    if undrawn:
        text += f" Not drawn: {counted(undrawn, 'margin')} that a log scale cannot show (zero or infinite)."
    return text


def _fan(fan: CrossingFan | None, name_of: Callable[[int], str], unit: str) -> str:
    if fan is None:
        return ""
    before, at = name_of(fan.round - 1), name_of(fan.round)
    return (
        f"A plane of losses, with the loss of {before} at (0, 0) and that of {at} at (1, 0); the vertical "
        f"axis goes {fan.up}. Each region is a cone of losses with one optimal face "
        f"({fan.picture.n_faces:,} in this window); neighbours differ in colour. Moving inside a region is "
        f"free. Keeping the plan of {before} costs up to {amount(float(fan.picture.prices.max()), unit)} in "
        f"this window. Hollow points lie outside the plane and are drawn at the nearest point of it."
    )
