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

from normalfan.paper.experiment import Row
from normalfan.paper.gridworld.measures import (
    Estimate,
    Totals,
    below,
    jackknife,
    mean_of,
    tally,
    times_below,
    verdict_of,
)
from normalfan.paper.gridworld.sensitivity import sensitivity_rows
from normalfan.paper.gridworld.settings import ETAS, KINDS, SCENARIOS, SHARP
from normalfan.problem.arrays import FloatArray

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


def check(frame: polars.DataFrame) -> Sequence[Row]:
    totals = Totals(frame)
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


def _wins(totals: Totals, scenario: str, rivals: Sequence[str]) -> dict[str, bool]:
    ours = totals.best(scenario, "thresholded")
    return {rival: below(ours, totals.best(scenario, rival)) for rival in rivals}


def _lowest(totals: Totals) -> Row:
    cases = {}
    for kind, trust in zip(KINDS, TRUST, strict=True):
        for scenario in SCENARIOS:
            cases[f"{scenario} with the radius {kind}"] = all(
                _wins(totals, scenario, (*MIRROR, trust)).values()
            )
    return Row(
        "gridworld/lowest",
        "The thresholded update has the lowest cumulative regret in every scenario, each method at its best setting.",
        f"lowest in {sum(cases.values())} of {len(cases)} pairs of a scenario and a kind of trust region",
        verdict_of(cases),
        f"The kind of trust region decides: {tally(cases, 'lowest', 'not lowest')}.",
        {case: float(held) for case, held in cases.items()},
    )


def _lowest_in(totals: Totals, scenario: str) -> Row:
    rivals = (*MIRROR, *TRUST)
    cases = _wins(totals, scenario, rivals)
    runs = [totals.best(scenario, method) for method in ("thresholded", *rivals)]
    means = {run.method: mean_of(np.array(list(run.regret.values()))) for run in runs}
    return Row(
        f"gridworld/lowest/{scenario.replace(' ', '-')}",
        f"The thresholded update has the lowest cumulative regret: {scenario}.",
        "; ".join(f"{method} {mean}" for method, mean in means.items()),
        verdict_of(cases),
        f"Regret at the best settings within the sweep, {tally(cases, 'below', 'not below')}.",
        {method: mean.value for method, mean in means.items()},
    )


def _factor(totals: Totals) -> Row:
    gains: dict[str, Estimate] = {}
    for scenario in SCENARIOS:
        ours = totals.best(scenario, "thresholded")
        for rival in MIRROR:
            gains[f"{scenario}, {rival}"] = times_below(ours, totals.best(scenario, rival))
    cases = {case: gain.within(*FACTOR) for case, gain in gains.items()}
    return Row(
        "gridworld/factor",
        "The thresholded update beats the mirror-descent baselines by factors of three to four.",
        "; ".join(f"{case} {gain}" for case, gain in gains.items()),
        verdict_of(cases),
        f"The factor is that of the losses and of the floor we chose: {tally(cases, 'within 3 to 4', 'outside')}.",
        {case: gain.value for case, gain in gains.items()},
    )


def _trust_region(totals: Totals) -> Row:
    gains = {
        f"{scenario}, {kind}": times_below(totals.best(scenario, "thresholded"), totals.best(scenario, trust))
        for kind, trust in zip(KINDS, TRUST, strict=True)
        for scenario in SCENARIOS
    }
    cases = {
        f"{scenario}, {kind}": below(totals.best(scenario, "thresholded"), totals.best(scenario, trust))
        for kind, trust in zip(KINDS, TRUST, strict=True)
        for scenario in SCENARIOS
    }
    return Row(
        "gridworld/trust-region",
        "The thresholded update has less regret than the best-tuned trust region.",
        "trust region over thresholded: " + "; ".join(f"{case} {gain}" for case, gain in gains.items()),
        verdict_of(cases),
        f"What the radius bounds decides: {tally(cases, 'thresholded lower', 'not lower')}.",
        {case: gain.value for case, gain in gains.items()},
    )


