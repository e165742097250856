"""Euclidean projections against enumeration and a convex solver."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from convex import SOLVED_SEEDS, solved
from hypothesis import given
from hypothesis import strategies as st
from playing import bandit, plays

from normalfan import learners
from normalfan.learners.mirror import project_onto_simplex


def nearest_by_enumeration(point: list[float]) -> list[Fraction]:
    """The nearest distribution among those nearest with a given support, in rationals."""
    y = [Fraction(number) for number in point]
    candidates = []
    for size in range(1, len(y) + 1):
        for support in combinations(range(len(y)), size):
            shift = (1 - sum(y[i] for i in support)) / size
            x = [y[i] + shift if i in support else Fraction(0) for i in range(len(y))]
            if min(x) >= 0:
                candidates.append(x)
    return min(candidates, key=lambda x: sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_projection_onto_the_simplex_by_enumeration(point: list[float]) -> None:
    expected = [float(x) for x in nearest_by_enumeration(point)]
    np.testing.assert_allclose(project_onto_simplex(np.array(point)), expected, atol=1e-12)


@pytest.mark.parametrize("seed", SOLVED_SEEDS)
def test_the_euclidean_step_solves_its_program(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(4, 1, 1, 7))
    played = plays(learners.EuclideanMirrorDescent(bandit(7), eta=0.3), losses)[:, 0, 0]
    after = cp.Variable(7)
    objective = 0.3 * losses[-1].ravel() @ after + cp.sum_squares(after - played[-2]) / 2
    solved(objective, [cp.sum(after) == 1, after >= 0])
    np.testing.assert_allclose(played[-1], after.value, atol=1e-6)
