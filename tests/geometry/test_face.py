"""Faces against enumeration of every deterministic policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import deterministic_policies, exact_value
from problems import Problem, random_problem
from sentences import check_refusal

import normalfan as nf

seeds = st.integers(0, 2**32 - 1)


def small_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    while True:
        problem = random_problem(rng, rounds=2)
        horizon, n_states, n_actions = problem.shape
        if n_actions ** (horizon * n_states) <= 300:
            return problem


def as_policy(actions: np.ndarray, n_actions: int) -> np.ndarray:
    return np.eye(n_actions)[actions]


@given(seeds)
@settings(max_examples=60)
def test_the_face_is_the_set_of_optimal_policies(seed: int) -> None:
    problem = small_problem(seed)
    mdp, loss = problem.mdp(), problem.losses[0]
    face = nf.optimal_face(mdp, loss)
    best = float(exact_value(problem, loss))
    optimal = set()
    for actions in deterministic_policies(problem):
        visits = nf.occupancy(mdp, as_policy(actions, mdp.n_actions))
        is_optimal = abs((visits * loss).sum() - best) < 1e-9
        assert face.contains(visits) == is_optimal
        if is_optimal:
            optimal.add(tuple(np.round(visits, 9).ravel()))
    listed = [tuple(np.round(vertex, 9).ravel()) for vertex in face.vertices()]
    assert len(listed) == len(set(listed))
    assert set(listed) == optimal
    # The dimension is that of the affine hull of the vertices.
    spread = np.array(listed) - np.array(listed[0])
    assert face.dimension == np.linalg.matrix_rank(spread, tol=1e-6)
    assert face.is_vertex == (len(listed) == 1)


@given(seeds)
@settings(max_examples=60)
def test_minimising_over_a_face_is_minimising_over_its_vertices(seed: int) -> None:
    problem = small_problem(seed)
    mdp = problem.mdp()
    face = nf.optimal_face(mdp, problem.losses[0])
    value, policy = face.minimise(problem.losses[1])
    over_vertices = min((vertex * problem.losses[1]).sum() for vertex in face.vertices())
    assert value == pytest.approx(over_vertices, abs=1e-9)
    visits = nf.occupancy(mdp, policy)
    assert face.contains(visits)
    assert (visits * problem.losses[1]).sum() == pytest.approx(value, abs=1e-9)


@given(seeds)
@settings(max_examples=60)
def test_faces_meet_when_they_share_a_vertex(seed: int) -> None:
    problem = small_problem(seed)
    mdp = problem.mdp()
    faces = [nf.optimal_face(mdp, loss) for loss in problem.losses]
    vertices = [{tuple(np.round(v, 9).ravel()) for v in face.vertices()} for face in faces]
    # Two faces of a polytope meet in a face, which has a vertex of both.
    assert faces[0].meets(faces[1]) == faces[1].meets(faces[0]) == bool(vertices[0] & vertices[1])
    assert all(face.meets(nf.whole_polytope(mdp)) for face in faces)


def test_a_face_contains_the_mixtures_of_its_policies(rng: np.random.Generator) -> None:
    problem = random_problem(rng)
    mdp = problem.mdp()
    face = nf.whole_polytope(mdp)
    vertices = list(face.vertices(limit=100_000))[:5]
    mixture = sum(vertices) / len(vertices)
    assert face.contains(mixture)
    assert not face.contains(mixture * 1.01)
    assert not face.contains(mixture - 0.1)
    assert not face.contains(np.full(mdp.shape, np.nan))


def test_equality_is_of_content() -> None:
    nexts = np.array([[0, 1], [1, 0]])
    loss = np.arange(8.0).reshape(2, 2, 2)
    left = nf.optimal_face(nf.MDP(nexts, 0, horizon=2), loss)
    right = nf.optimal_face(nf.MDP(nexts, 0, horizon=2), loss + 1.0)
    other = nf.optimal_face(nf.MDP(nexts, 1, horizon=2), loss)
    assert left == right
    assert hash(left) == hash(right)
    assert left != other
    assert left != "a face"


def test_vertices_are_refused_by_number_before_any_is_built(rng: np.random.Generator) -> None:
    mdp = nf.MDP(rng.dirichlet(np.ones(50), size=(50, 3)), 0, horizon=40)
    with pytest.raises(nf.InputError, match="vertices"):
        nf.whole_polytope(mdp).vertices()


def test_how_a_face_is_shown_and_drawn(rng: np.random.Generator) -> None:
    mdp = nf.MDP(rng.integers(0, 500, size=(100, 500, 3)), 0)
    whole = nf.whole_polytope(mdp)
    kept, reached = int(whole.mask.sum()), int(whole.reached.sum())
    assert repr(whole).startswith(f"Face(dimension={kept - reached}, kept_actions={kept}, reached_states=")
    assert len(repr(whole)) < 200
    assert f"<td>{kept:,}</td>" in whole._repr_html_()
    figure = whole.plot()
    axes = figure.axes[0]
    (image,) = axes.get_images()
    assert image.get_array().shape == (60, 60)
    assert axes.get_xlabel() == "step (40 more are not drawn)"
    assert axes.get_ylabel() == f"state ({int(whole.reached[:60].any(axis=0).sum()) - 60} more are not drawn)"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_picture_counts_kept_actions_where_the_face_is() -> None:
    labels = nf.Labels(states=("low", "high"))
    mdp = nf.MDP([[0, 1, 1], [1, 1, 1]], 0, horizon=2, labels=labels)
    axes = nf.optimal_face(mdp, [[[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]).plot().axes[0]
    (image,) = axes.get_images()
    np.testing.assert_array_equal(image.get_array().filled(0), [[2, 0], [0, 2]])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["low", "high"]


def test_long_horizons_exhaust_no_stack() -> None:
    horizon = 1200
    mdp = nf.MDP([[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.6, 0.4]]], initial=0, horizon=horizon)
    loss = np.zeros(mdp.shape)
    loss[:, :, 1] = 1.0
    loss[-1, 0, 1] = 0.0  # a tie at the end
    face = nf.optimal_face(mdp, loss)
    first, second = face.vertices()
    assert not np.array_equal(first, second)
    assert nf.detect(mdp, loss, loss).guaranteed


def test_a_face_is_canonical_and_leaves_no_policy_without_an_action() -> None:
    corridor = nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2)
    stay = np.zeros(corridor.shape, dtype=bool)
    stay[:, :, 0] = True  # in state 1 too, which is never reached
    assert nf.Face(corridor, stay).mask.tolist() == [[[True, False], [False, False]]] * 2
    stay[1, 0] = False
    check_refusal(lambda: nf.Face(corridor, stay), "mask[1, 0] keeps no action")
