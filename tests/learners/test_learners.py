"""What every learner promises, tried on each public class of the product and of the paper's companion.

Classes are discovered; `OPTIONS` adds settings of them that are worth trying as well.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Problem, random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan import learners
from normalfan.learners.learner import Clairvoyant, Learner
from normalfan.learners.mirror import project_onto_simplex
from normalfan_paper import learners as paper_learners

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)


def waning(round: int) -> float:
    return 1.0 / (1 + round)


def mean_of_history(history: list[np.ndarray]) -> np.ndarray:
    return np.mean(history, axis=0)


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "Hedge": [{"eta": waning}, {"floor": 0.01}],
    "OptimisticHedge": [{"eta": waning, "model": mean_of_history}, {"floor": 0.01}],
    "FixedShare": [{"eta": waning, "share": 0.5}],
    "EuclideanMirrorDescent": [{"eta": waning}],
    "MirrorDescent": [{"eta": waning}, {"floor": 0.01}, {"visit_weighted": True}],
    "OptimisticMirrorDescent": [
        {"eta": waning, "model": mean_of_history},
        {"floor": 0.01, "model": learners.ExponentialAverage(0.25)},
    ],
    "TrustRegion": [
        {"kind": "average"},
        {"kind": "trajectory", "eta": waning},
        {"eta": np.inf},
        {"eta": np.inf, "kind": "trajectory"},
        {"eta": np.inf, "floor": 0.01},
        {"direction": "old from new"},
        {"direction": "old from new", "eta": np.inf, "kind": "trajectory"},
    ],
    "ThresholdedMirrorDescent": [
        {"eta": waning, "penalty_inside_step": True, "model": mean_of_history},
        {"floor": 0.01, "threshold": 0.0},
    ],
    "OReps": [{"eta": waning}, {"floor": 0.01}],
}

PUBLIC = {
    name: cls
    for package in (learners, paper_learners)
    for name in package.__all__
    if inspect.isclass(cls := getattr(package, name))
    and {"act", "observe"} <= set(dir(cls))
    and not getattr(cls, "_is_protocol", False)
}


def combined(mdp: nf.MDP, **options: Any) -> learners.Combined:
    """A combination is built of learners, not of a problem."""
    members = [learners.FaceTracker(mdp), learners.MirrorDescent(mdp), learners.TrustRegion(mdp, floor=0.01)]
    return learners.Combined(members[: 3 if mdp.horizon > 1 else 2], **options)


PUBLIC["Combined"] = combined
Make = Callable[[nf.MDP], Any]
SETTINGS: dict[str, Make] = PUBLIC | {
    f"{name} {i}: {' '.join(options)}": partial(PUBLIC[name], **options)
    for name, many in OPTIONS.items()
    for i, options in enumerate(many)
}
SETTINGS["Combined 0: share"] = partial(combined, share=0.1)
every_setting = pytest.mark.parametrize("make", SETTINGS.values(), ids=SETTINGS)


def needs_one_state(make: Make) -> bool:
    try:
        make(nf.MDP([[0, 0], [1, 1]], 0, horizon=2))
    except nf.InputError:
        return True
    return False


def a_problem(make: Make, seed: int, rounds: int = 6) -> Problem:
    rng = np.random.default_rng(seed)
    if needs_one_state(make):
        arms = int(rng.integers(1, 6))
        losses = rng.integers(-1, 3, size=(rounds, 1, 1, arms))
        return Problem(np.ones((1, 1, arms, 1), dtype=np.int64), np.ones(1, dtype=np.int64), losses)
    return random_problem(rng, rounds=rounds)


def run(learner: Learner, losses: np.ndarray, first: int = 0) -> list[np.ndarray]:
    plays = []
    for t, loss in enumerate(losses, start=first):
        if isinstance(learner, Clairvoyant):
            learner.foresee(loss)
        plays.append(learner.act(t))
        learner.observe(t, loss)
    return plays


def check_policies(mdp: nf.MDP, plays: list[np.ndarray]) -> None:
    for play in plays:
        assert play.shape == mdp.shape
        assert play.dtype == np.float64
        assert not play.flags.writeable
        assert play.min() >= 0
        np.testing.assert_allclose(play.sum(axis=2), 1.0, rtol=0, atol=1e-12)


def test_discovery_finds_all() -> None:
    assert set(OPTIONS) <= set(PUBLIC)


@every_setting
@few
@given(seed=seeds)
def test_plays_are_policies_and_losses_stay_as_they_were(make: Make, seed: int) -> None:
    problem = a_problem(make, seed)
    for kind in problem.kinds():
        learner = make(problem.mdp(kind))
        assert isinstance(learner, Learner)
        losses = problem.losses / 2
        before = losses.copy()
        losses.flags.writeable = False
        check_policies(learner.mdp, run(learner, losses))
        np.testing.assert_array_equal(losses, before)


@every_setting
@few
@given(seed=seeds)
def test_a_later_change_of_the_loss_array_changes_nothing(make: Make, seed: int) -> None:
    problem = a_problem(make, seed)
    buffer, reused = np.empty(problem.shape), make(problem.mdp())
    plays = []
    for t, loss in enumerate(problem.losses):
        buffer[:] = loss
        if isinstance(reused, Clairvoyant):
            reused.foresee(buffer)
        plays.append(reused.act(t))
        reused.observe(t, buffer)
        buffer[:] = np.nan
    np.testing.assert_array_equal(plays, run(make(problem.mdp()), problem.losses.astype(float)))


@every_setting
@few
@given(seed=seeds, stop=st.integers(0, 5))
def test_runs_repeat_and_survive_pickling(make: Make, seed: int, stop: int) -> None:
    problem = a_problem(make, seed)
    plays = run(make(problem.mdp()), problem.losses)
    interrupted = make(problem.mdp())
    first = run(interrupted, problem.losses[:stop])
    resumed = pickle.loads(pickle.dumps(interrupted))  # noqa: S301
    np.testing.assert_array_equal(plays, first + run(resumed, problem.losses[stop:], first=stop))


@every_setting
@few
@given(seed=seeds)
def test_asked_twice_it_answers_the_same(make: Make, seed: int) -> None:
    problem = a_problem(make, seed)
    learner = make(problem.mdp())
    for t, loss in enumerate(problem.losses):
        if isinstance(learner, Clairvoyant):
            learner.foresee(loss)
        np.testing.assert_array_equal(learner.act(t), learner.act(t))
        learner.observe(t, loss)


@every_setting
@few
@given(seed=seeds, scale=st.sampled_from([1e-9, 1e6]))
def test_losses_of_any_size(make: Make, seed: int, scale: float) -> None:
    problem = a_problem(make, seed)
    learner = make(problem.mdp())
    check_policies(learner.mdp, run(learner, problem.losses * scale))


@pytest.mark.parametrize("name", OPTIONS)
@few
@given(seed=seeds)
def test_a_tiny_step_stays_at_the_uniform_policy_it_starts_from(name: str, seed: int) -> None:
    problem = a_problem(PUBLIC[name], seed)
    # A penalty outside the step size is not made small by it.
    options = {"penalty_inside_step": True} if name == "ThresholdedMirrorDescent" else {}
    plays = run(PUBLIC[name](problem.mdp(), eta=1e-12, **options), problem.losses)
    np.testing.assert_allclose(plays[0], 1 / problem.shape[2], rtol=1e-15)
    np.testing.assert_allclose(plays, np.broadcast_to(plays[0], np.shape(plays)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, many in OPTIONS.items() if {"floor": 0.01} in many])
def test_an_unlearned_action_comes_back_sooner_with_a_floor(name: str) -> None:
    mdp = nf.MDP([[0, 0]], 0, horizon=1)
    losses = np.zeros((140, 1, 1, 2))
    losses[:100, ..., 1] = losses[100:, ..., 0] = 1.0
    plain, floored = (run(PUBLIC[name](mdp, **o), losses)[-1][0, 0, 1] for o in ({}, {"floor": 0.01}))
    assert plain < 1e-3
    assert floored > 0.9


@pytest.mark.parametrize("name", ["Hedge", "OptimisticHedge", "MirrorDescent", "OptimisticMirrorDescent"])
@few
@given(seed=seeds)
def test_no_action_is_less_likely_than_the_floor(name: str, seed: int) -> None:
    problem = a_problem(PUBLIC[name], seed)
    plays = run(PUBLIC[name](problem.mdp(), eta=5.0, floor=0.05), problem.losses)
    assert np.min(plays) >= 0.05 * (1 - 1e-12)


@pytest.mark.parametrize("name", OPTIONS)
def test_what_was_observed_counts_whatever_the_number_of_the_round(name: str) -> None:
    learner = PUBLIC[name](nf.MDP([[0, 0]], 0, horizon=1))
    for _ in range(3):  # three streams of one round each, every one numbered 0
        before = learner.act(0)
        learner.observe(0, np.array([[[0.0, 0.1]]]))
        assert learner.act(0)[0, 0, 0] > before[0, 0, 0]


@every_setting
def test_a_repr_is_short_and_names_the_settings(make: Make) -> None:
    learner = make(nf.MDP([[0, 0]], 0, horizon=1))
    shown = repr(learner)
    assert len(shown) < 250
    assert "0x" not in shown
    for name in set(inspect.signature(type(learner)).parameters) - {"mdp"}:
        assert f"{name}=" in shown


def test_a_repr_can_be_read() -> None:
    assert repr(learners.OptimisticHedge(ARMS, waning)) == (
        "OptimisticHedge(eta=waning, model=LastLoss(), floor=0.0)"
    )
    assert repr(paper_learners.FixedShare(ARMS, 0.1)) == "FixedShare(eta=0.1, share=0.01)"
    assert repr(learners.ExponentialAverage(0.5)) == "ExponentialAverage(rate=0.5)"
    assert repr(learners.FaceTracker(ARMS)).startswith("FaceTracker(selector=Lexicographic(), ties=TieRule(")


ARMS = nf.MDP([[0, 0]], 0, horizon=1)
GRID = nf.MDP([[0, 1], [1, 1]], 0, horizon=2)


def wrong_model() -> None:
    learner = learners.OptimisticHedge(ARMS, model=lambda past: past[0][0])
    learner.observe(0, np.zeros((1, 1, 2)))
    learner.act(1)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "two states": (lambda: learners.Hedge(GRID), "2 steps and 2 states"),
    "two states, share": (lambda: paper_learners.FixedShare(GRID), "FixedShare"),
    "two states, optimistic": (lambda: learners.OptimisticHedge(GRID), "OptimisticHedge"),
    "two states, Euclidean": (lambda: learners.EuclideanMirrorDescent(GRID), "EuclideanMirrorDescent"),
    "eta 0": (lambda: learners.MirrorDescent(GRID, eta=0.0), "eta is 0"),
    "eta NaN": (lambda: paper_learners.OReps(GRID, eta=np.nan), "eta is nan"),
    "eta infinite": (lambda: learners.MirrorDescent(GRID, eta=np.inf), "eta is inf"),
    "a bad schedule": (
        lambda: learners.MirrorDescent(GRID, eta=lambda t: 3.0 - t).observe(3, np.zeros((2, 2, 2))),
        "eta(3) is 0",
    ),
    "floor too high": (lambda: learners.MirrorDescent(GRID, floor=0.5), "floor is 0.5"),
    "floor negative": (lambda: learners.Hedge(ARMS, floor=-0.1), "floor is -0.1"),
    "share of 1": (lambda: paper_learners.FixedShare(ARMS, share=1.0), "share is 1"),
    "rate 0": (lambda: learners.ExponentialAverage(0.0), "rate is 0"),
    "radius 0": (lambda: learners.TrustRegion(GRID, radius=0.0), "radius is 0"),
    "unknown kind": (lambda: learners.TrustRegion(GRID, kind="mean"), "'mean'"),  # type: ignore[arg-type]
    "unknown direction": (lambda: learners.TrustRegion(GRID, direction="up"), "'up'"),  # type: ignore[arg-type]
    "thresholds of another shape": (
        lambda: learners.ThresholdedMirrorDescent(GRID, threshold=[0.1, 0.2]),
        "threshold has shape [2]",
    ),
    "one threshold negative": (
        lambda: learners.ThresholdedMirrorDescent(GRID, threshold=-np.eye(2)[None].repeat(2, 0)),
        "threshold[0, 0, 0] is -1",
    ),
    "threshold negative": (lambda: learners.ThresholdedMirrorDescent(GRID, threshold=-1.0), "threshold"),
    "penalty infinite": (lambda: learners.ThresholdedMirrorDescent(GRID, penalty=np.inf), "penalty"),
    "tolerance 0": (lambda: paper_learners.OReps(GRID, tolerance=0.0), "tolerance"),
    "tolerance out of reach": (
        lambda: paper_learners.OReps(GRID, tolerance=1e-30).observe(0, np.arange(8.0).reshape(2, 2, 2) ** 2),
        "flow residual",
    ),
    "no model": (lambda: learners.OptimisticHedge(ARMS, model=3), "int"),  # type: ignore[arg-type]
    "a model of another shape": (wrong_model, "the model's prediction"),
    "an infinite point": (lambda: project_onto_simplex(np.array([0.0, np.inf])), "point[1]"),
    "loss of another shape": (lambda: learners.Hedge(ARMS).observe(0, np.zeros(2)), "[2]"),
    "NaN loss": (lambda: paper_learners.OReps(GRID).observe(0, np.full((2, 2, 2), np.nan)), "[0, 0, 0]"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_sentence(name: str) -> None:
    check_refusal(*BAD[name])
