"""Mirror descent and Hedge against a convex solver, enumeration and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from convex import SOLVED_SEEDS, entropic_minimiser, larger_problem, q_values
from hypothesis import given
from hypothesis import strategies as st
from playing import bandit, plays
from problems import random_problem
from scipy.special import softmax

import normalfan as nf
from normalfan import learners

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.floats(0.01, 5.0))
def test_hedge_is_the_softmax_of_the_summed_losses(seed: int, eta: float) -> None:
    losses = np.random.default_rng(seed).normal(size=(20, 1, 1, 5))
    sums = np.concatenate([np.zeros((1, 1, 1, 5)), losses.cumsum(axis=0)])
    mdp = bandit(5)
    np.testing.assert_allclose(
        plays(learners.Hedge(mdp, eta), losses), softmax(-eta * sums, axis=-1), rtol=1e-9
    )
    last = np.concatenate([np.zeros((1, 1, 1, 5)), losses])
    np.testing.assert_allclose(
        plays(learners.OptimisticHedge(mdp, eta), losses), softmax(-eta * (sums + last), axis=-1), rtol=1e-9
    )


def test_a_schedule_weighs_each_loss_by_its_own_round() -> None:
    losses = np.random.default_rng(0).normal(size=(9, 1, 1, 4))
    etas = 1 / np.sqrt(1 + np.arange(9.0))
    learner = learners.Hedge(bandit(4), lambda t: float(etas[t]))
    weighed = (etas[:, None, None, None] * losses).sum(axis=0)
    np.testing.assert_allclose(plays(learner, losses)[-1], softmax(-weighed, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_mirror_descent_solves_its_program(seed: int) -> None:
    problem = larger_problem(seed)
    played = plays(learners.MirrorDescent(problem.mdp(), eta=0.6), problem.losses)
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        expected = entropic_minimiser(before, 0.6 * q_values(problem, before, loss))
        np.testing.assert_allclose(after, expected, atol=1e-6)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_visit_weights_are_those_of_the_gradient(seed: int) -> None:
    """d·Q is the gradient of J in the policy: by differences, and the step solves its program."""
    problem = larger_problem(seed)
    mdp = problem.mdp()
    played = plays(learners.MirrorDescent(mdp, eta=0.6, visit_weighted=True), problem.losses)
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        visits = nf.occupancy(mdp, before).sum(axis=2, keepdims=True)
        gradient = visits * q_values(problem, before, loss)
        np.testing.assert_allclose(after, entropic_minimiser(before, 0.6 * gradient), atol=1e-6)
        towards = np.roll(before, 1, axis=2) - before  # stays a policy along the way
        small = [float((nf.occupancy(mdp, before + e * towards) * loss).sum()) for e in (-1e-5, 1e-5)]
        assert (small[1] - small[0]) / 2e-5 == pytest.approx(float((gradient * towards).sum()), abs=1e-6)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_optimistic_mirror_descent_solves_its_two_programs(seed: int) -> None:
    problem = larger_problem(seed)
    model = problem.losses[::-1].copy()  # wrong on purpose, and different in every round
    learner = learners.OptimisticMirrorDescent(problem.mdp(), 0.6, model=lambda past: model[len(past) - 1])
    played = plays(learner, problem.losses)
    secondary = np.full(problem.shape, 1 / problem.shape[2])
    np.testing.assert_allclose(played[0], secondary, rtol=1e-15)
    for t, loss in enumerate(problem.losses):
        secondary = entropic_minimiser(secondary, 0.6 * q_values(problem, played[t], loss))
        ahead = entropic_minimiser(secondary, 0.6 * q_values(problem, secondary, model[t]))
        np.testing.assert_allclose(played[t + 1], ahead, atol=1e-6)


@given(seeds)
def test_on_one_state_they_are_all_hedge(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(12, 1, 1, 4))
    mdp = bandit(4)
    hedge = plays(learners.Hedge(mdp), losses)
    np.testing.assert_allclose(plays(learners.MirrorDescent(mdp), losses), hedge, rtol=1e-8)
    optimistic = plays(learners.OptimisticHedge(mdp), losses)
    np.testing.assert_allclose(plays(learners.OptimisticMirrorDescent(mdp), losses), optimistic, rtol=1e-12)
    assert not np.allclose(optimistic, hedge)


@given(seeds)
def test_separable_losses_make_mirror_descent_one_hedge_per_layer(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    layers = problem.losses[:, :, :1, :].astype(float)  # the same in all states of a step
    losses = np.broadcast_to(layers, problem.losses.shape)
    played = plays(learners.MirrorDescent(problem.mdp()), losses)
    for h in range(problem.shape[0]):
        hedge = plays(learners.Hedge(bandit(problem.shape[2])), layers[:, h : h + 1])
        np.testing.assert_allclose(played[:, h], np.broadcast_to(hedge[:, 0], played[:, h].shape), atol=1e-12)


@given(seeds)
def test_limits_in_which_the_others_are_mirror_descent(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    mdp = problem.mdp()
    plain = plays(learners.MirrorDescent(mdp), problem.losses)
    for same in (
        learners.ThresholdedMirrorDescent(mdp, threshold=np.inf),
        learners.ThresholdedMirrorDescent(mdp, penalty=0.0),
        learners.TrustRegion(mdp, eta=0.3, radius=np.inf),
    ):
        np.testing.assert_allclose(plays(same, problem.losses), plain, atol=1e-11)
