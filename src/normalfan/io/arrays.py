"""Problems and rewards in other people's arrays, and what depends on where an action leads.

    pymdptoolbox         P [A, S, S] or A sparse matrices [S, S];  R [S], [S, A], [A, S, S] or A sparse [S, S]
    QuantEcon            Q [S, A, S], R [S, A];  state-action pairs: Q [L, S], R [L], s_indices, a_indices

A price needs the mean of a reward only, so r(s, a, s') is replaced by its expectation over s'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError, check_choice
from normalfan.io.tables import state_index
from normalfan.problem.arrays import FloatArray, IntArray, check_axes, check_finite, check_shape, read_numbers
from normalfan.problem.losses import ArrayLosses, LossStream, rewards
from normalfan.problem.mdp import MDP, Labels
from normalfan.problem.transitions import check_sparse, transitions_of_moves


def from_arrays(
    P: Any,
    R: Any,
    *,
    horizon: int,
    start: npt.ArrayLike | str,
    order: str | None = None,
    pairs: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    moving: bool = False,
    terminal: npt.ArrayLike | None = None,
    round_names: Sequence[str] | None = None,
    labels: Labels | None = None,
) -> tuple[MDP, LossStream]:
    """Read a problem and its rewards as pymdptoolbox and QuantEcon write them.

    Parameters
    ----------
    P : array_like [A, S, S] or [S, A, S], list of A scipy sparse [S, S], or with `pairs` [L, S]
        Probabilities, the same at every step.
    R : array_like [S] or [S, A], in the form of `P` for r(s, a, s'), or with `pairs` [L]
        Rewards, to be maximised; -inf in [S, A] where an action is not allowed.
    horizon, start : int, array_like [S] or int or str
        The number of steps; a distribution, a state's index or its label. There is no discount.
    order : {"ASS", "SAS"}, optional
        The axes of an array `P`; needed if there are as many actions as states.
    pairs : (array_like [L], array_like [L]), optional
        The states and actions that the rows of `P` and `R` belong to; pairs left out are not allowed.
    moving : bool
        Whether `R` is a sequence of such rewards, one for each round.
    terminal : array_like [S], or [T, S] if moving, optional
        What it is worth to end in a state, on top of `R`.
    round_names, labels : sequence of str, Labels, optional

    Returns
    -------
    mdp : MDP
    losses : LossStream
        The rewards are a stream of rewards (see `rewards`), of one round unless `moving`.

    Raises
    ------
    InputError
        If the arrays do not fit together or could be read in two ways.

    Examples
    --------
    >>> P = [[[0.9, 0.1], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> mdp, losses = from_arrays(P, [[1, 0, 0], [0, 2, 0]], horizon=3, start=0, terminal=[0, 5])
    >>> mdp, losses
    (MDP(horizon=3, states=2, actions=3, Dense), Negated(ArrayLosses(T=1, H=3, S=2, A=3, float64)))
    """
    if pairs is None:
        axes = _order_of(P, order)
        table = _rows("P", P, axes)
        which = np.arange(table.shape[0]).reshape(table.shape[1], -1)
    else:
        axes, (table, which) = "", _paired(P, pairs)
    given = which >= 0
    moves, rows = table[which[given]].tocoo(), np.flatnonzero(given)
    shape = (1, *which.shape)
    transitions = transitions_of_moves(rows[moves.row], moves.col, moves.data, shape, stays=~given)
    names = (labels or Labels()).states or [str(s) for s in range(len(which))]
    initial = state_index(start, names) if isinstance(start, str) else start
    mdp = MDP(transitions, initial, horizon, labels=labels, allowed=given)
    rounds = {f"R[{t}]": one for t, one in enumerate(R)} if moving else {"R": R}
    if not rounds:
        raise InputError("R has no round, but moving rewards are one or more: pass a sequence of them.")
    means = [_mean_reward(name, one, mdp, axes, which) for name, one in rounds.items()]
    losses = expected_losses(mdp, np.stack(means), axes="TSA", terminal=terminal, round_names=round_names)
    return mdp, rewards(losses)


def expected_losses(
    mdp: MDP,
    losses: npt.ArrayLike,
    *,
    axes: str = "TSAS",
    terminal: npt.ArrayLike | None = None,
    round_names: Sequence[str] | None = None,
) -> ArrayLosses:
    """Turn losses that depend on the next state, and terminal ones, into losses of steps, states and actions.

    Parameters
    ----------
    mdp : MDP
    losses : array_like
    axes : str, default "TSAS"
        The axes of `losses`: those of `ArrayLosses`, and a last S if they depend on the next state.
    terminal : array_like [S] or [T, S], optional
        The loss of ending in a state: its expectation is added to the loss of the last step.
    round_names : sequence of str, optional

    Returns
    -------
    ArrayLosses
        With the same expected loss for every policy. For rewards: `rewards(expected_losses(…))`.

    Raises
    ------
    InputError
        If shapes do not fit, or a number that depends on the next state is not finite.

    Examples
    --------
    >>> toll = np.zeros((1, 2, 2, 2))
    >>> toll[:, :, :, 1] = 4                                      # for every arrival in state 1
    >>> half = MDP([[[0.5, 0.5], [1.0, 0.0]]] * 2, initial=0, horizon=3)
    >>> expected_losses(half, toll).array.tolist()
    [[[2.0, 0.0], [2.0, 0.0]]]
    """
    numbers = read_numbers("losses", losses).astype(np.float64, copy=False)
    if axes.endswith("SAS"):
        check_axes("losses", numbers.shape[:-1], axes[:-1])
        check_finite("losses", numbers)
        sizes = dict(zip("HSA", mdp.shape, strict=True))
        expected = (len(numbers), *(sizes[axis] for axis in axes[1:]))
        check_shape("losses", numbers.shape, expected, f"put its axes in the order [{', '.join(axes)}]")
        is_same = "H" not in axes and mdp.transitions.n_kernels == 1
        parts = [
            _mean(mdp.transitions.csr(h), numbers[:, h] if "H" in axes else numbers)
            for h in range(1 if is_same else mdp.horizon)
        ]
        numbers, axes = (parts[0], "TSA") if is_same else (np.stack(parts, axis=1), "THSA")
    stream = ArrayLosses(numbers, axes, round_names=round_names)
    if terminal is None:
        return stream
    worth = read_numbers("terminal", terminal).astype(np.float64)
    check_finite("terminal", worth)
    if worth.shape not in ((mdp.n_states,), (len(numbers), mdp.n_states)):
        raise InputError(
            f"terminal has shape {list(worth.shape)}, but must give a number for each of the {mdp.n_states} "
            f"states, or [{len(numbers)}, {mdp.n_states}] for each round: check its axes."
        )
    every = np.array(next(stream.blocks(mdp.shape, len(numbers))))
    last = mdp.transitions.expect(mdp.horizon - 1, worth.reshape(-1, mdp.n_states).T)  # [S, A, 1 or T]
    every[:, -1] += np.moveaxis(last, -1, 0)
    return ArrayLosses(every, round_names=round_names)


def _mean(kernel: Any, numbers: FloatArray) -> FloatArray:
    """[T, S, A, S] → [T, S, A]: the expectation over the next state."""
    rows = np.arange(kernel.shape[0]).repeat(np.diff(kernel.indptr))
    each = numbers.reshape(len(numbers), *kernel.shape)[:, rows, kernel.indices] * kernel.data
    summed: FloatArray = np.add.reduceat(each, kernel.indptr[:-1], axis=1)  # no row of a kernel is empty
    return summed.reshape(numbers.shape[:-1])


def _are_sparse(given: Any) -> bool:
    is_list = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.dtype == object)
    return is_list and len(given) > 0 and all(map(sparse.issparse, given))


def _order_of(P: Any, order: str | None) -> str:
    """The axes of `P`, by its shape and the user's word for it."""
    if order is not None:
        check_choice("order", order, ("ASS", "SAS"))
    shape = (len(P), *P[0].shape) if _are_sparse(P) else read_numbers("P", P).shape
    is_cube = len(shape) == 3 and 0 not in shape
    fits = ["ASS"] * (is_cube and shape[1] == shape[2])
    fits += ["SAS"] * (is_cube and shape[0] == shape[2] and not _are_sparse(P))
    if not fits:
        raise InputError(
            f"P has shape {list(shape)}, but must be [A, S, S] or [S, A, S], or a list of A sparse matrices "
            f"[S, S]: reorder its axes, or pass pairs."
        )
    if order is None and len(fits) == 2:
        raise InputError(
            f"P has shape {list(shape)}, but could be both [A, S, S] and [S, A, S]: pass order='ASS' (as "
            f"pymdptoolbox has it) or order='SAS' (as QuantEcon has it)."
        )
    if order is not None and order not in fits:
        raise InputError(
            f"order is {order!r}, but the shape {list(shape)} of P fits {fits[0]!r} only: leave it out, or "
            f"transpose P."
        )
    return order or fits[0]


def _rows(name: str, cube: Any, order: str) -> Any:
    """What depends on state, action and next state, as a sparse matrix [S·A, S] with the rows s·A + a."""
    if not _are_sparse(cube):
        numbers = read_numbers(name, cube).astype(np.float64)
        check_finite(name, numbers)
        by_state = numbers.swapaxes(0, 1) if order == "ASS" else numbers
        return sparse.csr_array(by_state.reshape(-1, numbers.shape[2]))
    size = cube[0].shape[0]
    for a, matrix in enumerate(cube):
        check_shape(f"{name}[{a}]", matrix.shape, (size, size), "pass a matrix [S, S] for each action")
        check_sparse(f"{name}[{a}]", matrix)
        check_finite(f"{name}[{a}].data", matrix.tocsr().data)
    stacked = sparse.vstack([sparse.csr_array(matrix, dtype=np.float64) for matrix in cube], format="csr")
    return stacked[np.arange(stacked.shape[0]).reshape(len(cube), size).T.reshape(-1)]


def _mean_reward(name: str, given: Any, mdp: MDP, axes: str, which: IntArray) -> FloatArray:
    """[S, A]: the rewards of a round, in whichever form they are."""
    n_states, n_actions = mdp.shape[1:]
    are_sparse = _are_sparse(given)
    numbers = np.empty(0) if are_sparse else read_numbers(name, given).astype(np.float64)
    shape = (len(given), *given[0].shape) if are_sparse else numbers.shape
    if not axes:
        check_shape(name, shape, (int(which.max()) + 1,), "pass a reward for each pair")
        numbers = np.where(which >= 0, numbers[which], 0.0)
    elif shape == tuple({"A": n_actions, "S": n_states}[axis] for axis in axes):
        earned = mdp.transitions.csr(0).multiply(_rows(name, given, axes))
        return np.asarray(earned.sum(axis=1), dtype=np.float64).reshape(n_states, n_actions)
    elif shape not in ((n_states,), (n_states, n_actions)):
        raise InputError(
            f"{name} has shape {list(shape)}, but must be [{n_states}], [{n_states}, {n_actions}] or like P: "
            f"reorder its axes, or pass moving=True if it has a reward for each round."
        )
    check_finite(name, np.where(numbers == -np.inf, 0.0, numbers))
    return np.broadcast_to(numbers.reshape(n_states, -1), (n_states, n_actions))


def _paired(P: Any, pairs: Sequence[npt.ArrayLike]) -> tuple[Any, IntArray]:
    """`P` as a sparse matrix [L, S], and the row of it that each pair is, [S, A]; -1 if it is left out."""
    table = P if sparse.issparse(P) else read_numbers("P", P)
    if sparse.issparse(P):
        check_sparse("P", P)
    if len(table.shape) != 2 or 0 in table.shape:
        raise InputError(
            f"P has shape {list(table.shape)}, but with pairs it has a row for each of them: pass [L, S]."
        )
    given = sparse.csr_array(table, dtype=np.float64)
    n_rows, n_states = given.shape
    indices = [read_numbers("pairs", one) for one in pairs]
    if len(indices) != 2 or any(one.shape != (n_rows,) or one.dtype.kind not in "iu" for one in indices):
        shown = " and ".join(f"{one.dtype} {list(one.shape)}" for one in indices)
        raise InputError(
            f"pairs are {shown}, but must be the states and the actions of the {n_rows} rows of P: pass "
            f"(s_indices, a_indices)."
        )
    states, actions = indices
    if min(states.min(), actions.min()) < 0 or states.max() >= n_states:
        raise InputError(
            f"pairs name states from {states.min()} to {states.max()} and actions from {actions.min()} on, "
            f"but they must be indices from 0, of {n_states} states: check their numbering."
        )
    which = np.full((n_states, int(actions.max()) + 1), -1)
    which[states, actions] = np.arange(n_rows)
    again = which[states, actions] != np.arange(n_rows)
    if again.any():
        k = int(again.argmax())
        raise InputError(
            f"pairs have state {states[k]}, action {actions[k]} more than once, but each is one row of P: "
            f"drop the others."
        )
    return given, which
