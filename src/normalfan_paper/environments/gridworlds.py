"""A walk on a square grid whose losses move: the problem, and four ways in which its losses may move.

Five actions, deterministic moves, states numbered row by row; off the grid means staying put. A scenario is a
function of the side of the grid and the number of rounds that returns losses [T, S, A] in [0, 1], the same at
every step: pass `ArrayLosses(losses, axes="TSA")` with the problem of `gridworld`. d₁ is the Manhattan
distance over its largest value, 2(side − 1).

    moving_goal           d₁(s, g_t)                            g_t walks on a circle round the centre
    rotating_field        ½ (1 − ⟨u_a, w_t⟩)                    u_a the move, w_t a unit vector that turns
    changing_obstacles    ½ d₁(s, g) + ½ 1{s ∈ O_t}             the obstacles O_t are redrawn at times: jumps
    boundary_crossing     (1 − c_t) d₁(s, g) + c_t d₁(s, g′)    c_t swings, at ½ the best end changes: jumps

`rng` draws where a motion begins, which way it goes, where goals lie, and varies periods by up to `jitter` of
themselves, so that runs with different seeds are different problems and not copies of one.

    >>> losses = moving_goal(5, 40, period=20, rng=np.random.default_rng(0))
    >>> losses.shape, float(losses.min()), float(losses.max())
    ((40, 25, 5), 0.0, 0.875)
"""

from __future__ import annotations

import math

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.mdp import MDP

MOVES = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
JITTER = 1 / 3


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


def moving_goal(
    side: int, rounds: int, *, period: float = 600.0, jitter: float = JITTER, rng: np.random.Generator
) -> FloatArray:
    """A goal that walks round the centre once a period, from cell to cell."""
    angles = _turning(side, rounds, period, jitter, rng)
    centre = (side - 1) / 2
    goals = centre + centre * np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return goal_losses(side, np.rint(goals).astype(np.int64))


def rotating_field(
    side: int, rounds: int, *, period: float = 600.0, jitter: float = JITTER, rng: np.random.Generator
) -> FloatArray:
    """A wind: moving with it is free, against it costs 1, staying ½, wherever one is."""
    angles = _turning(side, rounds, period, jitter, rng)
    wind = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    losses = 0.5 * (1.0 - wind @ np.array(list(MOVES.values()), dtype=np.float64).T)
    return np.repeat(losses[:, None, :], side * side, axis=1)


def changing_obstacles(
    side: int,
    rounds: int,
    *,
    period: float = 100.0,
    density: float = 0.2,
    jitter: float = JITTER,
    rng: np.random.Generator,
) -> FloatArray:
    """A fixed goal; a share `density` of the other cells is costly, and which ones changes once a period."""
    if not 0 <= density <= 1:
        raise InputError(f"density is {density}, but must lie between 0 and 1: it is a share of the cells.")
    goal = rng.integers(0, side, size=(1, 2))
    epochs = _epochs(side, rounds, period, jitter, rng)
    cells = np.delete(np.arange(side * side), goal[0, 0] * side + goal[0, 1])
    obstacles = np.zeros((int(epochs[-1]) + 1, side * side), dtype=bool)
    for layout in obstacles:
        layout[rng.choice(cells, size=round(density * len(cells)), replace=False)] = True
    return 0.5 * goal_losses(side, goal) + 0.5 * _by_action(obstacles[epochs])


def boundary_crossing(
    side: int, rounds: int, *, period: float = 300.0, jitter: float = JITTER, rng: np.random.Generator
) -> FloatArray:
    """Two goals at opposite ends of the grid; the weight of one against the other swings like a sine."""
    ends = np.array([(0, 0), (0, side // 2), (0, side - 1), (side // 2, 0)])
    goal = ends[rng.integers(len(ends))]
    swing = 0.5 + 0.5 * np.sin(_turning(side, rounds, period, jitter, rng))[:, None, None]
    here, there = goal_losses(side, np.stack([goal, side - 1 - goal]))
    return np.asarray((1 - swing) * here + swing * there)


def _turning(side: int, rounds: int, period: float, jitter: float, rng: np.random.Generator) -> FloatArray:
    """Angles [T] of a steady turn that begins anywhere, either way round."""
    begin, way = rng.uniform(0, 2 * math.pi), float(rng.choice([-1.0, 1.0]))
    turn = 2 * math.pi / _varied(side, rounds, period, jitter, rng)
    return begin + way * turn * np.arange(rounds, dtype=np.float64)


def _epochs(side: int, rounds: int, period: float, jitter: float, rng: np.random.Generator) -> IntArray:
    """The number of the epoch [T] that each round lies in; the first may have begun before."""
    begin, length = rng.random(), _varied(side, rounds, period, jitter, rng)
    return np.floor(begin + np.arange(rounds) / length).astype(np.int64)


def _varied(side: int, rounds: int, period: float, jitter: float, rng: np.random.Generator) -> float:
    for name, number in (("side", side), ("rounds", rounds)):
        least = 2 if name == "side" else 1
        if number < least:
            raise InputError(
                f"{name} is {number}, but must be at least {least}: a scenario needs room to move."
            )
    if not (period > 0 and math.isfinite(period)):
        raise InputError(f"period is {period}, but must be positive and finite: it counts rounds.")
    if not 0 <= jitter < 1:
        raise InputError(
            f"jitter is {jitter}, but must be at least 0 and below 1: it is a share of the period."
        )
    return float(period * rng.uniform(1 - jitter, 1 + jitter))


def _by_action(cells: BoolArray) -> FloatArray:
    """[T, S] as losses [T, S, A] of the cell one is in."""
    return np.repeat(cells[:, :, None].astype(np.float64), len(MOVES), axis=2)
