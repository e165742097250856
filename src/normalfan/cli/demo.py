"""`normalfan demo`: a small built-in stream, priced on the screen."""

from __future__ import annotations

import numpy as np

from normalfan.cli.output import AsJson, print_json
from normalfan.environments.gridworld import goal_losses, gridworld
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.stream import price_stream
from normalfan.problem.losses import ArrayLosses

SIDE, HORIZON, START = 9, 12, (4, 4)

# What happens in each round: where the goal is, and what a unit of distance costs that day.
STORY = (
    ((8, 8), 1.0, "the goal is in the far corner"),
    ((8, 8), 3.0, "distance costs three times as much"),
    ((8, 8), 0.5, "distance costs a sixth of that"),
    ((8, 7), 0.5, "the goal moves by one cell"),
    ((8, 7), 2.0, "distance costs four times as much"),
    ((4, 8), 2.0, "the goal moves along the edge"),
    ((0, 0), 2.0, "the goal jumps to the opposite corner"),
    ((0, 0), 6.0, "distance costs three times as much"),
)


def demo(as_json: AsJson = False) -> None:
    """Price a small built-in stream: a walk on a grid whose goal and costs change.

    Example:  normalfan demo --json
    """
    motion = price_demo()
    if as_json:
        print_json({"rounds": motion.to_frame().to_dicts(), "total": motion.total})
    else:
        _print_story(motion)


def price_demo() -> PricedMotion:
    goals = np.array([goal for goal, _, _ in STORY])
    costs = np.array([cost for _, cost, _ in STORY])
    losses = goal_losses(SIDE, goals) * costs[:, None, None]
    mdp = gridworld(SIDE, HORIZON, START)
    return price_stream(mdp, ArrayLosses(losses, axes="TSA"), progress=True)


def _print_story(motion: PricedMotion) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"A walk on a {SIDE}×{SIDE} grid, {HORIZON} steps a day, {len(STORY)} days")
    for name in ("day", "what happened", "loss moved", "price", "best value"):
        table.add_column(name, justify="left" if name == "what happened" else "right")
    for t, (_, _, event) in enumerate(STORY):
        table.add_row(
            str(t),
            event,
            f"{motion.variation('l1')[t]:.1f}",
            f"{motion.prices[t]:.4f}" if motion.prices[t] else "free",
            f"{motion.values[t]:.3f}",
        )
    console = Console()
    console.print(table)
    moved = motion.variation("l1")
    free = motion.prices == 0
    console.print(
        f"Keeping yesterday's plan cost {motion.total:.4f} in all, on {np.count_nonzero(~free)} of "
        f"{len(free) - 1} days; {moved[free].sum() / moved.sum():.0%} of the loss variation was free."
    )