def recorded(
    frame: polars.DataFrame, scenario: str, method: str, measure: str
) -> tuple[FloatArray, tuple[float | None, float | None]]:
    """[bins, seeds] of a measure at the recorded setting of least regret, and its threshold and penalty."""
    import polars as pl

    mine = frame.filter(pl.col("part") == "recorded", pl.col("scenario") == scenario, pl.col("method") == method)
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


def _wall_mass(frame: polars.DataFrame) -> Row:
    shares: dict[str, tuple[Estimate, Estimate]] = {}
    cases: dict[str, bool] = {}
    for measure, words in WALL_MEASURES.items():
        for scenario in SCENARIOS:
            ours, _ = recorded(frame, scenario, "thresholded", measure)
            plain, _ = recorded(frame, scenario, "mirror descent", measure)
            name = f"{scenario}, {words}"
            shares[name] = mean_of(ours.mean(axis=0)), mean_of(plain.mean(axis=0))
            if scenario in SHARP:
                cases[name] = mean_of((ours - plain).mean(axis=0)).above(0.0)
    primary = next(iter(WALL_MEASURES.values()))
    said = [f"{name} {ours} against {plain}" for name, (ours, plain) in shares.items() if name.endswith(primary)]
    return Row(
        "gridworld/wall-mass",
        "Where the optimum moves sharply the thresholded update holds more occupancy near the walls.",
        "share of the steps: " + "; ".join(said),
        verdict_of(cases),
        f"Against mirror descent at the same step size: {tally(cases, 'more', 'not more')}.",
        {f"{name}, difference": ours.value - plain.value for name, (ours, plain) in shares.items()},
    )


def _causal_layers(frame: polars.DataFrame) -> Row:
    leans: dict[str, Estimate] = {}
    gains: dict[str, tuple[float, float]] = {}
    for scenario in SCENARIOS:
        plain, _ = recorded(frame, scenario, "mirror descent", "regret by layers")
        ours, _ = recorded(frame, scenario, "thresholded", "regret by layers")
        third = max(len(plain) // 3, 1)
        pairs = np.stack([rows.sum(axis=0) for rows in (plain[:third], ours[:third], plain[-third:], ours[-third:])])

        def early_over_late(four: FloatArray) -> float:
            first, first_ours, last, last_ours = four.mean(axis=1)
            return float((first / first_ours) / (last / last_ours))

        leans[scenario] = jackknife(early_over_late, pairs)
        first, first_ours, last, last_ours = pairs.mean(axis=1)
        gains[scenario] = first / first_ours, last / last_ours
    cases = {scenario: lean.above(1.0) for scenario, lean in leans.items()}
    return Row(
        "gridworld/causal-layers",
        "The gain comes from the causal factor H − h + 1, so that it is largest at early layers.",
        "gain in the first and the last third of the layers: "
        + "; ".join(f"{s} {early:.3g} and {late:.3g}" for s, (early, late) in gains.items()),
        verdict_of(cases),
        f"The ratio of the two gains, {'; '.join(f'{s} {lean}' for s, lean in leans.items())}: "
        f"{tally(cases, 'leans to early layers', 'does not')}.",
        {f"{scenario}, early over late": lean.value for scenario, lean in leans.items()},
    )


def _causal_drive(totals: Totals) -> Row:
    gains, cases = {}, {}
    for scenario in SCENARIOS:
        runs = (totals.all(scenario, "mirror descent", variant) for variant in ("optimal values", "ours"))
        optimal, played = (next(run for run in some if run.setting[0] == ETAS[-1]) for some in runs)
        gains[scenario] = times_below(optimal, played)
        cases[scenario] = below(optimal, played)
    return Row(
        "gridworld/causal-drive",
        "The played policy's gap is H − h + 1 times smaller than the optimal advantage, and that slows mirror descent.",
        f"Q^π over A* as what drives mirror descent at η = {ETAS[-1]:g}, regret: "
        + "; ".join(f"{scenario} {gain}" for scenario, gain in gains.items()),
        verdict_of(cases),
        f"Driven by the optimal advantages it should be faster: {tally(cases, 'it is', 'it is not')}.",
        {scenario: gain.value for scenario, gain in gains.items()},
    )
