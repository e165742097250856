"""By which choice the gain comes and goes: one row a choice, on the seeds that the alternatives were run with.

The gain is the mean regret of mirror descent over that of the thresholded update, both at their best settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from normalfan.paper.experiment import Row
from normalfan.paper.gridworld.measures import (
    Estimate,
    Run,
    Totals,
    below,
    tally,
    times_below,
    verdict_of,
)
from normalfan.paper.gridworld.settings import ETAS, FLOOR, OURS, SCENARIOS

NOISES = {"noise 0.1": "noise 0.1", "noise 0.3": "noise 0.3"}


def sensitivity_rows(totals: Totals) -> Sequence[Row]:
    return [
        _alternatives(
            totals,
            "gridworld/floor",
            "The gain over mirror descent needs no probability floor: none is named.",
            {f"floor {FLOOR:g}": OURS, "floor 0": "floor 0", "floor 0.01": "floor 0.01"},
            "Without a floor log-odds never recover and all step sizes pay alike",
        ),
        _alternatives(
            totals,
            "gridworld/penalty-place",
            "The gain over mirror descent is there in both formulas of the update, the text's and the proof's.",
            {"penalty outside the step": OURS, "penalty inside": "penalty inside"},
            "Inside, the penalty shrinks with the step size",
        ),
        _step_sizes(totals),
        _tracker(totals),
        _noise(totals),
        _alternatives(
            totals,
            "gridworld/scale",
            "The gain over mirror descent does not hang on the units of the loss.",
            {"losses up to 1": OURS, "losses up to 0.1": "losses ×0.1"},
            "Thresholds and penalties are numbers in units of loss and log-odds, which the scale changes",
        ),
    ]  # fmt: skip


def _pair(totals: Totals, scenario: str, variant: str, *, beyond: bool = False) -> tuple[Run, Run]:
    """The thresholded update and mirror descent, over what all alternatives have in common."""
    # Any alternative's settings and seeds are the common ones: the first serves for ours.
    other = "floor 0" if variant == OURS else variant
    place = 0 if variant == OURS else 1
    thresholded = totals.alike(scenario, "thresholded", other, beyond=beyond)[place]
    return thresholded, totals.alike(scenario, "mirror descent", other, beyond=beyond)[place]


def _alternatives(totals: Totals, id: str, claim: str, variants: Mapping[str, str], why: str) -> Row:
    gains: dict[str, Estimate] = {}
    cases: dict[str, bool] = {}
    for words, variant in variants.items():
        for scenario in SCENARIOS:
            ours, plain = _pair(totals, scenario, variant)
            gains[f"{scenario}, {words}"] = times_below(ours, plain)
            cases[f"{scenario}, {words}"] = below(ours, plain)
    return Row(
        id,
        claim,
        "gain: " + "; ".join(f"{case} {gain}" for case, gain in gains.items()),
        verdict_of(cases),
        f"{why}; {tally(cases, 'a gain', 'no gain')}.",
        {case: gain.value for case, gain in gains.items()},
    )


def _step_sizes(totals: Totals) -> Row:
    gains, cases, at_edge = {}, {}, 0
    for scenario in SCENARIOS:
        ours = totals.best(scenario, "thresholded", beyond=True)
        plain = totals.best(scenario, "mirror descent", beyond=True)
        gains[scenario] = times_below(ours, plain)
        cases[scenario] = below(ours, plain)
        at_edge += totals.best(scenario, "mirror descent").setting[0] == ETAS[-1]
    within = {s: times_below(totals.best(s, "thresholded"), totals.best(s, "mirror descent", beyond=True)) for s in SCENARIOS}
    return Row(
        "gridworld/step-sizes",
        "At its best step size, wherever that lies, mirror descent still has more regret than the thresholded update.",
        "mirror descent at any step size over thresholded at any: "
        + "; ".join(f"{s} {gain}" for s, gain in gains.items())
        + "; over thresholded within the sweep: "
        + "; ".join(f"{s} {gain}" for s, gain in within.items()),
        verdict_of(cases),
        f"The best step size of the sweep is its largest in {at_edge} of {len(SCENARIOS)} scenarios, and beyond it "
        f"plain mirror descent goes on to improve; {tally(cases, 'thresholded lower', 'not lower')}.",
        {
            **{f"{s}, any step size": gain.value for s, gain in gains.items()},
            **{f"{s}, within the sweep": gain.value for s, gain in within.items()},
        },
    )  # fmt: skip


def _tracker(totals: Totals) -> Row:
    gains, cases = {}, {}
    for scenario in SCENARIOS:
        ours, tracker = totals.best(scenario, "thresholded"), totals.best(scenario, "tracker")
        gains[scenario] = times_below(ours, tracker)
        cases[scenario] = below(ours, tracker)
    return Row(
        "gridworld/tracker",
        "The thresholded update is worth its tuning: it has less regret than the plain previous-face tracker.",
        "tracker over thresholded, regret: " + "; ".join(f"{s} {gain}" for s, gain in gains.items()),
        verdict_of(cases),
        "Losses that move slowly and are seen without noise make the last optimum nearly free to keep; "
        f"{tally(cases, 'thresholded lower', 'tracker lower or equal')}.",
        {scenario: gain.value for scenario, gain in gains.items()},
    )


def _noise(totals: Totals) -> Row:
    gains: dict[str, Estimate] = {}
    trackers: dict[str, Estimate] = {}
    cases: dict[str, bool] = {}
    for words, variant in NOISES.items():
        for scenario in SCENARIOS:
            ours = totals.best(scenario, "thresholded", variant, beyond=True)
            plain = totals.best(scenario, "mirror descent", variant, beyond=True)
            tracker = totals.best(scenario, "tracker", variant)
            case = f"{scenario}, {words}"
            gains[case], trackers[case] = times_below(ours, plain), times_below(ours, tracker)
            cases[case] = below(ours, plain) and below(ours, tracker)
    return Row(
        "gridworld/noise",
        "When losses are seen with noise, the thresholded update beats mirror descent at any step size and the tracker.",
        "mirror descent at any step size over thresholded: "
        + "; ".join(f"{case} {gain}" for case, gain in gains.items())
        + "; tracker over thresholded: "
        + "; ".join(f"{case} {gain}" for case, gain in trackers.items()),
        verdict_of(cases),
        f"Runs are judged on the mean of what they see; {tally(cases, 'thresholded lowest', 'not lowest')}.",
        {
            **{f"{case}, mirror descent": gain.value for case, gain in gains.items()},
            **{f"{case}, tracker": gain.value for case, gain in trackers.items()},
        },
    )
