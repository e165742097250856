"""The figures of the gridworld: who pays what, how it goes over training, and what the outcome hangs on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan_paper.experiments.gridworld.check import STEPS, recorded, trust_cases, trust_regions
from normalfan_paper.experiments.gridworld.measures import RegretTotals, Run, below, times_below
from normalfan_paper.experiments.gridworld.sensitivity import pair_under
from normalfan_paper.experiments.gridworld.settings import (
    CAPS,
    DIRECTIONS,
    FREE_CAP,
    KINDS,
    OURS,
    POOL,
    SCENARIOS,
    SWEPT_CAP,
)
from normalfan_paper.figure_style import COLOURS, MARKERS, SMALL, paper_figure, save_figure
from normalfan_paper.judging import estimate

if TYPE_CHECKING:
    import polars

# Label, colour, hatch. What is hatched has a step size outside the paper's sweep, or none.
BARS = (
    ("thresholded", "green", ""),
    ("mirror descent", "grey", ""),
    ("optimistic", "sky", ""),
    ("trust region", "orange", ""),
    ("trust region, free step", "orange", "////"),
    ("mirror descent, any step", "grey", "////"),
    ("tracker", "blue", "////"),
    ("combined", "pink", "////"),
)

# Alternatives under which the gain is drawn, and whether step sizes beyond the sweep are allowed.
DESIGNS = (
    (OURS, False, "ours"),
    ("floor 0", False, "floor 0"),
    ("floor 0.01", False, "floor 0.01"),
    ("penalty inside", False, "penalty\ninside"),
    ("losses ×0.1", False, "losses\n×0.1"),
    (OURS, True, "any η"),
    ("noise 0.1", True, "any η,\nnoise 0.1"),
    ("noise 0.3", True, "any η,\nnoise 0.3"),
)


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    totals = RegretTotals(frame)
    return [
        *_bars(totals, folder),
        *_trust_map(totals, folder),
        *_training(frame, folder),
        *_sensitivity(totals, folder),
    ]


def bar_runs(totals: RegretTotals, scenario: str) -> list[Run]:
    """The runs of the bars, in their order; of the trust regions with one cap, the best."""
    trust = {
        cap: min(
            (totals.at(scenario, method, cap) for method, cap in trust_regions([cap]).values()),
            key=lambda run: run.mean,
        )
        for cap in CAPS
    }
    return [
        *(totals.best(scenario, method) for method in ("thresholded", "mirror descent", "optimistic")),
        trust[SWEPT_CAP],
        trust[FREE_CAP],
        totals.best(scenario, "mirror descent", beyond=True),
        totals.best(scenario, "tracker"),
        totals.at(scenario, f"combined, {POOL}", None, "no noise"),
    ]


def _bars(totals: RegretTotals, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=3.4)
    width = 0.84 / len(BARS)
    runs = [bar_runs(totals, scenario) for scenario in SCENARIOS]
    for i, (label, colour, hatch) in enumerate(BARS):
        means, errors = zip(*(_mean_and_error(some[i]) for some in runs), strict=True)
        axes.bar(
            np.arange(len(SCENARIOS)) + width * (i - (len(BARS) - 1) / 2), means, 0.92 * width, yerr=errors,
            label=label, color=COLOURS[colour], hatch=hatch, edgecolor="black", linewidth=0.3,
            error_kw={"elinewidth": 0.6, "capsize": 1},
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(np.arange(len(SCENARIOS)), [scenario.replace(" ", "\n") for scenario in SCENARIOS])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("cumulative regret (units of loss)")
    figure.legend(
        loc="outside upper center", ncols=2, title="at best settings; hatched: outside the paper's sweep",
        title_fontsize=7,
    )  # fmt: skip
    return save_figure(figure, folder, "gridworld-bars")


def _trust_map(totals: RegretTotals, folder: Path) -> list[Path]:
    """In how many scenarios the thresholded update has less regret: cap × kind × direction."""
    pairs = trust_cases(totals, CAPS)
    figure, panels = paper_figure(1, len(DIRECTIONS), height=1.9, sharey=True)
    for axes, direction, title in zip(panels, DIRECTIONS, ("KL(new ‖ old)", "KL(old ‖ new)"), strict=True):
        table = np.array(
            [
                [
                    sum(
                        below(*pairs[f"{STEPS[cap]}, {kind}, {direction}", scenario])
                        for scenario in SCENARIOS
                    )
                    for cap in CAPS
                ]
                for kind in KINDS
            ]
        )
        axes.pcolormesh(
            table, cmap="Greens", vmin=-0.5, vmax=len(SCENARIOS) + 1.5, edgecolors="white", linewidth=1
        )
        for (i, j), count in np.ndenumerate(table):
            axes.text(
                j + 0.5, i + 0.5, f"{count} of {len(SCENARIOS)}", ha="center", va="center", fontsize=SMALL
            )
        axes.set_xticks(np.arange(len(CAPS)) + 0.5, [f"{cap:g}" for cap in CAPS])
        axes.set_yticks(np.arange(len(KINDS)) + 0.5, KINDS)
        axes.grid(visible=False)
        axes.set(xlabel="largest step", title=title)
    figure.suptitle("Scenarios in which the thresholded update beats it", fontsize=7.5)
    return save_figure(figure, folder, "gridworld-trust-map")


def _training(frame: polars.DataFrame, folder: Path) -> list[Path]:
    from matplotlib.ticker import LogLocator, NullLocator

    figure, axes = paper_figure(len(SCENARIOS), 2, height=5.2, sharex=True)
    episodes = _episodes(frame)
    for row, scenario in enumerate(SCENARIOS):
        for column, measure in enumerate(("regret", "near walls")):
            panel = axes[row, column]
            for method, colour, style in (("mirror descent", "grey", "--"), ("thresholded", "green", "-")):
                series, _ = recorded(frame, scenario, method, measure)
                mean = series.mean(axis=1)
                error = (
                    series.std(axis=1, ddof=1) / np.sqrt(series.shape[1]) if series.shape[1] > 1 else 0 * mean
                )
                centres = (np.arange(len(mean)) + 0.5) * episodes / len(mean)
                panel.plot(centres, mean, style, color=COLOURS[colour], label=method, linewidth=0.9)
                panel.fill_between(
                    centres, mean - error, mean + error, color=COLOURS[colour], alpha=0.25, linewidth=0
                )
        axes[row, 0].set_yscale("log")
        axes[row, 0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes[row, 0].yaxis.set_major_formatter("{x:g}")
        axes[row, 0].yaxis.set_minor_locator(NullLocator())
        axes[row, 0].set_ylabel(scenario)
    axes[0, 0].set_title("regret per episode")
    axes[0, 1].set_title("share of steps at walls")
    figure.supxlabel("episode", fontsize=7)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2)
    return save_figure(figure, folder, "gridworld-training")


def _sensitivity(totals: RegretTotals, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=3.0)
    colours = ("black", "blue", "red", "green")
    for i, scenario in enumerate(SCENARIOS):
        gains = [
            times_below(*pair_under(totals, scenario, variant, beyond=beyond))
            for variant, beyond, _ in DESIGNS
        ]
        axes.errorbar(
            [gain.mean for gain in gains], np.arange(len(gains)) + 0.15 * (i - 1.5),
            xerr=[gain.error if np.isfinite(gain.error) else 0.0 for gain in gains],
            fmt=MARKERS[i], color=COLOURS[colours[i]], label=scenario, markersize=3, capsize=1.5,
            elinewidth=0.6,
        )  # fmt: skip
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_yticks(np.arange(len(DESIGNS)), [label.replace("\n", " ") for _, _, label in DESIGNS])
    axes.invert_yaxis()
    axes.set_xlabel("regret of mirror descent over thresholded")
    figure.legend(loc="outside upper center", ncols=2)
    return save_figure(figure, folder, "gridworld-sensitivity")


def _mean_and_error(run: Run) -> tuple[float, float]:
    regret = estimate(run.regret.values())
    return regret.mean, regret.error if np.isfinite(regret.error) else 0.0


def _episodes(frame: Any) -> int:
    """How many episodes a run had."""
    return int(frame["episodes"].max())
