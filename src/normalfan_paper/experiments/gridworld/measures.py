"""Numbers with their standard errors: the best setting of a method, and how two methods compare over seeds.

A method is reported at the setting of least mean regret, scenario by scenario. Methods meet the same seeds,
so they are compared seed by seed: a difference by its standard error, a ratio of means by the jackknife's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan_paper.experiment import Verdict
from normalfan_paper.experiments.gridworld.settings import ETAS, OURS
from normalfan_paper.judging import Estimate, estimate, verdict_over

if TYPE_CHECKING:
    import polars

MATTERS = 1.1  # a gain counts from this ratio on

Case = tuple[str, str]  # a design, a scenario

Anything = TypeVar("Anything")
Setting = tuple[float | None, float | None, float | None]  # step size, threshold, penalty


@dataclass(frozen=True, slots=True)
class Run:
    """A method with one setting in one scenario."""

    method: str
    setting: Setting
    regret: Mapping[int, float]  # by seed

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.regret.values())))


class RegretTotals:
    """The total regrets of a frame, by variant, scenario, method and setting."""

    def __init__(self, frame: polars.DataFrame) -> None:
        runs: dict[tuple[str, str, str], dict[Setting, dict[int, float]]] = defaultdict(dict)
        columns = ("variant", "scenario", "method", "eta", "threshold", "penalty", "seed", "value")
        totals = frame.filter(frame["measure"] == "total regret").select(columns)
        for variant, scenario, method, eta, threshold, penalty, seed, value in totals.iter_rows():
            runs[variant, scenario, method].setdefault((eta, threshold, penalty), {})[seed] = value
        self._runs = runs

    def best(self, scenario: str, method: str, variant: str = OURS, *, beyond: bool = False) -> Run:
        """The run of least mean regret, with step sizes of the paper's sweep or also beyond it."""
        return min(self.all(scenario, method, variant, beyond=beyond), key=lambda run: run.mean)

    def all(self, scenario: str, method: str, variant: str = OURS, *, beyond: bool = False) -> list[Run]:
        """All runs; the step sizes of the sweep bound those of a trust region, too."""
        return [
            Run(method, setting, regret)
            for setting, regret in self._runs[variant, scenario, method].items()
            if beyond or (setting[0] or 0.0) <= ETAS[-1]
        ]

    def at(self, scenario: str, method: str, eta: float | None, variant: str = OURS) -> Run:
        """The run of least mean regret with one step size, or without any."""
        runs = self.all(scenario, method, variant, beyond=True)
        return min((run for run in runs if run.setting[0] == eta), key=lambda run: run.mean)

    def seeds(self, variant: str = OURS) -> int:
        """How many seeds a variant had, over the methods that were run with the most."""
        return max(
            len(regret) for key, runs in self._runs.items() if key[0] == variant for regret in runs.values()
        )

    def alike(self, scenario: str, method: str, variant: str, *, beyond: bool = False) -> tuple[Run, Run]:
        """The best run as ours and under an alternative, over the settings and seeds that both have."""
        theirs = {run.setting: run for run in self.all(scenario, method, variant, beyond=beyond)}
        shared = [run for run in self.all(scenario, method, beyond=beyond) if run.setting in theirs]
        seeds = next(iter(theirs.values())).regret.keys()
        ours = [Run(run.method, run.setting, {seed: run.regret[seed] for seed in seeds}) for run in shared]
        return min(ours, key=lambda run: run.mean), min(theirs.values(), key=lambda run: run.mean)


def times_below(low: Run, high: Run) -> Estimate:
    """How many times the mean regret of `low` goes into that of `high`."""
    return jackknife(lambda pair: pair[1].mean() / pair[0].mean(), _paired(low, high))


def below(low: Run, high: Run) -> bool:
    """Whether `low` has surely less regret, seed by seed."""
    pair = _paired(low, high)
    return estimate(pair[1] - pair[0]).above(0.0)


def jackknife(statistic: Callable[[FloatArray], float], samples: FloatArray) -> Estimate:
    """A statistic of samples whose last axis are the seeds, and its jackknife standard error."""
    n = samples.shape[-1]
    value = float(statistic(samples))
    if n < 2:
        return Estimate(value, math.nan)
    without = np.array([statistic(np.delete(samples, i, axis=-1)) for i in range(n)])
    return Estimate(value, float(math.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))))


def verdict_of(cases: Mapping[Case, bool]) -> Verdict:
    """A claim is said of every scenario: a design reproduces it if it has it in all of them."""
    return verdict_over(all(scenarios.values()) for scenarios in _by_design(cases).values())


def tally(cases: Mapping[Case, bool]) -> str:
    """In which scenarios a claim holds, design by design, in words."""
    words = []
    for design, scenarios in _by_design(cases).items():
        held = [scenario for scenario, good in scenarios.items() if good]
        if len(held) == len(scenarios):
            said = f"all {len(held)}"
        else:
            said = f"only {', '.join(held)}" if held else f"none of {len(scenarios)}"
        words.append(f"{design}: {said}" if design else said)
    return "; ".join(words)


def described(estimates: Mapping[Case, Estimate]) -> str:
    """Numbers, design by design."""
    return "; ".join(
        (f"{design}: " if design else "")
        + ", ".join(f"{scenario} {number}" for scenario, number in some.items())
        for design, some in _by_design(estimates).items()
    )


def numbers(estimates: Mapping[Case, Estimate], suffix: str = "") -> dict[str, float]:
    """The values alone, by a name that says the case."""
    return {", ".join(filter(None, (*case, suffix))): number.mean for case, number in estimates.items()}


def _by_design(cases: Mapping[Case, Anything]) -> dict[str, dict[str, Anything]]:
    designs: dict[str, dict[str, Anything]] = {}
    for (design, scenario), said in cases.items():
        designs.setdefault(design, {})[scenario] = said
    return designs


def _paired(first: Run, second: Run) -> FloatArray:
    seeds = sorted(first.regret.keys() & second.regret.keys())
    return np.array([[run.regret[seed] for seed in seeds] for run in (first, second)])
