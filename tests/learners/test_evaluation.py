"""Values of a policy against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from convex import q_values
from hypothesis import given
from hypothesis import strategies as st
from problems import random_problem

import normalfan as nf
from normalfan._kernels.playing import values_of
from normalfan.pricing.kernels import whole_problem
from normalfan_paper.bounds.splitting import policy_backup

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_values_are_those_of_the_definition_and_agrees_with_the_occupancy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    policy = rng.dirichlet(np.ones(problem.shape[2]), size=problem.shape[:2])
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        paid = (nf.occupancy(mdp, policy) * problem.losses[0]).sum()
        readable = policy_backup(mdp, policy, problem.losses[0])
        for values, q in (readable, values_of(whole_problem(mdp), policy, problem.losses[0])):
            np.testing.assert_allclose(q, q_values(problem, policy, problem.losses[0]), atol=1e-12)
            assert mdp.initial @ values[0] == pytest.approx(paid, abs=1e-12)
