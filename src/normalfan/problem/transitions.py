"""Transitions: two adjoint linear maps, in three representations that differ in these maps and nowhere else.

    expect : v   ↦  E[v(s') | s, a]                 backward, [S] → [S, A]
    push   : q_h ↦  Σ_{s,a} q_h(s,a) P_h(· | s,a)   forward,  [S, A] → [S]

They answer questions of support too: a sum of non-negative terms is positive exactly when one of them is.
What is not linear (compiled kernels, exact rationals) reads the common `csr` form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError, check_whole
from normalfan.problem import arrays
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, Shape, SparseMatrix

FULL_ENOUGH = 0.25  # from this share of non-zero probabilities on, a dense product is the better choice


class Transitions:
    """The dynamics of a finite-horizon problem. A stationary one has a single kernel."""

    n_kernels: int
    n_states: int
    n_actions: int

    def csr(self, step: int) -> Any:
        """The kernel as a `csr_array` [S·A, S], sorted, without explicit zeros."""
        raise NotImplementedError

    def rows(self, step: int) -> Any:
        """The kernel as a matrix [S·A, S] that multiplies fast; row s·A + a holds P(· | s, a)."""
        return self.csr(step)

    def expect(self, step: int, values: FloatArray) -> FloatArray:
        """The means E[values(s') | s, a] of values [S] or [S, n], as [S, A] or [S, A, n]."""
        expected: FloatArray = self.rows(step) @ values
        return expected.reshape(self.n_states, self.n_actions, *values.shape[1:])

    def push(self, step: int, mass: FloatArray) -> FloatArray:
        """Where mass [S, A] or [S, A, n] goes: Σ_{s,a} mass(s,a) P_h(· | s,a), [S] or [S, n]."""
        pushed: FloatArray = mass.reshape(-1, *mass.shape[2:]).T @ self.rows(step)
        return pushed.T

    def all_csr(self) -> list[Any]:
        """Every kernel once."""
        return [self.csr(k) for k in range(self.n_kernels)]


class Dense(Transitions):
    """Kernels as a float array [K, S, A, S], which it owns."""

    def __init__(self, kernels: FloatArray) -> None:
        self.kernels: FloatArray = arrays.read_only(arrays.on_cache_lines(kernels))
        self.n_kernels, self.n_states, self.n_actions = kernels.shape[:3]

    def rows(self, step: int) -> FloatArray:
        kernel: FloatArray = self.kernels[step % self.n_kernels]
        return kernel.reshape(-1, self.n_states)

    def csr(self, step: int) -> Any:
        return sparse.csr_array(self.rows(step))


class Sparse(Transitions):
    """Kernels as scipy `csr_array` [S·A, S]."""

    def __init__(self, kernels: Sequence[Any]) -> None:
        self.kernels = tuple(kernels)
        self.n_kernels, (n_rows, self.n_states) = len(self.kernels), self.kernels[0].shape
        self.n_actions = n_rows // self.n_states

    def csr(self, step: int) -> Any:
        return self.kernels[step % self.n_kernels]


class Deterministic(Transitions):
    """Kernels as an integer array of next states [K, S, A]."""

    def __init__(self, nexts: npt.NDArray[np.integer[Any]]) -> None:
        self.nexts: npt.NDArray[np.int32] = arrays.read_only(np.array(nexts, dtype=np.int32, order="C"))
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
    rows: IntArray,
    nexts: IntArray,
    weights: FloatArray,
    shape: Shape,
    stays: BoolArray | None = None,
) -> Any:
    """What `MDP` takes, in the form that prices fastest, of a list of moves, none of them there twice.

    Moves go from the rows (kernel · S + state) · A + action to next states, with probabilities as weights;
    `shape` is [K, S, A]; rows that are true in `stays` stay where they are. Kernels that are all the same
    become one. They are next states where every move is certain, sparse matrices where states have few
    successors, and dense ones otherwise.
    """
    n_kernels, n_states, n_actions = shape
    height = n_states * n_actions
    if stays is not None:
        staying = np.flatnonzero(stays)
        rows, nexts = np.append(rows, staying), np.append(nexts, staying // n_actions % n_states)
        weights = np.append(weights, np.ones(len(staying)))
    stacked = sparse.csr_array((weights, (rows, nexts)), shape=(n_kernels * height, n_states))
    stacked.sort_indices()
    kernels: Any = [stacked[k * height : (k + 1) * height] for k in range(n_kernels)]
    sizes: tuple[int, ...] = shape
    if not any((kernel != kernels[0]).nnz for kernel in kernels[1:]):
        stacked = kernels = kernels[0]  # they are all the same
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
    if isinstance(source, Transitions):
        transitions, stationary = source, source.n_kernels == 1
    elif sparse.issparse(source):
        transitions, stationary = _read_sparse([source]), True
    elif isinstance(source, list | tuple) and source and all(map(sparse.issparse, source)):
        transitions, stationary = _read_sparse(source), False
    else:
        array = arrays.read_numbers("transitions", source)
        are_nexts = array.dtype.kind in "iu" and array.ndim in (2, 3)
        stationary = array.ndim == (2 if are_nexts else 3)
        kernels: Any = _read_nexts(array, horizon) if are_nexts else _read_probabilities(array)
        kernels = kernels[None] if stationary else kernels
        transitions = Deterministic(kernels) if are_nexts else Dense(kernels)
    if not (transitions.n_states and transitions.n_actions):
        what = "action" if transitions.n_states else "state"
        raise InputError(
            f"transitions have no {what}, but every problem needs at least one state and every state "
            f"at least one action: check the shape of the array."
        )
    return transitions, _fit_horizon(transitions.n_kernels, horizon, stationary=stationary)


def _read_probabilities(array: npt.NDArray[Any]) -> FloatArray:
    if array.ndim not in (3, 4) or array.shape[-1] != array.shape[-3]:
        remedy, first = "reorder or reshape the axes", array.ndim - 3
        if array.ndim in (3, 4) and array.shape[-1] == array.shape[-2]:
            remedy = f"if they are [A, S, S], pass np.swapaxes(transitions, {first}, {first + 1})"
        raise InputError(
            f"transitions have shape {list(array.shape)}, but must be probabilities [H, S, A, S] or "
            f"[S, A, S], or integer next states [H, S, A] or [S, A]: {remedy}."
        )
    return arrays.read_distributions("transitions", array)


def _read_nexts(array: npt.NDArray[Any], horizon: int | None) -> npt.NDArray[Any]:
    n_states = array.shape[-2]
    # Integers [n, m, n] that are 0 and 1, with one 1 a row, may be meant as [S, A, S].
    is_cube = array.ndim == 3 and array.shape[0] == array.shape[2] and array.size > 0
    if horizon is not None and is_cube and np.isin(array, (0, 1)).all() and (array.sum(2) == 1).all():
        raise InputError(
            f"transitions are integers {list(array.shape)} with a single 1 in each row, but could be both "
            f"probabilities [S, A, S] and next states [H, S, A]: pass probabilities as floats, or next "
            f"states without horizon."
        )
    rule = f"a next state must be an index from 0 to {n_states - 1}: check the numbering of the states"
    arrays.check_entries("transitions", array, (array >= 0) & (array < n_states), rule)
    return array


def _read_sparse(matrices: Sequence[SparseMatrix]) -> Sparse:
    shape = matrices[0].shape
    if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
        raise InputError(
            f"transitions[0] has shape {list(shape)}, but a sparse kernel must be [S·A, S] with "
            f"at least one state and one action: stack the rows as s·A + a."
        )
    for step, matrix in enumerate(matrices):
        remedy = "make all kernels as large as the first"
        arrays.check_shape(f"transitions[{step}]", matrix.shape, shape, remedy)
    return Sparse([_read_kernel(step, matrix, shape[0] // shape[1]) for step, matrix in enumerate(matrices)])


def _read_kernel(step: int, matrix: SparseMatrix, n_actions: int) -> Any:
    check_sparse(f"transitions[{step}]", matrix)
    kernel = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    kernel.sum_duplicates()
    bad = ~np.isfinite(kernel.data) | (kernel.data < 0)
    if bad.any():
        entry = arrays.first_index(bad)[0]
        row = int(np.searchsorted(kernel.indptr, entry, side="right")) - 1
        raise InputError(
            f"transitions[{step}] at state {row // n_actions}, action {row % n_actions} holds "
            f"{kernel.data[entry]}, but probabilities must be finite and non-negative: "
            f"check how the rows were built."
        )

    def weights(place: tuple[int, ...]) -> FloatArray:
        start, stop = kernel.indptr[place[0] * n_actions + place[1] :][:2]
        return np.asarray(kernel.data[start:stop])

    arrays.divide_by_sums(f"transitions of step {step}", kernel.sum(axis=1).reshape(-1, n_actions), weights)
    kernel.eliminate_zeros()
    for own in (kernel.data, kernel.indices, kernel.indptr):
        arrays.read_only(own)
    return kernel


def check_sparse(name: str, matrix: SparseMatrix) -> None:
    """Refuse a damaged matrix before scipy's compiled code, which trusts the indices, reads out of bounds."""
    arrays.check_dtype(name, matrix.dtype)
    again = "build the matrix again"
    indices: dict[str, tuple[npt.NDArray[Any], int]] = {}  # with the number that is too large
    if matrix.format == "coo":
        axes = enumerate(zip(matrix.coords, matrix.shape, strict=True))
        indices = {f"{name}.coords[{axis}]": along for axis, along in axes}
    elif matrix.format in ("csr", "csc", "bsr"):
        for array in (matrix.indptr, matrix.indices):
            if array.dtype.kind not in "iu":
                raise InputError(f"{name} has indices of dtype {array.dtype}, but needs integers: {again}.")
        blocks = getattr(matrix, "blocksize", (1, 1))
        sizes = [size // block for size, block in zip(matrix.shape, blocks, strict=True)]
        major, minor = reversed(sizes) if matrix.format == "csc" else sizes
        starts = matrix.indptr.astype(np.int64)
        arrays.check_shape(f"{name}.indptr", starts.shape, (major + 1,), again)
        rises = np.diff(starts, prepend=0) >= 0
        rises[0] = starts[0] == 0
        arrays.check_entries(f"{name}.indptr", starts, rises, f"must begin with 0 and never fall: {again}")
        n_indices, n_numbers = len(matrix.indices), len(matrix.data)
        ends = np.arange(major + 1) < major
        ends[-1] = starts[-1] == n_indices == n_numbers
        rule = f"must be the number of entries ({n_indices} indices, {n_numbers} numbers): {again}"
        arrays.check_entries(f"{name}.indptr", starts, ends, rule)
        indices = {f"{name}.indices": (matrix.indices, minor)}
    for which, (places, size) in indices.items():
        rule = f"must be from 0 to {size - 1}: {again}"
        arrays.check_entries(which, places, (places >= 0) & (places < size), rule)


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
