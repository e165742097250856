"""The definitions of the learners' steps, solved by a convex solver or entry by entry."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from problems import Problem, random_problem

SOLVED_SEEDS = range(6)  # a convex program each: a few are enough, and quick


def solved(objective: Any, constraints: list[Any], gap: float = 1e-14) -> float:
    """The least value; a minimiser is known to about the root of the gap, so the default asks for more
    than the solver may reach, and takes what comes near. Where it gives up altogether, which depends on the
    processor, it is asked for less.
    """
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        for asked in (gap, 1e2 * gap):
            with contextlib.suppress(cp.error.SolverError):
                problem.solve(solver=cp.CLARABEL, **_accuracy(asked))
                break
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(problem.value)


def _accuracy(gap: float) -> dict[str, float]:
    wanted = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    return dict.fromkeys(wanted, gap) | dict.fromkeys((f"reduced_{name}" for name in wanted), 1e3 * gap)


def expected_successor(problem: Problem, values: np.ndarray, h: int, s: int, a: int) -> float:
    return sum(float(p) * values[j] for j, p in problem.probability(h, s, a).items())


def q_values(problem: Problem, policy: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Q^π by the definition, entry by entry."""
    q, values = np.zeros(problem.shape), np.zeros(problem.shape[1])
    for h in reversed(range(problem.shape[0])):
        for s, a in np.ndindex(*problem.shape[1:]):
            q[h, s, a] = loss[h, s, a] + expected_successor(problem, values, h, s, a)
        values = np.array([policy[h, s] @ q[h, s] for s in range(problem.shape[1])])
    return q


def entropic_minimiser(policy: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Argmin over policies of Σ_{h,s} ⟨π', c⟩ + KL(π' ‖ π)."""
    before, cost = (x.reshape(-1, x.shape[-1]) for x in (policy, costs))
    after = cp.Variable(before.shape)
    # From the least cost of a row: a constant, which only makes the solver's numbers smaller.
    over = cost - cost.min(axis=1, keepdims=True)
    objective = cp.sum(cp.multiply(over, after)) + cp.sum(cp.rel_entr(after, before))
    solved(objective, [cp.sum(after, axis=1) == 1])
    return np.asarray(after.value).reshape(policy.shape)


def larger_problem(seed: int, rounds: int = 3) -> Problem:
    """A random problem in which there is something to choose."""
    rng = np.random.default_rng(seed)
    while True:
        problem = random_problem(rng, rounds=rounds)
        if problem.shape[2] > 1 and (problem.shape[0] > 1 or problem.shape[1] > 1):
            return problem
