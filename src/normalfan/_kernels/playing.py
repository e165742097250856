"""One policy at a time: where it goes, what it pays, and a step of exponential weights from it.

Arrays are flat, entry (h, s, a) at (h·S + s)·A + a. What a policy expects is read from the successors of a
move, or, if transitions are dense, from products of a matrix and a vector that are found a step at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan._kernels.buffers import Problem, frozen
from normalfan._kernels.compiling import inlined, kernel
from normalfan._kernels.memory import item


@inlined
def begin_step(rows, first, values, means):
    """Of dense transitions, the means of the values ahead, for all rows (s, a) of a step from `first` on."""
    if rows is not None:
        np.dot(rows[first : first + len(means)], values, means)


@inlined
def mean_ahead(rows, indptr, indices, weights, first, i, values, means):
    """E[values(s') | row i of the step]; `values` are those of the next step."""
    mean = 0.0
    if rows is not None:
        mean = item(means, i)
    if indices is not None:
        if weights is not None:
            for p in range(item(indptr, first + i), item(indptr, first + i + 1)):
                mean += item(weights, p) * item(values, item(indices, p))
        else:
            mean = item(values, item(indices, first + i))
    return mean


@inlined
def push_row(rows, indptr, indices, weights, row, mass, out):
    """Add the mass of a row where it goes."""
    if rows is not None:
        for s in range(len(out)):
            out[s] += rows[row, s] * mass
    if indices is not None:
        if weights is not None:
            for p in range(item(indptr, row), item(indptr, row + 1)):
                out[np.uint64(item(indices, p))] += item(weights, p) * mass
        else:
            out[np.uint64(item(indices, row))] += mass


@kernel
def _are_distributions(policy, actions, tolerance):
    sound = True
    for row in range(0, len(policy), actions):
        total, least = 0.0, 0.0
        for i in range(row, row + actions):
            total += item(policy, i)
            least = min(least, item(policy, i))
        sound &= (least == 0.0) & (abs(total - 1.0) <= tolerance)
    return sound


def are_distributions(policy: np.ndarray, tolerance: float) -> bool:
    """Whether every row [..., A] of non-negative numbers sums to 1 within a tolerance."""
    return bool(_are_distributions(frozen(policy, np.float64), policy.shape[-1], tolerance))


def tables(problem: Problem) -> tuple[Any, ...]:
    """The rows, or indptr, indices and weights: where they are None numba prunes arguments, but no tuples."""
    return problem.rows, problem.indptr, problem.indices, problem.weights


@kernel
def _visit(problem, rows, indptr, indices, weights, policy, mass):
    steps, states, actions = problem.shape
    mass[:states] = problem.initial
    mass[states:] = 0.0
    for h in range(steps - 1):
        later = mass[(h + 1) * states : (h + 2) * states]
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            arrived, cell = item(mass, h * states + s), (h * states + s) * actions
            if arrived > 0.0:
                for a in range(actions):
                    row = h * problem.per_step + s * actions + a
                    push_row(rows, indptr, indices, weights, row, arrived * item(policy, cell + a), later)


def visits_of(problem: Problem, policy: np.ndarray) -> np.ndarray:
    """[H, S]: how likely a policy [H, S, A] is in each state at each step."""
    mass = np.empty(problem.shape[:2])
    _visit(problem, *tables(problem), frozen(policy, np.float64), mass.reshape(-1))
    return mass


@kernel
def _evaluate(problem, rows, indptr, indices, weights, policy, loss, values, q):
    steps, states, actions = problem.shape
    size = states * actions
    means = np.empty(size)
    values[steps * states :] = 0.0
    for h in range(steps - 1, -1, -1):
        first, ahead = h * problem.per_step, values[(h + 1) * states : (h + 2) * states]
        begin_step(rows, first, ahead, means)
        for s in range(states):
            total = 0.0
            for i in range(s * actions, (s + 1) * actions):
                own = item(loss, h * size + i) + mean_ahead(
                    rows, indptr, indices, weights, first, i, ahead, means
                )
                q[h * size + i] = own
                total += item(policy, h * size + i) * own
            values[h * states + s] = total


def values_of(problem: Problem, policy: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V [H+1, S] and Q [H, S, A] of a policy under a loss, [H, S, A] both.

    Backward: Q_h = ℓ_h + E V_{h+1} and V_h(s) = Σ_a π_h(a|s) Q_h(s,a).
    """
    steps, states, _ = problem.shape
    values, q = np.empty((steps + 1, states)), np.empty(problem.shape)
    given = frozen(policy, np.float64), frozen(loss, np.float64)
    _evaluate(problem, *tables(problem), *given, values.reshape(-1), q.reshape(-1))
    return values, q


@kernel
def _charge(q, logs, eta, visits, charges, actions, moved):
    for row in range(len(q) // actions):
        scale, least = eta, np.inf
        if visits is not None:
            scale = eta * item(visits, row)
        for i in range(row * actions, (row + 1) * actions):
            cost = scale * item(q, i)
            if charges is not None:
                cost += item(charges, i)
            moved[np.uint64(i)] = cost
            least = min(least, cost)
        # Costs count up to a constant: measured from the least, large ones leave the logs their digits.
        for i in range(row * actions, (row + 1) * actions):
            moved[np.uint64(i)] = item(logs, i) - (item(moved, i) - least)


@kernel
def _lower(logs, actions):
    for row in range(0, len(logs), actions):
        top = -np.inf
        for i in range(row, row + actions):
            top = max(top, item(logs, i))
        for i in range(row, row + actions):
            logs[np.uint64(i)] = item(logs, i) - top


@kernel
def _normalise(weights, actions, floor):
    for row in range(0, len(weights), actions):
        total = 0.0
        for i in range(row, row + actions):
            total += item(weights, i)
        share = (1.0 - actions * floor) / total
        for i in range(row, row + actions):
            weights[np.uint64(i)] = item(weights, i) * share + floor


def as_policy(logs: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """The logs [H, S, A] of weights, changed so that the largest is 0, and these weights as a policy.

    With a floor f the policy is mixed with the uniform one: (1 − A·f) π + f.
    """
    # What has underflowed is still known by its log.
    _lower(logs.reshape(-1), logs.shape[2])
    policy = np.exp(logs)
    _normalise(policy.reshape(-1), logs.shape[2], floor)
    return (np.log(policy) if floor else logs), policy


def mirror_step(
    problem: Problem,
    policy: np.ndarray,
    loss: np.ndarray,
    logs: np.ndarray,
    eta: float,
    floor: float,
    visits: np.ndarray | None = None,
    charges: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """From weights, by logs, to weights · exp(−c) with c = η·visits·Q + charges: their logs, and as a policy.

    Q are the values of `policy` under `loss`; both, logs and charges are [H, S, A], visits [H, S].
    """
    moved, (_, q) = np.empty(problem.shape), values_of(problem, policy, loss)
    extra = (None if array is None else frozen(array, np.float64) for array in (visits, charges))
    _charge(q.reshape(-1), frozen(logs, np.float64), eta, *extra, q.shape[2], moved.reshape(-1))
    return as_policy(moved, floor)
