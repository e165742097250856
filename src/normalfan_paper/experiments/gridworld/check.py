"""The paper's claims on the gridworld, judged.

    lowest, lowest/<scenario>    the thresholded update has the least regret at best settings within the sweep
    factor                       three to four times less than the mirror-descent baselines
    trust-region                 less than the best trust region
    wall-mass                    more occupancy near the walls where the optimum moves sharply
    causal-layers, causal-drive  the gain comes from the causal factor H − h + 1

What decides these, choice by choice, is in `sensitivity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.gridworld.measures import (
    RegretTotals,
    below,
    described,
    jackknife,
    numbers,
    tally,
    times_below,
    verdict_of,
)
from normalfan_paper.experiments.gridworld.sensitivity import sensitivity_rows
from normalfan_paper.experiments.gridworld.settings import ETAS, KINDS, OURS, SCENARIOS, SHARP
from normalfan_paper.judging import estimate

if TYPE_CHECKING:
    import polars

MIRROR = ("mirror descent", "optimistic")
TRUST = tuple(f"trust region, {kind}" for kind in KINDS)
WALL_MEASURES = {
    "near walls": "actions with 0 < A* ≤ 0.1",
    "near optimal": "actions with A* ≤ 0.1",
    "thin states": "states that have an action with 0 < A* ≤ 0.1",
}
FACTOR = (3.0, 4.0)


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    totals = RegretTotals(frame)
    return [
        _lowest(totals),
        *(_lowest_in(totals, scenario) for scenario in SCENARIOS),
        _factor(totals),
        _trust_region(totals),
        _wall_mass(frame),
        _causal_layers(frame),
        _causal_drive(totals),
        *sensitivity_rows(totals),
    ]


def _wins(totals: RegretTotals, scenario: str, rivals: Sequence[str]) -> dict[str, bool]:
    ours = totals.best(scenario, "thresholded")
    return {rival: below(ours, totals.best(scenario, rival)) for rival in rivals}


def _lowest(totals: RegretTotals) -> LedgerRow:
    cases = {
        (f"radius {kind}", scenario): all(_wins(totals, scenario, (*MIRROR, trust)).values())
        for kind, trust in zip(KINDS, TRUST, strict=True)
        for scenario in SCENARIOS
    }
    return LedgerRow(
        "gridworld/lowest",
        "The thresholded update has the lowest cumulative regret in every scenario, each method at "
        "its best setting.",
        f"lowest in {sum(cases.values())} of {len(cases)} pairs of a scenario and a kind of trust region",
        verdict_of(cases),
        f"Scenarios in which it is lowest, by kind of trust region: {tally(cases)}.",
        {f"{kind}, {scenario}": float(held) for (kind, scenario), held in cases.items()},
    )


def _lowest_in(totals: RegretTotals, scenario: str) -> LedgerRow:
    rivals = (*MIRROR, *TRUST)
    cases = {("", rival): held for rival, held in _wins(totals, scenario, rivals).items()}
    runs = [totals.best(scenario, method) for method in ("thresholded", *rivals)]
    means = {("", run.method): estimate(run.regret.values()) for run in runs}
    return LedgerRow(
        f"gridworld/lowest/{scenario.replace(' ', '-')}",
        f"The thresholded update has the lowest cumulative regret: {scenario}.",
        described(means),
        verdict_of(cases),
        f"At the best settings within the sweep its regret is below that of {tally(cases)}.",
        numbers(means),
    )


def _factor(totals: RegretTotals) -> LedgerRow:
    gains = {
        (f"over {rival}", scenario): times_below(
            totals.best(scenario, "thresholded"), totals.best(scenario, rival)
        )
        for rival in MIRROR
        for scenario in SCENARIOS
    }
    cases = {case: gain.within(*FACTOR) for case, gain in gains.items()}
    values = [gain.mean for gain in gains.values()]
    spans = min(values) < FACTOR[0] and max(values) > FACTOR[1]  # a number with scenarios on both sides
    return LedgerRow(
        "gridworld/factor",
        "The thresholded update beats the mirror-descent baselines by factors of three to four.",
        described(gains),
        Verdict.DEPENDS if spans else verdict_of(cases),
        f"Scenarios with a factor between {FACTOR[0]:g} and {FACTOR[1]:g}, {tally(cases)}; the row "
        "gridworld/floor shows it at other floors.",
        numbers(gains),
    )


def _trust_region(totals: RegretTotals) -> LedgerRow:
    pairs = {
        (f"radius {kind}", scenario): (totals.best(scenario, "thresholded"), totals.best(scenario, trust))
        for kind, trust in zip(KINDS, TRUST, strict=True)
        for scenario in SCENARIOS
    }
    gains = {case: times_below(*pair) for case, pair in pairs.items()}
    cases = {case: below(*pair) for case, pair in pairs.items()}
    return LedgerRow(
        "gridworld/trust-region",
        "The thresholded update has less regret than the best-tuned trust region.",
        f"trust region over thresholded: {described(gains)}",
        verdict_of(cases),
        f"Scenarios in which the thresholded update is lower, by what the radius bounds: {tally(cases)}.",
        numbers(gains),
    )


def recorded(
    frame: polars.DataFrame, scenario: str, method: str, measure: str
) -> tuple[FloatArray, tuple[float | None, float | None]]:
    """[bins, seeds] of a measure at the recorded setting of least regret, and its threshold and penalty."""
    import polars as pl

    mine = frame.filter(
        pl.col("part") == "recorded", pl.col("scenario") == scenario, pl.col("method") == method
    )
    means = (
        mine.filter(pl.col("measure") == "regret")
        .group_by("threshold", "penalty")
        .agg(pl.col("value").mean())
        .sort("value", "threshold", "penalty")
    )
    threshold, penalty = means.row(0)[:2]
    chosen = mine.filter(
        pl.col("measure") == measure,
        pl.col("threshold").eq_missing(threshold),
        pl.col("penalty").eq_missing(penalty),
    ).sort("bin", "seed")
    n_seeds = chosen["seed"].n_unique()
    return chosen["value"].to_numpy().reshape(-1, n_seeds), (threshold, penalty)


def _wall_mass(frame: polars.DataFrame) -> LedgerRow:
    ours, plain, more = {}, {}, {}
    for measure, words in WALL_MEASURES.items():
        for scenario in SCENARIOS:
            with_threshold, _ = recorded(frame, scenario, "thresholded", measure)
            without, _ = recorded(frame, scenario, "mirror descent", measure)
            case = words, scenario
            ours[case], plain[case] = estimate(with_threshold.mean(axis=0)), estimate(without.mean(axis=0))
            more[case] = estimate((with_threshold - without).mean(axis=0))
    sharp = {case: gain.above(0.0) for case, gain in more.items() if case[1] in SHARP}
    primary = next(iter(WALL_MEASURES.values()))
    said = [f"{case[1]} {ours[case]} against {plain[case]}" for case in ours if case[0] == primary]
    return LedgerRow(
        "gridworld/wall-mass",
        "Where the optimum moves sharply the thresholded update holds more occupancy near the walls.",
        f"share of the steps on {primary}: {'; '.join(said)}",
        verdict_of(sharp),
        f"Against mirror descent at the same step size, where the optimum jumps ({', '.join(SHARP)}), "
        f"it holds more, by what counts as near: {tally(sharp)}.",
        numbers(more),
    )


def _causal_layers(frame: polars.DataFrame) -> LedgerRow:
    early, late, leans = {}, {}, {}
    for scenario in SCENARIOS:
        plain, _ = recorded(frame, scenario, "mirror descent", "regret by layers")
        ours, _ = recorded(frame, scenario, "thresholded", "regret by layers")
        third = max(len(plain) // 3, 1)
        first = np.stack([plain[:third].sum(axis=0), ours[:third].sum(axis=0)])
        last = np.stack([plain[-third:].sum(axis=0), ours[-third:].sum(axis=0)])
        case = "", scenario
        early[case], late[case] = jackknife(_ratio, first), jackknife(_ratio, last)
        leans[case] = jackknife(
            lambda four: _ratio(four[:2]) / _ratio(four[2:]), np.concatenate([first, last])
        )
    cases = {case: lean.above(1.0) for case, lean in leans.items()}
    return LedgerRow(
        "gridworld/causal-layers",
        "The gain comes from the causal factor H − h + 1, so that it is largest at early layers.",
        f"gain in the first third of the layers: {described(early)}; in the last: {described(late)}",
        verdict_of(cases),
        f"The first over the last is {described(leans)}: surely above 1 in {tally(cases)}.",
        numbers(leans),
    )


def _ratio(pair: FloatArray) -> float:
    above, under = pair.mean(axis=1)
    return float(above / under)


def _causal_drive(totals: RegretTotals) -> LedgerRow:
    gains, cases = {}, {}
    for scenario in SCENARIOS:
        runs = (totals.all(scenario, "mirror descent", variant) for variant in ("optimal values", OURS))
        optimal, played = (next(run for run in some if run.setting[0] == ETAS[-1]) for some in runs)
        gains["", scenario] = times_below(optimal, played)
        cases["", scenario] = below(optimal, played)
    return LedgerRow(
        "gridworld/causal-drive",
        "The played policy's gap is H − h + 1 times smaller than the optimal advantage, and that "
        "slows mirror descent.",
        f"regret of mirror descent (η = {ETAS[-1]:g}) driven by Q^π over that driven by A*: "
        f"{described(gains)}",
        verdict_of(cases),
        f"Driven by the optimal advantages it should be faster, and it is in {tally(cases)}.",
        numbers(gains),
    )
