"""Selectors against the list of a face's vertices, and the random ones against their means."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from faces import Constant, random_faces, random_policy
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_problem

from normalfan import MDP, Face, occupancy
from normalfan.learners.learner import LastLoss
from normalfan.learners.selectors import (
    FaceTracker,
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    first_vertex,
    uniform_policy,
)
from normalfan.problem.mdp import follow
from normalfan.regret import run


def test_the_oracle_attains_the_least_loss_of_the_list() -> None:
    for face, rng in random_faces(1, 100):
        loss = rng.normal(size=face.mask.shape)
        oracle = Oracle()
        oracle.foresee(loss)
        mine = (occupancy(face.mdp, oracle.select(face, uniform_policy(face.mdp))) * loss).sum()
        assert mine == pytest.approx(min((v * loss).sum() for v in face.vertices()), abs=1e-12)


def test_the_predictive_choice_is_least_in_the_list_under_the_model() -> None:
    for face, rng in random_faces(2, 100):
        model = rng.normal(size=face.mask.shape)
        chosen = occupancy(face.mdp, Predictive(Constant(model)).select(face, uniform_policy(face.mdp)))
        assert (chosen * model).sum() == pytest.approx(
            min((v * model).sum() for v in face.vertices()), abs=1e-12
        )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_predicting_the_last_loss_is_the_lexicographic_rule(seed: int) -> None:
    """The last loss is constant on its own face: even rounding must not decide anything there."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=5)
    mdp = problem.mdp()
    losses = problem.losses * 0.1 + rng.normal()  # tenths do not add up exactly
    by_last = run(mdp, FaceTracker(mdp, Predictive(LastLoss())), losses, keep="policies").plays
    by_rule = run(mdp, FaceTracker(mdp, Lexicographic()), losses, keep="policies").plays
    np.testing.assert_array_equal(by_last, by_rule)


def test_lexicographic_takes_the_lowest_kept_action() -> None:
    for face, rng in random_faces(3, 50):
        policy = Lexicographic().select(face, random_policy(face, rng, sharp=False))
        for h, s in np.argwhere(face.reached):
            lowest = min(a for a in range(face.mdp.n_actions) if face.mask[h, s, a])
            assert policy[h, s].tolist() == [float(a == lowest) for a in range(face.mdp.n_actions)]
        np.testing.assert_array_equal(policy, first_vertex(face))


def two_layer_face() -> Face:
    """Action 0 leads to a state with two free actions, action 1 to one with none to choose."""
    mdp = MDP(np.array([[1, 2], [1, 1], [2, 2]]), 0, horizon=2)
    mask = np.ones(mdp.shape, dtype=bool)
    mask[1, 2, 1] = False
    return Face(mdp, follow(mdp, mask)[0])


def test_random_vertices_are_drawn_by_actions_not_by_vertices() -> None:
    face, draws = two_layer_face(), 4000
    selector = RandomVertex(rng=np.random.default_rng(0))
    assert len(list(face.vertices())) == 3
    drawn = Counter(
        occupancy(face.mdp, selector.select(face, uniform_policy(face.mdp))).tobytes() for _ in range(draws)
    )
    counts = sorted(count / draws for count in drawn.values())
    assert counts == pytest.approx([1 / 4, 1 / 4, 1 / 2], abs=0.03)  # not 1/3 each


def test_random_selectors_differ_but_have_the_same_mean() -> None:
    face, draws = two_layer_face(), 6000
    kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
    kept[~face.reached] = 0.5
    centre = occupancy(face.mdp, kept)
    spreads = {}
    for name, build in (("vertex", RandomVertex), ("point", RandomPoint)):
        selector = build(rng=np.random.default_rng(3))
        visits = [occupancy(face.mdp, selector.select(face, uniform_policy(face.mdp))) for _ in range(draws)]
        np.testing.assert_allclose(np.mean(visits, axis=0), centre, atol=0.03)
        spreads[name] = np.var(visits, axis=0)[0, 0, 0]
    assert spreads["vertex"] == pytest.approx(1 / 4, abs=0.02)  # a coin
    assert spreads["point"] == pytest.approx(1 / 12, abs=0.01)  # a uniform number
