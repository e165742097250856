"""What goes in and out of a sweep, and the memory it works in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.forward import Detail, Walk


class States(NamedTuple):
    """The states some policy can reach, step by step, ascending; closed under successors."""

    ptr: np.ndarray  # int64 [H+1]
    idx: np.ndarray  # int32 [ptr[H]]


class Swept(NamedTuple):
    """What a sweep says of each of its N rounds; the last four are empty without detail."""

    values: np.ndarray  # float64 [N] optimal value
    prices: np.ndarray  # float64 [N] price against the round before
    crossed: np.ndarray  # bool [N] canonical face differs from the round before
    vertex: np.ndarray  # bool [N] face is a single vertex
    dimensions: np.ndarray  # int64 [N]
    near: np.ndarray  # bool [N] a tie may be read in two ways: these numbers are not to be used
    finite: np.ndarray  # bool [N] every loss that was read is finite, and so is what was made of it
    sizes: np.ndarray  # float64 [N] sum over the steps of the largest |V|: the scale of rounding errors
    by_step: np.ndarray  # float64 [N,H] the price, by step at which it is paid
    margins: np.ndarray  # float64 [N] least cost of leaving the face; inf if nothing can
    margin_exact: np.ndarray  # bool [N] the margin is exact, not a lower bound
    advantage_gaps: np.ndarray  # float64 [N] least advantage left out at a reached state


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


def allocate(rounds: int, steps: int, states: int, lanes: int, detail: bool):
    """The columns that every sweep fills, and with detail the walks' work space and columns."""
    columns = (
        np.empty(rounds), np.empty(rounds), np.empty(rounds, np.bool_), np.empty(rounds, np.bool_),
        np.empty(rounds, np.int64), np.empty(rounds, np.bool_), np.empty(rounds, np.bool_),
        np.zeros(rounds),
    )  # fmt: skip
    if not detail:
        return columns, None, None
    size = steps * states * lanes
    walk = Walk(
        aligned_zeros(size), aligned_zeros(size), aligned_zeros(size), np.zeros((2, states)),
        np.zeros((2, states), np.int32), np.zeros((2, states), np.int64),
    )  # fmt: skip
    return columns, walk, _detail_columns(rounds, steps)


def swept(columns, more: Detail | None) -> Swept:
    """The filled columns by name."""
    return Swept(*columns, *(_detail_columns(0, 0) if more is None else more))


def _detail_columns(rounds: int, steps: int) -> Detail:
    return Detail(np.empty((rounds, steps)), np.empty(rounds), np.empty(rounds, np.bool_), np.empty(rounds))
