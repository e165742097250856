"""What goes in and out of a sweep, and the memory it works in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

LANES = 8
ALL = (1 << LANES) - 1  # a bit for each
LINE = 64  # bytes of a cache line
ASKED_AHEAD = 20  # successors whose masses are asked for in advance: so many follow the last row


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
    lengths: np.ndarray  # int64 [A] of the actions' names, or [0]: then twins are not called by the shortest
    rows: np.ndarray | None = None  # float64 [rows, S] if dense, otherwise
    indices: np.ndarray | None = None  # int32 one successor a row; beside indptr all, and ASKED_AHEAD more
    indptr: np.ndarray | None = None  # int64 [rows+1] offsets into indices and weights
    weights: np.ndarray | None = None  # float64, all positive


class Swept(NamedTuple):
    """What a sweep says of each of its N rounds; the last seven are empty without detail."""

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
    variations: np.ndarray  # float64 [N,3] how far the loss moved: L1, the square of L2, L∞


class Walk(NamedTuple):
    """What the backward sweep leaves to the walks, and what they work in.

    Of a state (h, s) ``pay`` and ``gap`` hold the rounds of a block from h * stride + s * width. Whole lanes
    are stored there, in ascending order, though a short block keeps only its first ``width``.
    """

    width: int
    stride: int
    better: np.ndarray  # words [H*S*A], a bit a round of a block: the action attains W there so far
    pay: np.ndarray  # float64, the advantage of the action that attains W
    gap: np.ndarray  # float64, the least advantage among the actions left out
    carry: np.ndarray  # float64 [H*S] mass of the last round of the block before
    mass: np.ndarray  # float64 [2*S*LANES] of the states of this step and the next
    reach: np.ndarray  # uint16 [2*S] the rounds that reach them
    paid: np.ndarray  # float64 [2*LANES] on the way to ``Swept``


class Moves(NamedTuple):
    """What it takes to tell how far losses moved; see `moves`."""

    norms: np.ndarray  # float64 [3*LANES*LANES] of the moves so far
    are_added: bool  # while states are priced, where a policy comes
    near: int  # rounds, all or none, whose losses are read just before they are priced


def frozen(array, dtype) -> np.ndarray:
    """A flat read-only view: numba compiles one kernel however the caller holds the array."""
    view = np.ascontiguousarray(array, dtype).reshape(-1).view()
    view.flags.writeable = False
    return view


def in_one_piece(
    kinds: Mapping[str, tuple[tuple[int, ...], Any]], *, zeros: bool = True
) -> dict[str, np.ndarray]:
    """Arrays of several shapes and types, by name, in one piece of memory, each from a cache line on.

    What is given back to the system piece by piece is asked for again with the next block, and for small
    rounds new pages cost as much as pricing. One piece is kept, or comes in large pages.
    """
    places, size = [], 0
    for shape, kind in kinds.values():
        places.append(size)
        size += -(-math.prod(shape) * np.dtype(kind).itemsize // LINE) * LINE
    room = (np.zeros if zeros else np.empty)(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return {
        name: np.ndarray(shape, kind, room, start + place)
        for (name, (shape, kind)), place in zip(kinds.items(), places, strict=True)
    }


def aligned_zeros(count: int) -> np.ndarray:
    """Zeros that start on a cache line."""
    return in_one_piece({"zeros": ((count,), np.float64)})["zeros"]


def room_to_walk(rounds: int, shape: tuple[int, int, int], block: int, word: type) -> Walk:
    """What a walk through blocks of ``block`` rounds works in."""
    steps, states, actions = shape
    width = min(block, rounds)
    stride = states * width + block
    number = np.float64
    room: dict[str, tuple[tuple[int, ...], Any]] = {
        "better": ((steps * states * actions,), word),
        # Scattered over, so not at the end, which may lie in small pages.
        "mass": ((2 * states * LANES,), number),
        "reach": ((2 * states,), np.uint16),
        "carry": ((steps * states,), number),
        "paid": ((2 * LANES,), number),
        "pay": ((steps * stride,), number),
        "gap": ((steps * stride,), number),
    }
    return Walk(width, stride, **in_one_piece(room))


def room_to_move(*, are_added: bool = False, near: int = 0) -> Moves:
    """What adding up moves works in."""
    return Moves(aligned_zeros(3 * LANES * LANES), are_added, near)


def nothing_told(rounds: int, steps: int, *, detail: bool, zeros: bool = True) -> Swept:
    """What a sweep fills: zeros, and no cell, unless it fills all."""
    told = rounds if detail else 0
    one, number, truth = (rounds,), np.float64, np.bool_
    columns: dict[str, tuple[tuple[int, ...], Any]] = {
        "values": (one, number),
        "prices": (one, number),
        "crossed": (one, truth),
        "vertex": (one, truth),
        "dimensions": (one, np.int64),
        "near": (one, truth),
        "finite": (one, truth),
        "closed": (one, truth),
        "sizes": (one, number),
        "by_step": ((told, steps), number),
        "cells": ((told, 4), np.int64),
        "cell_prices": ((told,), number),
        "margins": ((told,), number),
        "margin_exact": ((told,), truth),
        "advantage_gaps": ((told,), number),
        "variations": ((told, 3), number),
    }
    swept = Swept(**in_one_piece(columns, zeros=zeros))
    if zeros:
        swept.cells[:] = -1
    return swept
