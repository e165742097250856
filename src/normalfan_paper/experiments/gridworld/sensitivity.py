"""Beyond the paper: by which choice the gain comes and goes, and a combination that needs no choice.

The gain is the mean regret of mirror descent over that of the thresholded update, both at their best
settings. One row a choice, on the seeds of the alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.gridworld.measures import (
    MATTERS,
    Case,
    RegretTotals,
    Run,
    below,
    described,
    jackknife,
    numbers,
    tally,
    times_below,
    verdict_of,
)
from normalfan_paper.experiments.gridworld.settings import ETAS, FLOOR, OURS, PAIR, POOL, SCENARIOS
from normalfan_paper.judging import Estimate, estimate, seeds_in_words

if TYPE_CHECKING:
    import polars

NOISES = ("noise 0.1", "noise 0.3")
PROMISE_ROUNDING = 1e-6  # of sums of thousands of payments


def sensitivity_rows(frame: polars.DataFrame, totals: RegretTotals) -> Sequence[LedgerRow]:
    found = [
        _alternatives(
            totals,
            "gridworld/floor",
            "The gain over mirror descent needs no probability floor: none is named.",
            {f"floor {FLOOR:g}": OURS, "floor 0": "floor 0", "floor 0.01": "floor 0.01"},
            "Without a floor log-odds have an unbounded memory",
        ),
        _alternatives(
            totals,
            "gridworld/penalty-place",
            "The gain over mirror descent is there in both formulas of the update, the text's and "
            "the proof's.",
            {"penalty outside the step": OURS, "penalty inside": "penalty inside"},
            "Inside, the penalty is multiplied by the step size",
        ),
        _step_sizes(totals),
        _tracker(totals),
        _noise(totals),
        _alternatives(
            totals,
            "gridworld/scale",
            "The gain over mirror descent does not hang on the units of the loss.",
            {"losses up to 1": OURS, "losses up to 0.1": "losses ×0.1"},
            "A step size and a threshold are in units of the loss",
        ),
        *_combined(frame),
    ]  # fmt: skip
    return [replace(row, beyond=True) for row in found]


def pair_under(totals: RegretTotals, scenario: str, variant: str, *, beyond: bool = False) -> tuple[Run, Run]:
    """The thresholded update and mirror descent, over what all alternatives have in common."""
    # Any alternative's settings and seeds are the common ones: the first serves for ours.
    other = "floor 0" if variant == OURS else variant
    place = 0 if variant == OURS else 1
    thresholded = totals.alike(scenario, "thresholded", other, beyond=beyond)[place]
    return thresholded, totals.alike(scenario, "mirror descent", other, beyond=beyond)[place]


def _alternatives(
    totals: RegretTotals, row: str, claim: str, variants: Mapping[str, str], why: str
) -> LedgerRow:
    gains: dict[Case, Estimate] = {}
    for words, variant in variants.items():
        for scenario in SCENARIOS:
            gains[words, scenario] = times_below(*pair_under(totals, scenario, variant))
    cases = {case: gain.above(MATTERS) for case, gain in gains.items()}
    return LedgerRow(
        row,
        claim,
        f"gain: {described(gains)}",
        verdict_of(cases),
        f"{why}: scenarios with a gain surely above {MATTERS:g}, {tally(cases)}.",
        numbers(gains),
        seeds_in_words(min(totals.seeds(variant) for variant in variants.values())),
    )


def _step_sizes(totals: RegretTotals) -> LedgerRow:
    gains, cases = {}, {}
    at_edge, improve = 0, 0
    for scenario in SCENARIOS:
        swept, plain = (totals.best(scenario, "mirror descent", beyond=beyond) for beyond in (False, True))
        ours, anywhere = (totals.best(scenario, "thresholded", beyond=beyond) for beyond in (False, True))
        at_edge += swept.setting[0] == ETAS[-1]
        improve += below(plain, ours)
        gains["thresholded within the sweep", scenario] = times_below(ours, plain)
        gains["thresholded at any step size", scenario] = times_below(anywhere, plain)
        for words in ("within the sweep", "at any step size"):
            cases[words, scenario] = gains[f"thresholded {words}", scenario].above(MATTERS)
    return LedgerRow(
        "gridworld/step-sizes",
        "At its best step size, wherever that lies, mirror descent still has more regret than the "
        "thresholded update.",
        f"mirror descent at any step size over {described(gains)}",
        verdict_of(cases),
        f"Within the sweep mirror descent is best at its largest step in {at_edge} of "
        f"{len(SCENARIOS)} scenarios; beyond it, it falls below the sweep's thresholded update in {improve}. "
        f"Scenarios in which it stays surely above {MATTERS:g} times the thresholded update, {tally(cases)}.",
        numbers(gains),
        seeds_in_words(totals.seeds()),
    )


def _tracker(totals: RegretTotals) -> LedgerRow:
    pairs = {("", s): (totals.best(s, "thresholded"), totals.best(s, "tracker")) for s in SCENARIOS}
    gains = {case: times_below(*pair) for case, pair in pairs.items()}
    cases = {case: below(*pair) for case, pair in pairs.items()}
    return LedgerRow(
        "gridworld/tracker",
        "The thresholded update has less regret than the plain previous-face tracker, which has "
        "nothing to tune.",
        f"tracker over thresholded: {described(gains)}",
        verdict_of(cases),
        "The tracker pays its first round, the face price and what it selects wrongly among equals; "
        f"the thresholded update is lower in {tally(cases)}.",
        numbers(gains),
        seeds_in_words(totals.seeds()),
    )


def _noise(totals: RegretTotals) -> LedgerRow:
    over_mirror, over_tracker, cases = {}, {}, {}
    for variant in NOISES:
        for scenario in SCENARIOS:
            ours = totals.best(scenario, "thresholded", variant, beyond=True)
            plain = totals.best(scenario, "mirror descent", variant, beyond=True)
            tracker = totals.best(scenario, "tracker", variant)
            case = variant, scenario
            over_mirror[case], over_tracker[case] = times_below(ours, plain), times_below(ours, tracker)
            cases[case] = below(ours, plain) and below(ours, tracker)
    return LedgerRow(
        "gridworld/noise",
        "When losses are seen with noise, the thresholded update beats mirror descent at any step "
        "size and the tracker.",
        f"mirror descent over thresholded, {described(over_mirror)}; tracker over thresholded, "
        f"{described(over_tracker)}",
        verdict_of(cases),
        "Judged on the mean of what is seen, all at any step size, the thresholded update is lowest "
        f"with {tally(cases)}.",
        {**numbers(over_mirror, "mirror descent"), **numbers(over_tracker, "tracker")},
        seeds_in_words(totals.seeds(NOISES[0])),
    )


def _combined(frame: polars.DataFrame) -> list[LedgerRow]:
    """Whether combinations kept their promise in every run, and how near they came to their best member."""
    import polars as pl

    rows = frame.filter(pl.col("method").str.starts_with("combined, "))
    slack = rows.filter(pl.col("measure") == "slack of the bound")["value"].to_numpy()
    kept = int((slack >= -PROMISE_ROUNDING).sum())
    ratios: dict[Case, Estimate] = {}
    near: dict[Case, bool] = {}
    excesses: dict[Case, Estimate] = {}
    seeds = []
    for variant, pool, scenario in product(("no noise", *NOISES), (PAIR, POOL), SCENARIOS):
        mine = rows.filter(
            pl.col("variant") == variant,
            pl.col("scenario") == scenario,
            pl.col("method") == f"combined, {pool}",
        )
        regret, best, bound = (
            mine.filter(pl.col("measure") == measure).sort("seed")["value"].to_numpy()
            for measure in ("total regret", "best member's regret", "bound")
        )
        case = f"{variant}, {pool}", scenario
        ratios[case] = jackknife(
            lambda pair: float(pair[0].mean() / pair[1].mean()), np.stack([regret, best])
        )
        excesses[case] = estimate(regret - best)
        near[case] = not estimate(regret - best - bound).above(0.0)
        seeds.append(len(regret))
    shares = [excess.mean for excess in excesses.values()]
    return [
        LedgerRow(
            "gridworld/combined-bound",
            "A combination of learners never pays more than its best member and what it promises, with a "
            "share "
            "on every interval.",
            f"promise kept in {kept} of {len(slack)} runs, least slack {slack.min():.3g}; without a share "
            f"over the "
            "whole run, with a share of 1/T on every interval between 60 cuts",
            Verdict.HOLDS if kept == len(slack) else Verdict.FALSE,
            "The bound is computed from the run itself: twice the summed mixability gap, or its form for "
            "intervals; "
            "docs/details/learners.md proves it.",
            {"runs": float(len(slack)), "kept": float(kept), "least slack": float(slack.min())},
            seeds_in_words(min(seeds)),
        ),
        LedgerRow(
            "gridworld/combined",
            "The combination of the tracker with the thresholded update, or with all settings, is as good "
            "as the "
            "best of them up to its bound, with noise and without.",
            f"regret over that of the best member, each seed's own: {described(ratios)}",
            verdict_of(near),
            f"The mean excess over the best member is {min(shares):.3g} to {max(shares):.3g}; within the "
            f"mean of the "
            f"bound, {tally(near)}. With noise the promise is about the losses seen, and about those "
            f"judged on "
            "average only.",
            numbers(ratios) | numbers(excesses, "excess"),
            seeds_in_words(min(seeds)),
        ),
    ]
