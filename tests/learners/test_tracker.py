"""The tracker with every selector: it plays on the face, and its regret splits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from problems import Problem, random_problem

from normalfan import MDP, InputError, TieRule, learners, optimal_face
from normalfan.learners.learner import Clairvoyant, ExponentialAverage
from normalfan.learners.selectors import (
    FaceTracker,
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    Selector,
)
from normalfan.regret import decompose, run
from normalfan_paper import learners as paper_learners
from normalfan_paper.learners import StickyEntropy, StickyEuclidean

SELECTORS: dict[str, Callable[[], Selector]] = {
    "Oracle": Oracle,
    "Predictive": lambda: Predictive(ExponentialAverage(0.4)),
    "StickyEntropy": lambda: StickyEntropy(ExponentialAverage(0.4), weight=0.3),
    "StickyEuclidean": lambda: StickyEuclidean(ExponentialAverage(0.4), weight=0.3),
    "Lexicographic": Lexicographic,
    "RandomVertex": lambda: RandomVertex(rng=np.random.default_rng(1)),
    "RandomPoint": lambda: RandomPoint(rng=np.random.default_rng(2)),
}


def test_every_selector_of_the_product_and_the_paper_is_tried() -> None:
    packages = (learners, paper_learners)
    public = {name: getattr(package, name) for package in packages for name in package.__all__}
    assert {name for name, member in public.items() if hasattr(member, "select")} == {*SELECTORS, "Selector"}


def problems(seed: int, count: int, **settings: int) -> Iterator[Problem]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield random_problem(rng, **settings)


@pytest.mark.parametrize("name", SELECTORS)
def test_plays_lie_on_the_face_and_regret_splits(name: str) -> None:
    degenerate = erring = 0
    for problem in problems(5, 60, rounds=6):
        mdp = problem.mdp()
        log = run(mdp, FaceTracker(mdp, SELECTORS[name]()), problem.losses, keep="occupancies")
        split = decompose(log)
        assert split.exact
        # The regret from raw values, the other two from advantages: three formulas, one identity.
        raw = (log.plays * problem.losses).sum(axis=(1, 2, 3)) - log.values
        np.testing.assert_allclose(raw[1:], (split.price + split.selection)[1:], rtol=0, atol=1e-12)
        np.testing.assert_allclose(split.residual, 0.0, rtol=0, atol=1e-12)
        assert (split.selection >= 0.0).all()
        for t in range(1, len(problem.losses)):
            face = optimal_face(mdp, problem.losses[t - 1])
            assert face.contains(log.plays[t], tolerance=1e-12)
            degenerate += not face.is_vertex
            erring += split.selection[t] > 1e-6
    assert degenerate > 100
    assert (erring > 20) == (name != "Oracle")


@pytest.mark.parametrize("name", SELECTORS)
def test_policies_follow_the_plan_where_the_face_never_is(name: str) -> None:
    elsewhere = 0
    for problem in problems(6, 30, rounds=4):
        mdp = problem.mdp()
        plays = run(mdp, FaceTracker(mdp, SELECTORS[name]()), problem.losses, keep="policies").plays
        assert plays is not None
        np.testing.assert_array_equal(plays[0], 1.0 / mdp.n_actions)
        for t in range(1, len(plays)):
            face = optimal_face(mdp, problem.losses[t - 1])
            off = ~face.reached
            if name in ("Oracle", "StickyEntropy"):  # which know of no way there
                np.testing.assert_array_equal(plays[t][off], 1.0 / mdp.n_actions)
            else:
                assert not plays[t][~face.plan & off[:, :, None]].any()
            elsewhere += off.sum()
    assert elsewhere > 100


def test_a_tracker_is_clairvoyant_exactly_when_its_selector_is() -> None:
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    for name, build in SELECTORS.items():
        tracker = FaceTracker(mdp, build())
        assert isinstance(tracker, Clairvoyant) == (name == "Oracle")
        twin = copy.deepcopy(tracker)
        if isinstance(twin, Clairvoyant):
            twin.foresee(np.zeros(mdp.shape))
            twin.observe(0, np.zeros(mdp.shape))  # forgets what it foresaw
            with pytest.raises(InputError, match="not shown the coming loss"):
                twin.act(1)


def test_asked_twice_a_tracker_answers_the_same_and_then_draws_afresh() -> None:
    mdp = MDP(np.zeros((1, 50), dtype=int), 0, horizon=1)
    tracker = FaceTracker(mdp, RandomPoint(rng=np.random.default_rng(0)))
    draws = []
    for t in range(3):
        tracker.observe(t, np.zeros(mdp.shape))
        draws.append(tracker.act(t + 1))
        np.testing.assert_array_equal(tracker.act(t + 1), draws[-1])
        assert not draws[-1].flags.writeable
    assert len({draw.tobytes() for draw in draws}) == 3


def test_the_tracker_obeys_its_tie_rule() -> None:
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    loss = np.array([[[0.01, 0.0]]])
    plain, lenient = FaceTracker(mdp), FaceTracker(mdp, ties=TieRule(absolute=0.1))
    for tracker in (plain, lenient):
        tracker.observe(0, loss)
    assert plain.act(1).tolist() == [[[0.0, 1.0]]]
    assert lenient.act(1).tolist() == [[[1.0, 0.0]]]
