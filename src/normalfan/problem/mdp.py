"""The fixed decision problem: transitions, a start, a horizon."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.problem.arrays import (
    BoolArray,
    FloatArray,
    SparseMatrix,
    read_distributions,
    read_numbers,
    read_only,
)
from normalfan.problem.labels import Labels, check_labels
from normalfan.problem.transitions import Transitions, read_transitions
from normalfan.text import html_table


class MDP:
    """A finite-horizon Markov decision process without its loss, validated once.

    Parameters
    ----------
    transitions : array_like, scipy sparse, or list of scipy sparse
        Where actions lead: probabilities [H, S, A, S], or [S, A, S] for every step; scipy sparse [S·A, S],
        row s·A + a, for every step, or a list of H of them; integer next states [H, S, A], or [S, A].
        Axes are read in this order: with as many actions as states nothing tells [A, S, S] from [S, A, S].
        All arrays are copied. Rows that sum to 1 within 1e-6 are divided by their sum.
    initial : array_like [S] or int
        The distribution of the first state, or that state's index.
    horizon : int, optional
        The number of steps H; needed when one kernel serves all steps.
    labels : Labels, optional

    Raises
    ------
    InputError
        If shapes or `horizon` do not fit, a row is not a distribution, or a next state does not exist.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.MDP([[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]], initial=0, horizon=3)
    MDP(horizon=3, states=2, actions=2, Dense)
    >>> nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2).reachable.tolist()      # integers: next states
    [[True, False], [True, True]]
    """

    def __init__(
        self,
        transitions: npt.ArrayLike | SparseMatrix | Sequence[SparseMatrix] | Transitions,
        initial: npt.ArrayLike,
        horizon: int | None = None,
        *,
        labels: Labels | None = None,
    ) -> None:
        self.transitions: Transitions
        self.transitions, self.horizon = read_transitions(transitions, horizon)
        self.initial: FloatArray = _read_initial(initial, self.n_states)
        self.labels = labels or Labels()
        check_labels(self.labels, self.shape)

    @property
    def n_states(self) -> int:
        """The number of states S."""
        return self.transitions.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions A."""
        return self.transitions.n_actions

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape [H, S, A] of a loss, a policy, a mask and an occupancy measure."""
        return self.horizon, self.n_states, self.n_actions

    @cached_property
    def reachable(self) -> BoolArray:
        """[H, S]: whether some policy is in s at step h with positive probability."""
        reached = np.zeros((self.horizon, self.n_states), dtype=bool)
        reached[0] = self.initial > 0
        for h in range(self.horizon - 1):
            every_action = np.repeat(reached[h, :, None].astype(float), self.n_actions, axis=1)
            reached[h + 1] = self.transitions.push(h, every_action) > 0
        return read_only(reached)

    @cached_property
    def has_certain_start(self) -> bool:
        """Whether every round begins in the same state."""
        return int(np.count_nonzero(self.initial)) == 1

    @cached_property
    def is_certain(self) -> bool:
        """Whether nothing is left to chance: one start state, and one successor of every move."""
        n_rows = self.n_states * self.n_actions
        kernels = (self.transitions.csr(k) for k in range(self.transitions.n_kernels))
        return self.has_certain_start and all(kernel.nnz == n_rows for kernel in kernels)

    @cached_property
    def most_successors(self) -> int:
        """The largest number of states that one action can lead to."""
        kernels = (self.transitions.csr(k) for k in range(self.transitions.n_kernels))
        return max(int(np.diff(kernel.indptr).max()) for kernel in kernels)

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of the content: equal problems agree, whatever their representation."""
        kernels = [_digest_kernel(self.transitions, k) for k in range(self.transitions.n_kernels)]
        content = hashlib.sha256(repr(self.shape).encode())
        content.update(self.initial.tobytes())
        for h in range(self.horizon):
            content.update(kernels[h % len(kernels)])
        return content.hexdigest()

    def __repr__(self) -> str:
        kind = type(self.transitions).__name__
        return f"MDP(horizon={self.horizon}, states={self.n_states}, actions={self.n_actions}, {kind})"

    def _repr_html_(self) -> str:
        start = int(np.count_nonzero(self.initial))
        starts = f"state {self.labels.state(int(self.initial.argmax()))}" if start == 1 else f"{start} states"
        kind = type(self.transitions).__name__.lower()
        rows = [(*self.shape, kind, starts)]
        return html_table("Decision problem", ("steps", "states", "actions", "transitions", "start"), rows)


def _read_initial(initial: npt.ArrayLike, n_states: int) -> FloatArray:
    numbers = read_numbers("initial", initial)
    if numbers.ndim == 0:
        if numbers.dtype.kind not in "iu" or not 0 <= int(numbers) < n_states:
            raise InputError(
                f"initial is {numbers[()]}, but a start state must be an index from 0 to "
                f"{n_states - 1}: pass one, or a distribution over the {n_states} states."
            )
        start = np.zeros(n_states)
        start[int(numbers)] = 1.0
        return read_only(start)
    if numbers.shape != (n_states,):
        raise InputError(
            f"initial has shape {list(numbers.shape)}, but must be a distribution over the "
            f"{n_states} states or one state's index: check its length."
        )
    return read_only(read_distributions("initial", numbers))


def _digest_kernel(transitions: Transitions, step: int) -> bytes:
    matrix = transitions.csr(step)
    digest = hashlib.sha256(matrix.indptr.astype(np.int64).tobytes())
    digest.update(matrix.indices.astype(np.int64).tobytes())
    digest.update(matrix.data.tobytes())
    return digest.digest()
