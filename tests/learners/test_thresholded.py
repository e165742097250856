"""The thresholded step against a convex solver, its near set in rationals."""

from __future__ import annotations

import numpy as np
import pytest
from convex import SOLVED_SEEDS, entropic_minimiser, larger_problem, q_values
from oracles import exact_values
from playing import plays
from problems import Problem

from normalfan import learners


def exact_advantages(problem: Problem, loss: np.ndarray) -> np.ndarray:
    values, _ = exact_values(problem, loss)
    advantages = np.empty(problem.shape, dtype=object)
    for h, s, a in np.ndindex(*problem.shape):
        ahead = sum(p * values[h + 1][j] for j, p in problem.probability(h, s, a).items())
        advantages[h, s, a] = int(loss[h, s, a]) + ahead - values[h][s]
    return advantages


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_thresholded_step_solves_its_program(seed: int, inside: bool) -> None:
    problem = larger_problem(seed)
    learner = learners.ThresholdedMirrorDescent(
        problem.mdp(), eta=0.6, threshold=1.0, penalty=0.7, penalty_inside_step=inside
    )
    played = plays(learner, problem.losses)
    charge = 0.6 * 0.7 if inside else 0.7
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        outside = exact_advantages(problem, loss) > 1  # ties with the threshold decided in rationals
        cost = 0.6 * q_values(problem, before, loss) + charge * outside
        np.testing.assert_allclose(after, entropic_minimiser(before, cost), atol=1e-6)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_every_action_may_have_a_radius_of_its_own(seed: int) -> None:
    problem = larger_problem(seed)
    radii = np.random.default_rng(seed).integers(0, 3, size=problem.shape)
    learner = learners.ThresholdedMirrorDescent(problem.mdp(), eta=0.6, threshold=radii, penalty=0.7)
    played = plays(learner, problem.losses)
    for before, loss, after in zip(played, problem.losses, played[1:], strict=False):
        outside = exact_advantages(problem, loss) > radii
        cost = 0.6 * q_values(problem, before, loss) + 0.7 * outside
        np.testing.assert_allclose(after, entropic_minimiser(before, cost), atol=1e-6)
    same = learners.ThresholdedMirrorDescent(
        problem.mdp(), eta=0.6, threshold=np.ones(problem.shape), penalty=0.7
    )
    one = learners.ThresholdedMirrorDescent(problem.mdp(), eta=0.6, threshold=1.0, penalty=0.7)
    np.testing.assert_array_equal(plays(same, problem.losses), plays(one, problem.losses))
