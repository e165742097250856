"""Two sets of dynamics, before and after: how far they moved, and what that means for plans and values.

    V^P = Σ_h max_{s,a} ‖P₁,h(·|s,a) − P₀,h(·|s,a)‖₁    how far the transitions moved
    ℓ̃  = ℓ₁ + (P₁ − P₀) V₁                               the effective loss: with the OLD transitions it has
                                                         the values and advantages of (P₁, ℓ₁)
    |J₁(π) − J₀(π)| ≤ ε̄  for every policy π              a bound by backups, since the supremum is NP-hard

Statements and proofs: docs/details/moving.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import finite_backup, optimal_backup
from normalfan.problem.arrays import BoolArray, FloatArray, check_shape
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


def check_same_spaces(mdp: MDP, other: MDP, name: str) -> None:
    remedy = "dynamics that move keep steps, states and actions; pad the smaller problem"
    check_shape(name, other.shape, mdp.shape, remedy)
    if other.labels != mdp.labels:
        raise InputError(
            f"{name} calls its steps, states or actions by other names than the first problem, but a plan is "
            f"carried over state by state: give all the same labels."
        )


def transition_variation(before: MDP, after: MDP) -> float:
    """V^P, from 0 to 2H: how far the transitions moved, whatever the losses."""
    moved = [float(abs(new - old).sum(axis=1).max()) for old, new in _kernels(before, after)]
    return float(np.sum(np.broadcast_to(moved, before.horizon)))


def effective_loss(before: MDP, after: MDP, loss: FloatArray) -> FloatArray:
    """ℓ̃ [H, S, A] of a loss under `after`: the loss that does under `before` what both moves do together."""
    values = optimal_backup(after, loss).values
    moved = [
        after.transitions.expect(h, values[h + 1]) - before.transitions.expect(h, values[h + 1])
        for h in range(after.horizon)
    ]
    return np.asarray(loss + np.stack(moved))


def foreseen(before: MDP, after: MDP) -> Callable[[BoolArray, FloatArray], FloatArray] | None:
    """What prices plans as far as both hold a move possible; None if `after` can make no other move."""
    stationary = max(before.transitions.n_kernels, after.transitions.n_kernels) == 1
    surprises = bool((after.initial[before.initial == 0] > 0).any())
    kernels = []
    for h, (old, new) in enumerate(_kernels(before, after)):
        known = new.multiply(old != 0).tocsr()
        surprising = np.flatnonzero(np.diff(known.indptr) < np.diff(new.indptr)) // after.n_actions
        # Where the last step leads does not matter.
        steps = slice(0, -1) if stationary else slice(h, min(h + 1, after.horizon - 1))
        here = np.asarray(after.reachable[steps].any(axis=0))
        surprises = surprises or bool(here[surprising].any())
        kernels.append(known)
    start = np.where(before.initial > 0, after.initial, 0.0)

    def price(kept: BoolArray, advantages: FloatArray) -> FloatArray:
        """[n]: what keeping to masks [n, H, S, A] costs until the first move that is not foreseen."""
        costs = np.where(kept, advantages, np.inf).transpose(1, 2, 3, 0)
        ahead = np.zeros((costs.shape[1], len(kept)))
        for h in reversed(range(len(costs))):
            best = (costs[h] + (kernels[h % len(kernels)] @ ahead).reshape(costs.shape[1:])).min(axis=1)
            ahead = np.where(best < np.inf, best, 0.0)  # where nothing is kept no policy is
        return np.asarray(start @ ahead)

    return price if surprises else None


def value_error(mdp: MDP, loss: npt.ArrayLike, model: npt.ArrayLike) -> float:
    """Compute ε = sup over policies π of |J_loss(π) − J_model(π)|, by two backups of the difference.

    Parameters
    ----------
    mdp : MDP
    loss, model : array_like [H, S, A]
        The loss, and what was expected instead of it.

    Returns
    -------
    float
        Over the policies that both allow; infinite if one of them allows what the other does not.

    Raises
    ------
    InputError
        If `loss` or `model` has another shape or an entry that is no number.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.value_error(nf.MDP([[0, 0]], initial=0, horizon=1), [[[1.0, 2.0]]], model=[[[1.5, 1.0]]])
    1.0
    """
    truth, expected, forbidden = _read_both(mdp, loss, mdp, model)
    if forbidden is None:
        return np.inf
    with np.errstate(over="ignore"):
        over, under = (np.where(forbidden, np.inf, part) for part in (truth - expected, expected - truth))
    return max(abs(finite_backup(mdp, part, "loss - model").value(mdp)) for part in (over, under))


def value_error_bound(mdp: MDP, loss: npt.ArrayLike, model_mdp: MDP, model: npt.ArrayLike) -> float:
    """Bound sup over policies π of |J(π) − J_model(π)| for a model that is wrong in dynamics and loss.

    With the same dynamics the bound is `value_error` or more.

    Parameters
    ----------
    mdp, loss, model
        As in `value_error`; the dynamics are the true ones.
    model_mdp : MDP
        What was expected instead of `mdp`, with the same steps, states and actions.

    Returns
    -------
    float
        As of `value_error`.

    Raises
    ------
    InputError
        If the two problems, or a loss, have other shapes, or an entry is no number.

    Examples
    --------
    >>> import normalfan as nf
    >>> sound, leaky = ([[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.9, 0.1]], [[0.0, 1.0]]])
    >>> problems = [nf.MDP(transitions, initial=0, horizon=2) for transitions in (sound, leaky)]
    >>> value_error_bound(problems[1], [[[0], [5]]] * 2, problems[0], [[[0], [5]]] * 2)
    0.5
    """
    check_same_spaces(mdp, model_mdp, "model_mdp")
    truth, expected, forbidden = _read_both(mdp, loss, model_mdp, model)
    if forbidden is None:
        return np.inf
    return min(
        _box(model_mdp, expected, mdp, truth, forbidden), _box(mdp, truth, model_mdp, expected, forbidden)
    )


def _read_both(
    mdp: MDP, loss: npt.ArrayLike, model_mdp: MDP, model: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, BoolArray | None]:
    """A loss and its model, 0 where they allow nothing, and where that is; None if they differ in that."""
    truth, expected = as_loss(mdp, loss), as_loss(model_mdp, model, "model")
    forbidden = truth == np.inf
    differ = (forbidden != (expected == np.inf)) & (mdp.reachable | model_mdp.reachable)[:, :, None]
    truth, expected = (np.where(forbidden, 0.0, numbers) for numbers in (truth, expected))
    return truth, expected, None if differ.any() else forbidden


def _box(before: MDP, old: FloatArray, after: MDP, new: FloatArray, forbidden: BoolArray) -> float:
    """A bound on |J_after − J_before|, by values of the one and backups of the other."""
    least, most = (
        sign * optimal_backup(before, np.where(forbidden, np.inf, sign * old)).values for sign in (1, -1)
    )
    moves = [new_rows - old_rows for old_rows, new_rows in _kernels(before, after)]
    gains, losses = [moved.maximum(0) for moved in moves], [(-moved).maximum(0) for moved in moves]
    start = after.initial - before.initial
    bounds = [0.0]
    # The largest mean of the upper residuals, and the least of the lower ones.
    for sign, up, down in ((-1, most, least), (1, least, most)):
        moved = [
            gains[h % len(moves)] @ up[h + 1] - losses[h % len(moves)] @ down[h + 1] for h in range(len(new))
        ]
        residual = new - old + np.reshape(moved, new.shape)
        mean = optimal_backup(after, np.where(forbidden, np.inf, sign * residual)).value(after)
        edge = float(np.maximum(start, 0.0) @ up[0] - np.maximum(-start, 0.0) @ down[0])
        bounds.append(-mean - sign * edge)
    return max(bounds)


def _kernels(before: MDP, after: MDP) -> Iterator[tuple[Any, Any]]:
    """Both kernels as csr [S·A, S], for each step, or once if neither depends on it."""
    for h in range(max(before.transitions.n_kernels, after.transitions.n_kernels)):
        yield before.transitions.csr(h), after.transitions.csr(h)
