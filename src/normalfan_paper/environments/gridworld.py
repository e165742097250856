"""A walk on a square grid: deterministic moves, five actions, a goal that may move.

States are numbered row by row; off the grid means staying put. The loss of a round is the Manhattan
distance to that round's goal, scaled to [0, 1].
"""

from __future__ import annotations

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.mdp import MDP

MOVES = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def gridworld(side: int, horizon: int, start: tuple[int, int] = (0, 0)) -> MDP:
    """The problem on a `side` × `side` grid, from the cell `start` = (row, column)."""
    cells = np.arange(side * side)
    nexts = np.stack(
        [
            np.clip(cells // side + down, 0, side - 1) * side + np.clip(cells % side + right, 0, side - 1)
            for down, right in MOVES.values()
        ],
        axis=1,
    )
    return MDP(nexts, initial=start[0] * side + start[1], horizon=horizon)


def goal_losses(side: int, goals: IntArray) -> FloatArray:
    """Losses [T, S, A] of goals [T, 2] given as (row, column): the same at every step."""
    cells = np.arange(side * side)
    rows, columns = goals[:, 0, None], goals[:, 1, None]
    distance = np.abs(cells // side - rows) + np.abs(cells % side - columns)
    return np.repeat(distance[:, :, None] / (2.0 * (side - 1)), len(MOVES), axis=2)
