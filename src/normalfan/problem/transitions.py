"""Transitions: two adjoint linear maps, in three representations that differ in these maps and nowhere else.

    expect : v   ↦  E[v(s') | s, a]                 backward, [S] → [S, A]
    push   : q_h ↦  Σ_{s,a} q_h(s,a) P_h(· | s,a)   forward,  [S, A] → [S]

They answer questions of support too: a sum of non-negative terms is positive exactly when one of them is.
What is not linear (compiled kernels, exact rationals) reads the common `csr` form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError, check_whole
from normalfan.problem.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    check_dtype,
    check_entries,
    check_shape,
    divide_by_sum,
    first_index,
    read_distributions,
    read_numbers,
    read_only,
    rows_to_divide,
)

FULL_ENOUGH = 0.25  # from this share of non-zero probabilities on, a dense product is the better choice


class Transitions(Protocol):
    """The dynamics of a finite-horizon problem. A stationary one has a single kernel."""

    n_kernels: int
    n_states: int
    n_actions: int

    def expect(self, step: int, values: FloatArray) -> FloatArray:
        """The means E[values(s') | s, a] of values [S] or [S, n], as [S, A] or [S, A, n]."""
        ...

    def push(self, step: int, mass: FloatArray) -> FloatArray:
        """Where mass [S, A] or [S, A, n] goes: Σ_{s,a} mass(s,a) P_h(· | s,a), [S] or [S, n]."""
        ...

    def csr(self, step: int) -> Any:
        """The kernel as a `csr_array` [S·A, S], sorted, without explicit zeros."""
        ...


class Dense:
    """Kernels as a float array [K, S, A, S], which it owns."""

    def __init__(self, kernels: FloatArray) -> None:
        self.kernels: FloatArray = read_only(kernels)
        self.n_kernels, self.n_states, self.n_actions = kernels.shape[:3]

    def expect(self, step: int, values: FloatArray) -> FloatArray:
        expected: FloatArray = self._rows(step) @ values
        return expected.reshape(self.n_states, self.n_actions, *values.shape[1:])

    def push(self, step: int, mass: FloatArray) -> FloatArray:
        pushed: FloatArray = mass.reshape(-1, *mass.shape[2:]).T @ self._rows(step)
        return pushed.T

    def csr(self, step: int) -> Any:
        return sparse.csr_array(self._rows(step))

    def _rows(self, step: int) -> FloatArray:
        kernel: FloatArray = self.kernels[step % self.n_kernels]
        return kernel.reshape(-1, self.n_states)


class Sparse:
    """Kernels as scipy `csr_array` [S·A, S]; row s·A + a holds P(· | s, a)."""

    def __init__(self, kernels: Sequence[Any]) -> None:
        self.kernels = tuple(kernels)
        self.n_kernels = len(self.kernels)
        self.n_states = int(self.kernels[0].shape[1])
        self.n_actions = int(self.kernels[0].shape[0]) // self.n_states

    def expect(self, step: int, values: FloatArray) -> FloatArray:
        expected: FloatArray = np.asarray(self.csr(step) @ values)
        return expected.reshape(self.n_states, self.n_actions, *values.shape[1:])

    def push(self, step: int, mass: FloatArray) -> FloatArray:
        pushed: FloatArray = self.csr(step).T @ mass.reshape(-1, *mass.shape[2:])
        return pushed

    def csr(self, step: int) -> Any:
        return self.kernels[step % self.n_kernels]


class Deterministic:
    """Kernels as an integer array of next states [K, S, A]."""

    def __init__(self, nexts: npt.NDArray[np.integer[Any]]) -> None:
        self.nexts: npt.NDArray[np.int32] = read_only(np.array(nexts, dtype=np.int32, order="C"))
        self.n_kernels, self.n_states, self.n_actions = nexts.shape

    def expect(self, step: int, values: FloatArray) -> FloatArray:
        expected: FloatArray = values[self.nexts[step % self.n_kernels]]
        return expected

    def push(self, step: int, mass: FloatArray) -> FloatArray:
        nexts, n = self.nexts[step % self.n_kernels].reshape(-1), math.prod(mass.shape[2:])
        places = nexts if n == 1 else np.add.outer(nexts.astype(np.int64) * n, np.arange(n)).reshape(-1)
        pushed = np.bincount(places, mass.reshape(-1), self.n_states * n)
        return np.asarray(pushed, dtype=np.float64).reshape(self.n_states, *mass.shape[2:])

    def csr(self, step: int) -> Any:
        n_rows = self.n_states * self.n_actions
        columns = self.nexts[step % self.n_kernels].reshape(-1)
        return sparse.csr_array(
            (np.ones(n_rows), columns, np.arange(n_rows + 1)), shape=(n_rows, self.n_states)
        )


def transitions_of_moves(
    rows: IntArray, nexts: IntArray, weights: FloatArray, shape: tuple[int, int, int]
) -> Any:
    """What `MDP` takes, in the form that prices fastest, of a list of moves, none of them there twice.

    Moves go from the rows (kernel · S + state) · A + action to next states, with probabilities as weights;
    `shape` is [K, S, A]. Kernels that are all the same become one. They are next states where every move is
    certain, sparse matrices where states have few successors, and dense ones otherwise.
    """
    n_kernels, n_states, n_actions = shape
    height = n_states * n_actions
    stacked = sparse.csr_array((weights, (rows, nexts)), shape=(n_kernels * height, n_states))
    stacked.sort_indices()
    kernels: Any = [stacked[k * height : (k + 1) * height] for k in range(n_kernels)]
    sizes: tuple[int, ...] = shape
    if not any((kernel != kernels[0]).nnz for kernel in kernels[1:]):
        stacked = kernels = kernels[0]
        sizes = shape[1:]
    moves = stacked.tocoo()
    possible = moves.data != 0
    one_each = np.array_equal(moves.row[possible], np.arange(stacked.shape[0]))
    if one_each and (moves.data[possible] == 1).all():
        return moves.col[possible].astype(np.int64).reshape(sizes)
    if stacked.nnz >= FULL_ENOUGH * stacked.shape[0] * n_states:
        return stacked.toarray().reshape(*sizes, n_states)
    return kernels


def read_transitions(source: Any, horizon: int | None) -> tuple[Transitions, int]:
    """Recognise and validate what a user may pass as transitions; the second result is H."""
    transitions: Transitions
    if isinstance(source, Dense | Sparse | Deterministic):
        transitions, stationary = source, source.n_kernels == 1
    elif sparse.issparse(source):
        transitions, stationary = _read_sparse([source]), True
    elif isinstance(source, list | tuple) and source and all(sparse.issparse(item) for item in source):
        transitions, stationary = _read_sparse(source), False
    else:
        array = read_numbers("transitions", source)
        are_nexts = array.dtype.kind in "iu" and array.ndim in (2, 3)
        stationary = array.ndim == (2 if are_nexts else 3)
        transitions = (
            _read_nexts(array, stationary, horizon) if are_nexts else _read_probabilities(array, stationary)
        )
    return transitions, _fit_horizon(transitions.n_kernels, horizon, stationary=stationary)


def _read_probabilities(array: npt.NDArray[Any], stationary: bool) -> Dense:
    if array.ndim not in (3, 4) or array.shape[-1] != array.shape[-3]:
        remedy = "reorder or reshape the axes"
        if array.ndim in (3, 4) and array.shape[-1] == array.shape[-2]:
            remedy = (
                f"if they are [A, S, S], pass np.swapaxes(transitions, {array.ndim - 3}, {array.ndim - 2})"
            )
        raise InputError(
            f"transitions have shape {list(array.shape)}, but must be probabilities [H, S, A, S] or "
            f"[S, A, S], or integer next states [H, S, A] or [S, A]: {remedy}."
        )
    _check_sizes(*array.shape[-3:-1])
    kernels = read_distributions("transitions", array)
    return Dense(kernels[None] if stationary else kernels)


def _read_nexts(array: npt.NDArray[Any], stationary: bool, horizon: int | None) -> Deterministic:
    if horizon is not None and _may_be_probabilities(array):
        raise InputError(
            f"transitions are integers {list(array.shape)} with a single 1 in each row, but could be both "
            f"probabilities [S, A, S] and next states [H, S, A]: pass probabilities as floats, or next "
            f"states without horizon."
        )
    n_states, n_actions = array.shape[-2:]
    _check_sizes(n_states, n_actions)
    rule = f"a next state must be an index from 0 to {n_states - 1}: check the numbering of the states"
    check_entries("transitions", array, (array >= 0) & (array < n_states), rule)
    return Deterministic(array[None] if stationary else array)


def _may_be_probabilities(array: npt.NDArray[Any]) -> bool:
    """Whether integers [n, m, n] are 0 and 1, with one 1 a row: then they may be meant as [S, A, S]."""
    fits = array.ndim == 3 and array.shape[0] == array.shape[2] and array.size > 0
    return fits and bool(((array == 0) | (array == 1)).all() and (array.sum(axis=2) == 1).all())


def _read_sparse(matrices: Sequence[SparseMatrix]) -> Sparse:
    shape = matrices[0].shape
    if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
        raise InputError(
            f"transitions[0] has shape {list(shape)}, but a sparse kernel must be [S·A, S] with "
            f"at least one state and one action: stack the rows as s·A + a."
        )
    kernels = []
    for step, matrix in enumerate(matrices):
        check_shape(f"transitions[{step}]", matrix.shape, shape, "make all kernels as large as the first")
        check_sparse(f"transitions[{step}]", matrix)
        kernel = sparse.csr_array(matrix, dtype=np.float64, copy=True)
        kernel.sum_duplicates()
        _normalise_sparse_rows(kernel, step, shape[0] // shape[1])
        kernel.eliminate_zeros()
        for own in (kernel.data, kernel.indices, kernel.indptr):
            read_only(own)
        kernels.append(kernel)
    return Sparse(kernels)


def _normalise_sparse_rows(kernel: Any, step: int, n_actions: int) -> None:
    bad = ~np.isfinite(kernel.data) | (kernel.data < 0)
    if bad.any():
        entry = first_index(bad)[0]
        row = int(np.searchsorted(kernel.indptr, entry, side="right")) - 1
        raise InputError(
            f"transitions[{step}] at state {row // n_actions}, action {row % n_actions} holds "
            f"{kernel.data[entry]}, but probabilities must be finite and non-negative: "
            f"check how the rows were built."
        )
    sums = np.asarray(kernel.sum(axis=1)).reshape(-1, n_actions)
    for s, a in rows_to_divide(f"transitions of step {step}", sums):
        start, stop = kernel.indptr[s * n_actions + a :][:2]
        divide_by_sum(kernel.data[start:stop])


def check_sparse(name: str, matrix: SparseMatrix) -> None:
    """Refuse a damaged matrix before scipy's compiled code, which trusts the indices, reads out of bounds."""
    check_dtype(name, matrix.dtype)
    if matrix.format == "coo":
        for axis, coordinates in enumerate(matrix.coords):
            _check_indices(f"{name}.coords[{axis}]", coordinates, matrix.shape[axis])
    elif matrix.format in ("csr", "csc", "bsr"):
        blocks = getattr(matrix, "blocksize", (1, 1))
        rows, columns = (size // block for size, block in zip(matrix.shape, blocks, strict=True))
        sizes = (columns, rows) if matrix.format == "csc" else (rows, columns)
        check_compressed(name, matrix.indptr, matrix.indices, len(matrix.data), sizes)


def check_compressed(
    name: str, indptr: npt.NDArray[Any], indices: npt.NDArray[Any], n_entries: int, sizes: tuple[int, int]
) -> None:
    """Refuse compressed rows whose pointers or indices lead outside; `sizes` are the numbers of both."""
    for array in (indptr, indices):
        if array.dtype.kind not in "iu":
            raise InputError(
                f"{name} has indices of dtype {array.dtype}, but needs integers: build the matrix again."
            )
    again, starts = "build the matrix again", indptr.astype(np.int64)
    check_shape(f"{name}.indptr", starts.shape, (sizes[0] + 1,), again)
    rises = np.diff(starts, prepend=0) >= 0
    rises[0] = starts[0] == 0
    check_entries(f"{name}.indptr", starts, rises, f"must begin with 0 and never fall: {again}")
    ends = np.arange(len(starts)) < sizes[0]
    ends[-1] = starts[-1] == len(indices) == n_entries
    counts = f"{len(indices)} indices, {n_entries} numbers"
    check_entries(f"{name}.indptr", starts, ends, f"must be the number of entries ({counts}): {again}")
    _check_indices(f"{name}.indices", indices, sizes[1])


def _check_indices(name: str, indices: npt.NDArray[Any], size: int) -> None:
    rule = f"must be from 0 to {size - 1}: build the matrix again"
    check_entries(name, indices, (indices >= 0) & (indices < size), rule)


def _fit_horizon(n_kernels: int, horizon: int | None, *, stationary: bool) -> int:
    if horizon is None:
        if stationary:
            raise InputError(
                "horizon is missing, but one kernel for all steps does not tell how many steps there "
                "are: pass horizon=H."
            )
        horizon = n_kernels
    check_whole("horizon", horizon, "pass horizon=H")
    if not stationary and horizon != n_kernels:
        raise InputError(
            f"horizon is {horizon}, but transitions hold kernels for {n_kernels} steps: "
            f"drop the argument or pass one kernel."
        )
    return int(horizon)


def _check_sizes(n_states: int, n_actions: int) -> None:
    if n_states == 0 or n_actions == 0:
        what = "state" if n_states == 0 else "action"
        raise InputError(
            f"transitions have no {what}, but every problem needs at least one state and every state "
            f"at least one action: check the shape of the array."
        )
