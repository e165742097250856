"""What each chart of the page shows, for those who do not see it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalfan.pricing.motion import PricedMotion
from normalfan.regret.decompose import Decomposition
from normalfan.report.charts import THINNEST, thin_rounds
from normalfan.report.crossing_fan import CrossingFan
from normalfan.report.findings import Findings
from normalfan.report.paid import PaidMap
from normalfan.text import amount, counted, number, percent


def captions(
    motion: PricedMotion,
    found: Findings,
    paid: PaidMap,
    fan: CrossingFan | None,
    decomposition: Decomposition | None,
    called: Callable[[int], str],
    unit: str,
) -> dict[str, str]:
    """A text for each chart, by the chart's name."""
    return {
        "time": _time(motion, called, unit),
        "cumulative": _cumulative(motion, decomposition, unit),
        "paid": _paid(motion, found, paid, unit),
        "margins": _margins(motion, called),
        "fan": _fan(fan, called, unit),
    }


def _time(motion: PricedMotion, called: Callable[[int], str], unit: str) -> str:
    dearest = int(motion.prices.argmax())
    moved = int(motion.variation("l1").argmax())
    unsure = int(motion.ambiguous.sum())
    if not motion.total:
        text = "No round was priced: whatever moved, an old plan stayed optimal."
    else:
        text = (
            f"The price peaks at {amount(motion.prices[dearest], unit)} ({called(dearest)}); the loss "
            f"moved furthest before {called(moved)}, which cost {amount(motion.prices[moved], unit)}."
        )
    if unsure:
        text += f" {counted(unsure, 'price')} may hang on a near-tie, marked with the range."
    return text


def _cumulative(motion: PricedMotion, decomposition: Decomposition | None, unit: str) -> str:
    if decomposition is None:
        best = float(motion.values.sum())
        return (
            f"Planned anew each round (line) the expected loss sums to {amount(best, unit)}; with the plan "
            f"of the round before (dashed), to {amount(best + motion.total, unit)}. The difference "
            f"is the price."
        )
    text = (
        f"The learner's regret of {amount(decomposition.total_regret, unit)} is "
        f"{amount(decomposition.first_regret, unit)} in the first round, "
        f"{amount(decomposition.total_price, unit)} of price and "
        f"{amount(decomposition.total_selection, unit)} of selection error (dotted)."
    )
    if not decomposition.exact:
        off = int((~decomposition.on_face).sum())
        text += f" In {counted(off, 'round')} it played off the old face: there the split is no theorem."
    return text


def _paid(motion: PricedMotion, found: Findings, paid: PaidMap, unit: str) -> str:
    if not found.attributed:
        return "Nothing was paid."
    state, step = np.unravel_index(int(paid.paid.argmax()), paid.paid.shape)
    top = int(paid.by_step.argmax())
    text = (
        f"Most is paid at step {paid.steps[top]} ({percent(paid.by_step[top] / motion.total)} of the price); "
        f"the dearest cell is {paid.states[state]} at {paid.steps[step]}, "
        f"{amount(float(paid.paid[state, step]), unit)}. The bars count every round; the map, whose "
        f"colour is the square root of what is paid, the "
        f"{counted(found.attributed, 'round')} that carry {percent(found.attributed_price / motion.total)} "
        f"of the price."
    )
    if paid.states_left_out:
        text += (
            f" It shows the {len(paid.states)} states that carry most, {percent(paid.shown)}; "
            f"{paid.states_left_out:,} more are left out."
        )
    return text


def _margins(motion: PricedMotion, called: Callable[[int], str]) -> str:
    columns = motion.columns()
    gaps, margins = columns["advantage_gap"], columns["margin"]
    finite = np.isfinite(gaps)
    if not finite.any():
        return "No round has a wall: every plan is optimal in all of them."
    thinnest = int(np.where(finite, gaps, np.inf).argmin())
    text = (
        f"The smallest gap is {number(float(gaps[thinnest]))} "
        f"({called(thinnest)}). The {counted(int(thin_rounds(gaps).sum()), 'round')} "
        f"with the smallest gaps ({percent(THINNEST)}) are marked."
    )
    bounds = int((~columns["margin_exact"] & np.isfinite(margins)).sum())
    if bounds:
        text += f" {counted(bounds, 'margin')} are lower bounds, drawn hollow."
    undrawn = int((~np.isfinite(margins) | (margins <= 0)).sum())
    if undrawn:
        text += f" {counted(undrawn, 'margin')} have no place on a log scale (0, or no wall at all)."
    return text


def _fan(fan: CrossingFan | None, called: Callable[[int], str], unit: str) -> str:
    if fan is None:
        return ""
    before, at = called(fan.round - 1), called(fan.round)
    return (
        f"The plane through the losses of {before}, at (0, 0), and {at}, at (1, 0); upwards {fan.up}. Each "
        f"region is a cone of losses with one optimal face, {fan.picture.n_faces:,} here; neighbours differ "
        f"in colour. Moving within a region is free. Keeping the plan of {before} costs up to "
        f"{amount(float(fan.picture.prices.max()), unit)} in this window. Hollow stops lie off the plane and "
        f"are drawn where it comes nearest."
    )
