"""The figures of the gridworld: who pays what, how it goes over training, and what the gain hangs on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan_paper.experiments.gridworld.check import recorded
from normalfan_paper.experiments.gridworld.measures import RegretTotals, Run, times_below
from normalfan_paper.experiments.gridworld.sensitivity import pair_under
from normalfan_paper.experiments.gridworld.settings import OURS, SCENARIOS
from normalfan_paper.figure_style import COLOURS, MARKERS, paper_figure, save_figure
from normalfan_paper.judging import estimate

if TYPE_CHECKING:
    import polars

# Method, whether step sizes beyond the sweep are allowed, label, colour, hatch. The last two are set apart.
BARS = (
    ("thresholded", False, "thresholded", "green", ""),
    ("mirror descent", False, "mirror descent", "grey", ""),
    ("optimistic", False, "optimistic", "sky", ""),
    ("trust region, per state", False, "trust region, per state", "orange", ""),
    ("trust region, average", False, "trust region, average", "yellow", ""),
    ("trust region, trajectory", False, "trust region, trajectory", "red", ""),
    ("mirror descent", True, "mirror descent, any step size", "grey", "////"),
    ("tracker", True, "previous-face tracker", "blue", "////"),
)
APART = 6  # the first of the bars that are outside the paper's comparison

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
    return [*_bars(totals, folder), *_training(frame, folder), *_sensitivity(totals, folder)]


def _bars(totals: RegretTotals, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=3.6)
    offsets = np.arange(len(BARS)) + 0.5 * (np.arange(len(BARS)) >= APART)
    width = 0.8 / (offsets[-1] + 1)
    offsets = width * (offsets - offsets.mean())
    for i, (method, beyond, label, colour, hatch) in enumerate(BARS):
        best = [totals.best(scenario, method, beyond=beyond) for scenario in SCENARIOS]
        means, errors = zip(*(_mean_and_error(run) for run in best), strict=True)
        axes.bar(
            np.arange(len(SCENARIOS)) + offsets[i], means, width, yerr=errors, label=label,
            color=COLOURS[colour], hatch=hatch,
            edgecolor="white" if hatch else "black", linewidth=0.0 if hatch else 0.4,
            error_kw={"elinewidth": 0.8, "capsize": 1.5},
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(np.arange(len(SCENARIOS)), SCENARIOS)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("cumulative regret (units of loss)")
    figure.legend(
        loc="outside upper center", ncols=3, title="best settings; hatched: outside the paper's sweep"
    )
    return save_figure(figure, folder, "gridworld-bars")


def _training(frame: polars.DataFrame, folder: Path) -> list[Path]:
    figure, axes = paper_figure(2, len(SCENARIOS), height=3.8, sharex=True, sharey="row")
    episodes = _episodes(frame)
    for column, scenario in enumerate(SCENARIOS):
        for row, measure in enumerate(("regret", "near walls")):
            for method, colour, style in (("mirror descent", "grey", "--"), ("thresholded", "green", "-")):
                series, _ = recorded(frame, scenario, method, measure)
                mean = series.mean(axis=1)
                error = (
                    series.std(axis=1, ddof=1) / np.sqrt(series.shape[1]) if series.shape[1] > 1 else 0 * mean
                )
                centres = (np.arange(len(mean)) + 0.5) * episodes / len(mean)
                axes[row, column].plot(
                    centres, mean, style, color=COLOURS[colour], label=method, linewidth=1.2
                )
                axes[row, column].fill_between(
                    centres, mean - error, mean + error, color=COLOURS[colour], alpha=0.25, linewidth=0
                )
        axes[0, column].set_title(scenario)
        axes[0, column].set_yscale("log")
    axes[0, 0].set_ylabel("regret per episode\n(units of loss)")
    axes[1, 0].set_ylabel("share of steps\nnear the walls")
    figure.supxlabel("episode", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2)
    return save_figure(figure, folder, "gridworld-training")


def _sensitivity(totals: RegretTotals, folder: Path) -> list[Path]:
    figure, axes = paper_figure(height=3.2)
    colours = ("black", "blue", "red", "green")
    for i, scenario in enumerate(SCENARIOS):
        gains = [
            times_below(*pair_under(totals, scenario, variant, beyond=beyond))
            for variant, beyond, _ in DESIGNS
        ]
        axes.errorbar(
            np.arange(len(gains)) + 0.12 * (i - 1.5), [gain.mean for gain in gains],
            yerr=[gain.error if np.isfinite(gain.error) else 0.0 for gain in gains],
            fmt=MARKERS[i], color=COLOURS[colours[i]], label=scenario, markersize=5, capsize=2,
            elinewidth=0.8,
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xticks(np.arange(len(DESIGNS)), [label for _, _, label in DESIGNS])
    axes.set_ylabel("regret of mirror descent\nover thresholded (ratio)")
    figure.legend(loc="outside upper center", ncols=4)
    return save_figure(figure, folder, "gridworld-sensitivity")


def _mean_and_error(run: Run) -> tuple[float, float]:
    regret = estimate(run.regret.values())
    return regret.mean, regret.error if np.isfinite(regret.error) else 0.0


def _episodes(frame: Any) -> int:
    """How many episodes a run had."""
    return int(frame["episodes"].max())
