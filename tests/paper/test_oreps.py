"""O-REPS and its projection against a convex solver and the conditions of optimality."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from convex import SOLVED_SEEDS, larger_problem, solved
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import plays
from problems import random_problem

import normalfan as nf
from normalfan_paper.learners.oreps import OReps, project_onto_occupancies

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_oreps_solves_its_program(seed: int) -> None:
    problem = larger_problem(seed)
    mdp = problem.mdp()
    visits = [nf.occupancy(mdp, play) for play in plays(OReps(mdp, eta=0.6), problem.losses)]
    for before, loss, after in zip(visits, problem.losses, visits[1:], strict=False):
        possible = before > 0
        q = [cp.Variable(problem.shape[1:], nonneg=True) for _ in range(problem.shape[0])]
        flat = cp.hstack([cp.vec(layer, order="C") for layer in q])[possible.ravel().nonzero()[0]]
        constraints = [cp.sum(q[0], axis=1) == problem.start / problem.start.sum()]
        for h in range(problem.shape[0] - 1):
            kernel = problem.counts[h] / problem.counts[h].sum(axis=-1, keepdims=True)
            arriving = kernel.reshape(-1, problem.shape[1]).T @ cp.vec(q[h], order="C")
            constraints.append(cp.sum(q[h + 1], axis=1) == arriving)
        solved(0.6 * loss[possible] @ flat + cp.sum(cp.kl_div(flat, before[possible])), constraints)
        expected = np.array([layer.value for layer in q])
        np.testing.assert_allclose(after, np.where(possible, expected, 0), atol=1e-6)


@settings(max_examples=50)
@given(seeds, st.floats(0.01, 30.0))
def test_the_oreps_projection_is_a_flow_and_is_stationary(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    mdp = problem.mdp()
    logs = rng.normal(scale=spread, size=problem.shape)
    projected = project_onto_occupancies(mdp, logs)
    q = np.exp(projected)
    assert nf.whole_polytope(mdp).contains(q, tolerance=1e-9)
    # The gradient log(q/p) of the divergence is worth the same to every policy.
    gradient = np.where(np.isfinite(projected), projected - logs, 0.0)
    policies = rng.dirichlet(np.ones(problem.shape[2]), size=(4, *problem.shape[:2]))
    worth = [(nf.occupancy(mdp, policy) * gradient).sum() for policy in policies]
    np.testing.assert_allclose(worth, worth[0], atol=1e-9 * (1 + np.abs(gradient).max()))


def test_what_forbids_an_action_is_refused() -> None:
    with pytest.raises(nf.InputError, match=r"OReps plays every action, but loss\[0, 0, 1\] is not allowed"):
        OReps(nf.MDP([[0, 0]], 0, horizon=1)).observe(0, [[[0.0, np.inf]]])
