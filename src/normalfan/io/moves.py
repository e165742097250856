"""Transitions as lists of moves, put into the form that prices fastest.

A move is (kernel, state, action, next state, probability). Transitions become next states where every move is
certain, sparse matrices where states have few successors, and dense ones otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray

FULL_ENOUGH = 0.25  # from this share of non-zero probabilities on, a dense product is the better choice


@dataclass(frozen=True, slots=True)
class Moves:
    """What can happen: n moves, no (kernel, state, action, next state) twice."""

    rows: IntArray  # [n]  (kernel · S + state) · A + action
    nexts: IntArray  # [n]
    weights: FloatArray  # [n]
    shape: tuple[int, int, int]  # K, S, A

    def counts(self) -> IntArray:
        """[K, S, A]: how many moves each state and action has."""
        return np.bincount(self.rows, minlength=int(np.prod(self.shape))).reshape(self.shape)

    def sums(self) -> FloatArray:
        """[K, S, A]: the total probability of each state and action; 0 where there is no move."""
        totals = np.bincount(self.rows, self.weights, minlength=int(np.prod(self.shape)))
        return np.asarray(totals, dtype=np.float64).reshape(self.shape)

    def transitions(self) -> Any:
        """What `MDP` takes: one kernel if all are the same, otherwise one for each step."""
        from scipy import sparse

        n_kernels, n_states, n_actions = self.shape
        n_rows = n_states * n_actions
        shape = (n_kernels * n_rows, n_states)
        stacked = sparse.csr_array((self.weights, (self.rows, self.nexts)), shape=shape)
        stacked.sort_indices()
        kernels = [stacked[k * n_rows : (k + 1) * n_rows] for k in range(n_kernels)]
        if all(_same(kernel, kernels[0]) for kernel in kernels[1:]):
            return _best_form(kernels[0], (n_states, n_actions), kernels[0])
        return _best_form(stacked, self.shape, kernels)


def _best_form(stacked: Any, shape: tuple[int, ...], kernels: Any) -> Any:
    """Next states [*shape], dense [*shape, S] or the sparse `kernels`."""
    n_rows, n_states = stacked.shape
    moves = stacked.tocoo()
    possible = moves.data != 0
    if np.array_equal(moves.row[possible], np.arange(n_rows)) and (moves.data[possible] == 1).all():
        return moves.col[possible].astype(np.int64).reshape(shape)
    if stacked.nnz >= FULL_ENOUGH * n_rows * n_states:
        return stacked.toarray().reshape(*shape, n_states)
    return kernels


def _same(kernel: Any, other: Any) -> bool:
    return all(
        np.array_equal(getattr(kernel, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )
