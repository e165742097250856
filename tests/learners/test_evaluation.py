"""Values of a policy against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from convex import q_values
from hypothesis import given
from hypothesis import strategies as st
from problems import random_problem

import normalfan as nf
from normalfan.learners.mirror import policy_backup

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_policy_backup_is_the_definition_and_agrees_with_the_occupancy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    policy = rng.dirichlet(np.ones(problem.shape[2]), size=problem.shape[:2])
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        values, q = policy_backup(mdp, policy, problem.losses[0])
        np.testing.assert_allclose(q, q_values(problem, policy, problem.losses[0]), atol=1e-12)
        paid = (nf.occupancy(mdp, policy) * problem.losses[0]).sum()
        assert mdp.initial @ values[0] == pytest.approx(paid, abs=1e-12)
