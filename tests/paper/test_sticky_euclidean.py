"""The nearest point of a face, and the selector that plays it, against a solver."""

from __future__ import annotations

import numpy as np
import pytest
from faces import Constant, random_faces, random_policy
from scipy.optimize import minimize

from normalfan import MDP, InputError, occupancy, optimal_face
from normalfan.learners.models import LastLoss
from normalfan_paper.learners import StickyEuclidean, sticky_euclidean


@pytest.mark.parametrize("sharp", [False, True])
def test_the_euclidean_choice_is_the_minimum(sharp: bool) -> None:
    boundary = interior = 0
    for face, rng in random_faces(17 + sharp, 60):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=sharp)
        weight = float(10 ** rng.uniform(-1, 2))
        chosen = occupancy(face.mdp, StickyEuclidean(Constant(model), weight).select(face, previous))
        z = occupancy(face.mdp, previous)
        vertices = np.array(list(face.vertices()))

        def objective(w: np.ndarray, vertices: np.ndarray = vertices, z: np.ndarray = z) -> float:
            u = np.tensordot(w, vertices, axes=1)
            return float((u * model).sum() + weight / 2 * ((u - z) ** 2).sum())  # noqa: B023

        mine = float((chosen * model).sum() + weight / 2 * ((chosen - z) ** 2).sum())
        start = np.full(len(vertices), 1 / len(vertices))
        found = minimize(
            objective,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(vertices),
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"maxiter": 300, "ftol": 1e-12},
        )
        assert mine <= found.fun + 1e-9
        assert mine == pytest.approx(found.fun, rel=1e-5, abs=1e-5)
        gradient = model + weight * (chosen - z)
        assert min((gradient * (v - chosen)).sum() for v in vertices) >= -1e-9 * (1 + weight)
        boundary += bool((chosen[face.mask] == 0).any())
        interior += bool((chosen[face.mask] > 0).all())
    assert boundary > 10
    assert interior > 2


def test_sticky_stays_where_it_was_if_it_can() -> None:
    """With the last loss as model sticky is pure memory, and λ does not matter."""
    mdp = MDP(np.array([[0, 0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.array([[[1.0, 1.0, 2.0]]]))
    previous = np.array([[[0.3, 0.7, 0.0]]])
    choices = []
    for weight in (0.01, 1.0, 100.0):
        selector = StickyEuclidean(LastLoss(), weight)
        selector.observe(np.array([[[1.0, 1.0, 2.0]]]))
        choices.append(selector.select(face, previous))
    np.testing.assert_allclose(choices, [previous] * 3, atol=0.005)
    np.testing.assert_allclose(choices[0], choices[2], atol=1e-12)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_weight_without_meaning_is_refused(weight: float) -> None:
    with pytest.raises(InputError, match=f"weight is {weight}"):
        StickyEuclidean(LastLoss(), weight)


def test_one_state_is_projected_by_sorting_as_by_searching() -> None:
    for face, rng in random_faces(23, 60, n_states=1):
        target = rng.normal(size=face.mask.shape) * 10 ** rng.uniform(-2, 2)
        sorted_out = sticky_euclidean.nearest_point(face, target)
        searched = np.zeros(face.mask.shape)
        searched[face.mask] = sticky_euclidean._wolfe(face, target[face.mask])
        np.testing.assert_allclose(sorted_out, searched, atol=1e-9)
        assert face.contains(sorted_out, tolerance=1e-12)


def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    face, _ = next(random_faces(29, 1, n_states=2))
    monkeypatch.setattr(sticky_euclidean, "GAP", -1.0)
    monkeypatch.setattr(sticky_euclidean, "MOST_STEPS", 3)
    with pytest.raises(ArithmeticError, match="duality gap is still"):
        sticky_euclidean.nearest_point(face, np.zeros(face.mask.shape))
