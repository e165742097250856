"""What goes in and out of a sweep, and the memory it works in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class States(NamedTuple):
    """The states some policy can reach, step by step, ascending; closed under successors."""

    ptr: np.ndarray  # int64 [H+1]
    idx: np.ndarray  # int32 [ptr[H]]


class Problem(NamedTuple):
    """A problem as sweeps read it; row (h, s, a) of its tables is ``h * per_step + s * A + a``."""

    shape: tuple[int, int, int]  # H, S, A
    per_step: int  # rows from one step to the next: S*A, or 0 if all steps share them
    ptr: np.ndarray  # of its `States`
    idx: np.ndarray
    initial: np.ndarray  # float64 [S]
    certain: bool  # nothing is left to chance, neither the start nor any move
    twins: np.ndarray  # int32 [rows] the first action of the state with the same successors
    rows: np.ndarray | None = None  # float64 [rows, S] if dense, otherwise
    indices: np.ndarray | None = None  # int32 the one successor of each row, or beside indptr all of them
    indptr: np.ndarray | None = None  # int64 [rows+1] offsets into indices and weights
    weights: np.ndarray | None = None  # float64, all positive


class Swept(NamedTuple):
    """What a sweep says of each of its N rounds; the last six are empty without detail."""

    values: np.ndarray  # float64 [N] optimal value
    prices: np.ndarray  # float64 [N] price against the round before
    crossed: np.ndarray  # bool [N] canonical face differs from the round before
    vertex: np.ndarray  # bool [N] face is a single vertex
    dimensions: np.ndarray  # int64 [N]
    near: np.ndarray  # bool [N] a tie may be read in two ways: these numbers are not to be used
    finite: np.ndarray  # bool [N] what was read is finite or inf in a loss, what was made of it finite
    closed: np.ndarray  # bool [N] at some state that was read no action is allowed
    sizes: np.ndarray  # float64 [N] sum over the steps of the largest |V|: the scale of rounding errors
    by_step: np.ndarray  # float64 [N,H] the price, by step at which it is paid
    cells: np.ndarray  # int64 [N,4] step, state, action where most is paid, and the best action; or -1
    cell_prices: np.ndarray  # float64 [N] the part of the price paid there
    margins: np.ndarray  # float64 [N] least cost of leaving the face; inf if nothing can
    margin_exact: np.ndarray  # bool [N] the margin is exact, not a lower bound
    advantage_gaps: np.ndarray  # float64 [N] least advantage left out at a reached state


class Walk(NamedTuple):
    """Work space of the walks: what the backward sweep leaves behind, and two frontiers."""

    pick: np.ndarray  # float64 [H*S*rounds of a block] action that attains W
    pay: np.ndarray  # the same: its advantage
    gap: np.ndarray  # the same: least advantage among the actions left out
    mass: np.ndarray  # float64 [2,S] weight of the states on the frontier
    front: np.ndarray  # int32 [2,S] the states on the frontier
    stamp: np.ndarray  # int64 [2,S] the visit at which a state joined the frontier


def frozen(array, dtype) -> np.ndarray:
    """A flat read-only view: numba compiles one kernel however the caller holds the array."""
    view = np.ascontiguousarray(array, dtype).reshape(-1).view()
    view.flags.writeable = False
    return view


def aligned_zeros(count: int) -> np.ndarray:
    """Zeros that start on a cache line."""
    room = np.zeros(count + 8)
    start = (-room.ctypes.data // 8) % 8
    return room[start : start + count]


def allocate(rounds: int, steps: int, states: int, block: int, detail: bool) -> tuple[Swept, Walk | None]:
    """What a sweep of blocks of ``block`` rounds fills; there are no walks without detail."""
    told = rounds if detail else 0
    out = Swept(
        values=np.zeros(rounds),
        prices=np.zeros(rounds),
        crossed=np.zeros(rounds, np.bool_),
        vertex=np.zeros(rounds, np.bool_),
        dimensions=np.zeros(rounds, np.int64),
        near=np.zeros(rounds, np.bool_),
        finite=np.zeros(rounds, np.bool_),
        closed=np.zeros(rounds, np.bool_),
        sizes=np.zeros(rounds),
        by_step=np.zeros((told, steps)),
        cells=np.full((told, 4), -1, np.int64),
        cell_prices=np.zeros(told),
        margins=np.zeros(told),
        margin_exact=np.zeros(told, np.bool_),
        advantage_gaps=np.zeros(told),
    )
    if not detail:
        return out, None
    left_behind = [aligned_zeros(steps * states * block) for _ in range(3)]
    frontiers = [np.zeros((2, states), kind) for kind in (np.float64, np.int32, np.int64)]
    return out, Walk(*left_behind, *frontiers)
