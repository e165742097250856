"""Sticky selectors and the nearest point of a face: numerical minimisers, conditions of optimality."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from faces import Constant, random_faces, random_policy
from scipy.optimize import minimize

from normalfan import MDP, Face, InputError, occupancy, optimal_face
from normalfan.learners import FaceTracker, LastLoss, Selector
from normalfan_paper.learners import StickyEntropy, StickyEuclidean, sticky
from normalfan_paper.learners.sticky import soft_backup


def entropy_objective(
    face: Face, policy: np.ndarray, model: np.ndarray, z: np.ndarray, weight: float
) -> float:
    """⟨u, m⟩ + λ Σ u KL(π_u ‖ π_z), followed forward with plain loops."""
    H, S, A = face.mask.shape
    reach, total = face.mdp.initial, 0.0
    for h in range(H):
        mass = np.zeros((S, A))
        for s in range(S):
            for a in range(A):
                if reach[s] > 0 and policy[h, s, a] > 0:
                    mass[s, a] = reach[s] * policy[h, s, a]
                    total += mass[s, a] * (model[h, s, a] + weight * np.log(policy[h, s, a] / z[h, s, a]))
        reach = face.mdp.transitions.push(h, mass)
    return total


@pytest.mark.parametrize("sharp", [False, True])
def test_the_entropic_choice_is_the_minimum(sharp: bool) -> None:
    for face, rng in random_faces(11 + sharp, 12, most=12):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=sharp)
        weight = float(10 ** rng.uniform(-0.5, 1))
        selector = StickyEntropy(Constant(model), weight, mixing=0.05)
        z = selector.reference(face, previous)
        np.testing.assert_allclose(z.sum(axis=2), 1.0, rtol=1e-12)
        chosen = selector.select(face, previous)
        free = face.mask.nonzero()

        def policy_of(logits: np.ndarray, face: Face = face, free: tuple = free) -> np.ndarray:
            scores = np.full(face.mask.shape, -np.inf)
            scores[free] = logits
            scores[~face.reached] = 0.0
            weights = np.exp(scores - scores.max(axis=2, keepdims=True))
            return weights / weights.sum(axis=2, keepdims=True)

        def objective(logits: np.ndarray, face: Face = face, z: np.ndarray = z) -> float:
            return entropy_objective(face, policy_of(logits), model, z, weight)  # noqa: B023

        found = minimize(objective, np.zeros(len(free[0])), method="BFGS")
        mine = entropy_objective(face, chosen, model, z, weight)
        assert mine <= found.fun + 1e-12
        assert mine == pytest.approx(found.fun, abs=1e-6)
        often = occupancy(face.mdp, chosen).sum(axis=2) > 0.05
        np.testing.assert_allclose(chosen[often], policy_of(found.x)[often], atol=2e-3)


def test_the_entropic_choice_is_proven_by_its_gradient() -> None:
    """The objective is convex and its gradient m + λ log(π_u/π_z): no vertex lies downhill."""
    for face, rng in random_faces(13, 150):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=bool(rng.integers(2)))
        weight = float(10 ** rng.uniform(-1, 1))
        selector = StickyEntropy(Constant(model), weight, mixing=0.1)
        z = selector.reference(face, previous)
        chosen = selector.select(face, previous)
        visits = occupancy(face.mdp, chosen)
        ratio = np.divide(chosen, z, out=np.ones_like(z), where=face.mask)
        gradient = np.where(face.mask, model + weight * np.log(ratio), 0.0)
        slopes = [(gradient * (v - visits)).sum() for v in face.vertices()]
        assert min(slopes) >= -1e-10
        assert max(slopes) <= 1e-10  # an interior minimum is flat in every direction of the face


def test_mixing_decides_how_far_a_boundary_reference_lets_go() -> None:
    """All mass was on an arm that the model now dislikes by 1: more mixing, more mass moves."""
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.zeros((1, 1, 2)))
    previous = np.array([[[1.0, 0.0]]])
    moved = [
        StickyEntropy(Constant(np.array([[[1.0, 0.0]]])), 1.0, mixing=mixing).select(face, previous)[0, 0, 1]
        for mixing in (1e-12, 1e-3, 0.5)
    ]
    assert moved[0] < 1e-11 < moved[1] < 1e-2 < moved[2]
    exact = 0.25 * np.e / (0.25 * np.e + 0.75)
    assert moved[2] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: StickyEntropy(LastLoss(), 1.0, mixing=0.0), "mixing is 0.0"),
        (lambda: StickyEntropy(LastLoss(), 1.0, mixing=1.5), "mixing is 1.5"),
        (lambda: StickyEntropy(LastLoss(), 0.0), "weight is 0.0"),
        (lambda: StickyEntropy(LastLoss(), float("nan")), "weight is nan"),
        (lambda: StickyEntropy(LastLoss(), float("inf")), "weight is inf"),
        (lambda: StickyEuclidean(LastLoss(), float("nan")), "weight is nan"),
        (lambda: StickyEuclidean(LastLoss(), float("inf")), "weight is inf"),
    ],
)
def test_settings_without_meaning_are_refused(build: Callable[[], Selector], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build()


def test_a_reference_that_shuns_the_face_is_refused() -> None:
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.array([[[0.0, 1.0]]]))
    with pytest.raises(InputError, match=r"reference\[0, 0\] gives no probability"):
        soft_backup(face, np.zeros(mdp.shape), np.array([[[0.0, 1.0]]]), 1.0)


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


@pytest.mark.parametrize("kind", [StickyEntropy, StickyEuclidean])
def test_sticky_stays_where_it_was_if_it_can(kind: type[StickyEntropy | StickyEuclidean]) -> None:
    """With the last loss as model sticky is pure memory, and λ does not matter."""
    mdp = MDP(np.array([[0, 0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.array([[[1.0, 1.0, 2.0]]]))
    previous = np.array([[[0.3, 0.7, 0.0]]])
    choices = []
    for weight in (0.01, 1.0, 100.0):
        selector = kind(LastLoss(), weight)
        selector.observe(np.array([[[1.0, 1.0, 2.0]]]))
        choices.append(selector.select(face, previous))
    np.testing.assert_allclose(choices, [previous] * 3, atol=0.005)
    np.testing.assert_allclose(choices[0], choices[2], atol=1e-12)


def test_one_state_is_projected_by_sorting_as_by_searching() -> None:
    for face, rng in random_faces(23, 60, n_states=1):
        target = rng.normal(size=face.mask.shape) * 10 ** rng.uniform(-2, 2)
        sorted_out = sticky.nearest_point(face, target)
        searched = np.zeros(face.mask.shape)
        searched[face.mask] = sticky._wolfe(face, target[face.mask])
        np.testing.assert_allclose(sorted_out, searched, atol=1e-9)
        assert face.contains(sorted_out, tolerance=1e-12)


def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    face, _ = next(random_faces(29, 1, n_states=2))
    monkeypatch.setattr(sticky, "GAP", -1.0)
    monkeypatch.setattr(sticky, "MOST_STEPS", 3)
    with pytest.raises(ArithmeticError, match="duality gap is still"):
        sticky.nearest_point(face, np.zeros(face.mask.shape))


@pytest.mark.parametrize("kind", [StickyEntropy, StickyEuclidean])
def test_sticky_selectors_refuse_a_prediction_that_forbids_something(kind: type) -> None:
    arms = MDP([[0, 0, 0]], 0, horizon=1)
    tracker = FaceTracker(arms, kind(None, 1.0))
    tracker.observe(0, [[[0.0, 0.0, np.inf]]])
    with pytest.raises(InputError, match=rf"{kind.__name__} plays every action, but loss\[0, 0, 2\] is not"):
        tracker.act(1)
