"""What a round of a run compiles, against the readable form: `geometry`, and a step in NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from playing import entropic_step
from problems import random_problem
from scipy.special import log_softmax

from normalfan._kernels.accounting import account, follow_plan, loss_paid, settle
from normalfan._kernels.playing import are_distributions, mirror_step, values_of, visits_of
from normalfan._kernels.variation import moved_by
from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.kernels import reachable_problem, whole_problem
from normalfan_paper.bounds.splitting import loss_distances, split_regret

seeds = st.integers(0, 2**32 - 1)


def forbidding(rng: np.random.Generator, loss: np.ndarray) -> np.ndarray:
    """The loss with some actions that are not allowed, one at least at every state that is."""
    forbidden = rng.random(loss.shape) < 0.3
    forbidden[..., int(rng.integers(loss.shape[2]))] = False
    return np.where(forbidden, np.inf, loss)


@given(seeds, st.booleans())
def test_a_round_is_what_the_readable_form_says(seed: int, forbids: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=2)
    old, loss = problem.losses / 2
    if forbids:
        old, loss = forbidding(rng, old), forbidding(rng, loss)
    policy = np.where(loss < np.inf, rng.random(loss.shape) + 0.1, 0.0)
    policy /= policy.sum(axis=2, keepdims=True)
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        whole, reachable = whole_problem(mdp), reachable_problem(mdp)
        backup = optimal_backup(mdp, loss)
        values, advantages, tied = settle(whole, loss, DEFAULT_TIES.rule(mdp))
        np.testing.assert_allclose(values, backup.values, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(advantages, backup.advantages, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(tied, backup.tied(mdp, DEFAULT_TIES))
        some = settle(reachable, loss, DEFAULT_TIES.rule(mdp))
        np.testing.assert_array_equal(some[2][mdp.reachable], tied[mdp.reachable])

        face = Face(mdp, optimal_backup(mdp, old).tied(mdp, DEFAULT_TIES))
        kept, _ = follow_plan(reachable, face.plan, loss)
        np.testing.assert_array_equal(kept, face.mask_under(loss))
        mask, dimension = follow_plan(reachable, face.plan, old)
        np.testing.assert_array_equal(mask, face.mask)
        assert dimension == face.dimension

        visits = occupancy(mdp, policy)
        mass = visits_of(whole, policy)
        np.testing.assert_allclose(mass[:, :, None] * policy, visits, rtol=1e-12, atol=1e-15)
        allowed = loss < np.inf
        found = account(reachable, policy, loss, some[1], some[2], kept)
        settled = backup.settled(mdp, DEFAULT_TIES)
        price, selection = split_regret(face, settled, visits)
        paid = (visits * np.where(allowed, loss, 0.0)).sum()
        regret = (visits * np.where(allowed, settled, 0.0)).sum()
        expected = paid, regret, price, selection, visits[~kept].sum()
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert found.losses_paid == loss_paid(whole, mass, policy, loss)
        np.testing.assert_allclose(moved_by(loss, old), loss_distances(loss, old), rtol=1e-12)


@given(seeds, st.sampled_from([0.0, 0.01]))
def test_a_step_is_that_of_numpy(seed: int, floor: float) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=1)
    shape, loss = problem.shape, problem.losses[0] * 10.0 ** rng.integers(-3, 4)
    logs = -rng.exponential(100.0, shape)
    policy = rng.dirichlet(np.ones(shape[2]), size=shape[:2])
    visits, charges = rng.random(shape[:2]), rng.random(shape)
    for kind in problem.kinds():
        whole = whole_problem(problem.mdp(kind))
        _, q = values_of(whole, policy, loss)
        for weights, extra in ((None, None), (visits, None), (None, charges)):
            costs = 0.7 * q if weights is None else 0.7 * weights[:, :, None] * q
            costs = costs if extra is None else costs + extra
            expected = entropic_step(logs, costs, floor)
            moved, stepped = mirror_step(whole, policy, loss, logs, 0.7, floor, weights, extra)
            np.testing.assert_allclose(stepped, np.exp(expected), rtol=1e-11, atol=1e-300)
            np.testing.assert_allclose(log_softmax(moved, axis=2), expected, rtol=1e-12, atol=1e-9)


def test_rows_that_are_no_distributions_are_seen() -> None:
    good = np.full((2, 3, 4), 0.25)
    assert are_distributions(good, 1e-15)
    for wrong in (-0.25, 0.25 + 1e-12, np.nan, np.inf):
        bad = good.copy()
        bad[1, 2, 3] = wrong
        assert not are_distributions(bad, 1e-15)
    bad[1, 2] = -0.5, 0.5, 0.5, 0.5
    assert not are_distributions(bad, 1e-15)
