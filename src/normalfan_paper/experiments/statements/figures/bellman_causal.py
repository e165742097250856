"""Where a price is paid, and how it grows with the layers that a crossing redirects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.geometry.face import optimal_face
from normalfan.pricing.crossing import Crossing, price
from normalfan_paper.environments.constructions import layered_tree
from normalfan_paper.environments.gridworlds import goal_losses, gridworld
from normalfan_paper.experiments.statements.counterexamples import GAMMA, separable_flip
from normalfan_paper.figure_style import COLOURS, SMALL, paper_figure, save_figure

HORIZON = 8
SIDE, STEPS, START, GOALS = 9, 12, (4, 4), ((8, 8), (0, 8))


def draw(folder: Path) -> Sequence[Path]:
    crossing = goal_jump()
    figure, (left, right) = paper_figure(2, 1, height=3.6)
    steps = np.arange(1, STEPS + 1)
    left.bar(steps, crossing.by_step, color=COLOURS["blue"])
    left.step(steps, np.cumsum(crossing.by_step), where="mid", color=COLOURS["red"], label="sum so far")
    left.axhline(crossing.price, color=COLOURS["black"], linestyle=":", linewidth=1)
    left.annotate(
        f"price {crossing.price:.3g}",
        (1, crossing.price),
        xytext=(0, -8),
        textcoords="offset points",
        fontsize=SMALL,
    )
    left.set(
        xlabel="step h",
        ylabel="advantage paid",
        title="A goal jumps: where it is paid",
    )
    left.legend(loc="center right")

    layers = np.arange(1, HORIZON + 1)
    right.plot(layers, tree_prices(), "o-", color=COLOURS["blue"], label="tree: errs on all later layers")
    chain = [separable_flip(HORIZON, int(layer))["price_over_margin"] for layer in layers]
    right.plot(layers, chain, "s--", color=COLOURS["orange"], label="separable chain: errs once")
    right.set(xlabel="layer h of the crossing", ylabel="price Γ / γ", title=f"Layers matter (H = {HORIZON})")
    right.set_ylim(0, HORIZON + 2)
    right.legend(loc="upper right")
    return save_figure(figure, folder, "bellman-causal")


def goal_jump() -> Crossing:
    """What yesterday's best walk costs after the goal has jumped to another corner of the grid."""
    mdp = gridworld(SIDE, STEPS, START)
    before, after = (np.broadcast_to(loss, mdp.shape) for loss in goal_losses(SIDE, np.array(GOALS)))
    return price(optimal_face(mdp, before), after)


def tree_prices() -> list[float]:
    """Γ/γ of a crossing at each layer of the tree."""
    old = np.zeros(HORIZON, dtype=np.int64)
    found = []
    for layer in range(HORIZON):
        new = np.where(np.arange(HORIZON) == layer, 1, old)
        tree, (before, after) = layered_tree(HORIZON, GAMMA, np.stack([old, new]))
        found.append(price(optimal_face(tree, before), after).price / GAMMA)
    return found
