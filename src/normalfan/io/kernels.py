"""Transitions as lists of moves, put into the form that prices fastest.

A move is (kernel, state, action, next state, probability). A problem in which every move is certain becomes
next states; one whose states have few successors becomes sparse; the rest dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray

FULL_ENOUGH = 0.25
"""From this share of non-zero probabilities on, a dense product is the better choice."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What happens: n moves, no (kernel, state, action, next state) twice."""

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
        if self._repeats_one_kernel():
            return self._first_kernel().transitions()
        n_kernels, n_states, n_actions = self.shape
        n_rows = n_states * n_actions
        sure = self.weights == 1
        if np.count_nonzero(sure) == n_kernels * n_rows:
            certain = np.empty(n_kernels * n_rows, dtype=np.int64)
            certain[self.rows[sure]] = self.nexts[sure]
            kernels: Any = certain.reshape(self.shape)
        elif len(self.rows) >= FULL_ENOUGH * n_kernels * n_rows * n_states:
            kernels = np.zeros((*self.shape, n_states))
            kernels.reshape(-1, n_states)[self.rows, self.nexts] = self.weights
        else:
            kernels = self._sparse()
        return kernels[0] if n_kernels == 1 else kernels

    def _repeats_one_kernel(self) -> bool:
        n_kernels, n_states, n_actions = self.shape
        if n_kernels == 1 or len(self.rows) % n_kernels:
            return False
        order = np.lexsort((self.nexts, self.rows))
        kernels = self.rows[order] // (n_states * n_actions)
        within = self.rows[order] % (n_states * n_actions)
        by_kernel = [
            column.reshape(n_kernels, -1)
            for column in (kernels, within, self.nexts[order], self.weights[order])
        ]
        fits = bool((by_kernel[0] == np.arange(n_kernels)[:, None]).all())
        return fits and all(bool((column == column[0]).all()) for column in by_kernel[1:])

    def _first_kernel(self) -> Moves:
        _, n_states, n_actions = self.shape
        first = self.rows < n_states * n_actions
        return Moves(self.rows[first], self.nexts[first], self.weights[first], (1, n_states, n_actions))

    def _sparse(self) -> list[Any]:
        from scipy import sparse

        n_kernels, n_states, n_actions = self.shape
        n_rows = n_states * n_actions
        stacked = sparse.csr_array(
            (self.weights, (self.rows, self.nexts)), shape=(n_kernels * n_rows, n_states)
        )
        return [stacked[k * n_rows : (k + 1) * n_rows] for k in range(n_kernels)]
