"""The advantage threshold at work: which actions lose their mass, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.learners.learner import Learner
from normalfan.learners.mirror import MirrorDescent, ThresholdedMirrorDescent
from normalfan.problem.arrays import FloatArray
from normalfan_paper.environments.constructions import one_state
from normalfan_paper.figure_style import COLOURS, paper_figure, save_figure

ADVANTAGES = np.linspace(0.0, 0.3, 13)
THRESHOLD, PENALTY, ETA, ROUNDS = 0.1, 0.35, 0.3, 20


def draw(folder: Path) -> Sequence[Path]:
    arms = one_state(1, len(ADVANTAGES))
    plain = mass_after(MirrorDescent(arms, ETA))
    gated = mass_after(ThresholdedMirrorDescent(arms, ETA, threshold=THRESHOLD, penalty=PENALTY))
    figure, axes = paper_figure(height=3.2)
    axes.axvspan(0.0, THRESHOLD, color=COLOURS["green"], alpha=0.12, linewidth=0)
    axes.semilogy(ADVANTAGES, plain, "s--", color=COLOURS["grey"], label="mirror descent")
    axes.semilogy(
        ADVANTAGES, gated, "o-", color=COLOURS["blue"], label=f"with the threshold, penalty {PENALTY:g}"
    )
    axes.axhline(1.0 / len(ADVANTAGES), color=COLOURS["black"], linestyle=":", linewidth=1)
    axes.annotate("at the start", (ADVANTAGES[-1], 1.0 / len(ADVANTAGES)), xytext=(0, 4),
                  textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
    axes.annotate("near: may be optimal next", (THRESHOLD / 2, axes.get_ylim()[0]), xytext=(0, 6),
                  textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
    axes.set(
        xlabel="advantage of the action",
        ylabel="probability of the action",
        title=f"After {ROUNDS} rounds of one loss, step size {ETA:g}: mass beyond the threshold goes",
    )
    axes.legend(loc="lower right", bbox_to_anchor=(0.98, 0.25))
    return save_figure(figure, folder, "advantage-gate")


def mass_after(learner: Learner) -> FloatArray:
    """The probabilities [A] after the rounds."""
    loss = ADVANTAGES.reshape(1, 1, -1)
    for t in range(ROUNDS):
        learner.observe(t, loss)
    final: FloatArray = learner.act(ROUNDS)[0, 0]
    return final
