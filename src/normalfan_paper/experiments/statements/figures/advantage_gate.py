"""The advantage threshold at work: actions whose confidence band crosses zero keep their mass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.learners.learner import Learner
from normalfan.learners.mirror import MirrorDescent, ThresholdedMirrorDescent
from normalfan.problem.arrays import FloatArray
from normalfan_paper.environments.constructions import one_state
from normalfan_paper.figure_style import COLOURS, SMALL, paper_figure, save_figure

ADVANTAGES = np.linspace(0.0, 0.3, 13)
BANDS = np.where(np.arange(13) % 3 == 1, 0.16, 0.08)  # cβ of each action: some are less certain than others
PENALTY, ETA, ROUNDS = 0.35, 0.3, 20


def draw(folder: Path) -> Sequence[Path]:
    arms = one_state(1, len(ADVANTAGES))
    plain = mass_after(MirrorDescent(arms, ETA))
    gate = ThresholdedMirrorDescent(arms, ETA, threshold=BANDS.reshape(arms.shape), penalty=PENALTY)
    gated = mass_after(gate)
    near = ADVANTAGES <= BANDS
    figure, (top, bottom) = paper_figure(2, 1, height=3.3, sharex=True)
    places = np.arange(len(ADVANTAGES))
    for chosen, colour, marker, label in (
        (near, "green", "o", "band reaches zero: near"),
        (~near, "red", "s", "band above zero: charged"),
    ):
        top.errorbar(
            places[chosen], ADVANTAGES[chosen], yerr=BANDS[chosen], fmt=marker, color=COLOURS[colour],
            markersize=3, elinewidth=1, capsize=2, label=label,
        )  # fmt: skip
    top.axhline(0.0, color=COLOURS["black"], linewidth=0.8)
    top.set(ylabel="advantage Â ± cβ", ylim=(-0.2, 0.6))  # room for the legend
    top.set_title("Confidence bands of 13 actions")
    top.legend(loc="upper left")
    bottom.semilogy(places, plain, "x--", color=COLOURS["grey"], label="mirror descent")
    bottom.semilogy(
        places, gated, "-", color=COLOURS["blue"], linewidth=0.8, label=f"with the gate, λ = {PENALTY:g}"
    )
    for chosen, colour, marker in ((near, "green", "o"), (~near, "red", "s")):
        bottom.semilogy(places[chosen], gated[chosen], marker, color=COLOURS[colour], markersize=3)
    bottom.axhline(1.0 / len(ADVANTAGES), color=COLOURS["black"], linestyle=":", linewidth=0.8)
    bottom.annotate("at the start", (places[-1], 1.0 / len(ADVANTAGES)), xytext=(0, 3),
                    textcoords="offset points", ha="right", fontsize=SMALL)  # fmt: skip
    bottom.set(xlabel="action, by its advantage", ylabel="probability")
    bottom.set_title(f"After {ROUNDS} rounds of one loss, η = {ETA:g}")
    bottom.legend(loc="center right")
    return save_figure(figure, folder, "advantage-gate")


def mass_after(learner: Learner) -> FloatArray:
    """The probabilities [A] after the rounds."""
    loss = ADVANTAGES.reshape(1, 1, -1)
    for t in range(ROUNDS):
        learner.observe(t, loss)
    final: FloatArray = learner.act(ROUNDS)[0, 0]
    return final
