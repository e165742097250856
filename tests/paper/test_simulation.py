"""Runs simulated together pay what the learners pay one at a time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import bandit, paid
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan._kernels.compiling import Announcer
from normalfan.learners import Hedge, Learner, MirrorDescent, ThresholdedMirrorDescent
from normalfan_paper._kernels.hedge_lanes import hedge_kernel
from normalfan_paper.environments.gridworlds import gridworld
from normalfan_paper.simulation import MirrorSetting, simulate_hedge, simulate_mirror_descent

seeds = st.integers(0, 2**32 - 1)
SETTINGS = [
    MirrorSetting(0.3),
    MirrorSetting(1.0),
    MirrorSetting(0.3, threshold=0.1, penalty=0.35),
    MirrorSetting(0.04, threshold=0.0, penalty=0.7),
    MirrorSetting(0.6, threshold=1.0, penalty=2.0, penalty_inside_step=True),
    MirrorSetting(0.2, threshold=0.5, penalty=0.0),
]


def learner_of(mdp: nf.MDP, setting: MirrorSetting) -> Learner:
    if setting.threshold == np.inf:
        return MirrorDescent(mdp, setting.eta)
    return ThresholdedMirrorDescent(
        mdp,
        setting.eta,
        threshold=setting.threshold,
        penalty=setting.penalty,
        penalty_inside_step=setting.penalty_inside_step,
    )


def check_mirror(mdp: nf.MDP, losses: np.ndarray, runs: list[MirrorSetting] = SETTINGS) -> None:
    expected = np.array([paid(learner_of(mdp, setting), losses) for setting in runs])
    # Losses of both signs may sum to 0: their size is what rounding is relative to.
    slack = 1e-12 * mdp.horizon * np.abs(losses).max()
    np.testing.assert_allclose(simulate_mirror_descent(mdp, losses, runs), expected, 1e-12, slack)


# --- Hedge ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n_arms", "n_runs"), [(1, 1), (2, 3), (5, 8), (128, 9), (7, 20)])
def test_hedge_pays_what_the_learner_pays(n_arms: int, n_runs: int, rng: np.random.Generator) -> None:
    mdp, etas = bandit(n_arms), np.geomspace(0.04, 1, n_runs)
    losses = rng.random((40, *mdp.shape)).round(1)
    expected = [paid(Hedge(mdp, eta), losses) for eta in etas]
    np.testing.assert_allclose(simulate_hedge(mdp, losses, etas), expected, 1e-12)


@pytest.mark.parametrize(("n_arms", "n_runs"), [(1, 1), (3, 8), (6, 11), (9, 16)])
def test_hedge_on_streams_of_its_own(n_arms: int, n_runs: int, rng: np.random.Generator) -> None:
    mdp, etas = bandit(n_arms), np.geomspace(0.04, 1, n_runs)
    losses = rng.random((n_runs, 40, *mdp.shape)) - 0.5
    expected = [paid(Hedge(mdp, eta), own) for eta, own in zip(etas, losses, strict=True)]
    for layout in (losses, np.asfortranarray(losses), losses[:, ::-1][:, ::-1]):
        np.testing.assert_allclose(simulate_hedge(mdp, layout, etas), expected, 1e-12, 1e-13)
    single = [simulate_hedge(mdp, own, [eta])[0] for eta, own in zip(etas, losses, strict=True)]
    np.testing.assert_allclose(single, expected, 1e-12, 1e-13)


@pytest.mark.parametrize(("lead", "tolerance"), [(0.0, 1e-12), (0.2, 1e-11)])
def test_hedge_stays_exact_on_long_streams(lead: float, tolerance: float, rng: np.random.Generator) -> None:
    mdp, etas = bandit(16), [0.04, 0.3, 1.0]
    losses = rng.random((5000, *mdp.shape))
    # One arm leads until another catches up: logs near -500 come back, for the learner too with 1e-12 lost.
    losses[:2500, ..., 3] -= lead
    losses[2500:, ..., 5] -= lead
    expected = [paid(Hedge(mdp, eta), losses) for eta in etas]
    np.testing.assert_allclose(simulate_hedge(mdp, losses, etas), expected, tolerance)
    np.testing.assert_allclose(simulate_hedge(mdp, np.stack([losses] * 3), etas), expected, tolerance)


def test_hedge_learns_again_what_has_underflowed() -> None:
    losses = np.zeros((6, 1, 1, 2))
    losses[:3, ..., 1] = 1000.0
    losses[3:, ..., 0] = 1000.0
    expected = paid(Hedge(bandit(2), 1.0), losses)
    np.testing.assert_allclose(simulate_hedge(bandit(2), losses, [1.0])[0], expected, 1e-12)


def test_large_losses_leave_the_weights_their_digits(rng: np.random.Generator) -> None:
    losses = 2.0**30 + rng.integers(0, 4, (50, 1, 1, 5)) / 2
    near_zero = simulate_hedge(bandit(5), losses - 2.0**30, [0.3])
    np.testing.assert_allclose(simulate_hedge(bandit(5), losses, [0.3]) - 2.0**30, near_zero, 0, 1e-6)


# --- mirror descent -----------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds)
def test_mirror_descent_pays_what_the_learner_pays(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed), rounds=8)
    nexts = problem.counts.argmax(axis=-1)
    mdp = nf.MDP(nexts, problem.start / problem.start.sum())
    check_mirror(mdp, problem.losses.astype(float))


@pytest.mark.parametrize("n_runs", [1, 7, 8, 17])
def test_mirror_descent_on_a_grid(n_runs: int, rng: np.random.Generator) -> None:
    mdp = gridworld(4, 6)
    runs = [MirrorSetting(eta, 0.1 * (k % 3), 0.35) for k, eta in enumerate(np.geomspace(0.04, 1, n_runs))]
    check_mirror(mdp, rng.random((12, *mdp.shape)), runs)


def test_mirror_descent_stays_exact_on_long_streams(rng: np.random.Generator) -> None:
    mdp = nf.MDP([[0, 1, 2], [1, 2, 0], [2, 2, 1]], initial=0, horizon=3)
    losses = rng.random((2000, *mdp.shape))
    check_mirror(mdp, losses)
    drift = np.sin(np.arange(len(losses)) / 200)[:, None, None, None] * rng.standard_normal(mdp.shape)
    check_mirror(mdp, losses + drift, [MirrorSetting(0.3), MirrorSetting(0.2, threshold=0.1, penalty=0.01)])


def test_one_state_is_hedge(rng: np.random.Generator) -> None:
    mdp, losses = bandit(6), rng.random((30, 1, 1, 6))
    mirror = simulate_mirror_descent(mdp, losses, [MirrorSetting(0.3)])
    np.testing.assert_allclose(mirror, simulate_hedge(mdp, losses, [0.3]), 1e-13)


# --- the edge -----------------------------------------------------------------------------


def test_neither_padding_nor_threads_nor_company_change_a_bit(rng: np.random.Generator) -> None:
    arms, grid = bandit(5), gridworld(3, 4)
    etas = np.geomspace(0.04, 1, 21)
    shared, own = rng.random((9, *arms.shape)), rng.random((21, 9, *arms.shape))
    runs = [MirrorSetting(eta, 0.1, 0.5) for eta in etas]
    losses = rng.random((9, *grid.shape))
    sweeps: list[tuple[Callable[[int], np.ndarray], Callable[[int], np.ndarray]]] = [
        (
            lambda threads: simulate_hedge(arms, shared, etas, threads=threads),
            lambda k: simulate_hedge(arms, shared, etas[k : k + 1]),
        ),
        (
            lambda threads: simulate_hedge(arms, own, etas, threads=threads),
            lambda k: simulate_hedge(arms, own[k : k + 1], etas[k : k + 1]),
        ),
        (
            lambda threads: simulate_mirror_descent(grid, losses, runs, threads=threads),
            lambda k: simulate_mirror_descent(grid, losses, runs[k : k + 1]),
        ),
    ]
    for together, alone in sweeps:
        whole = together(1)
        assert whole.shape == (21, 9)
        assert not whole.flags.writeable
        for threads in (2, 3, 50):
            np.testing.assert_array_equal(together(threads), whole)
        np.testing.assert_array_equal(np.concatenate([alone(k) for k in range(21)]), whole)


def test_compiling_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    listener = Announcer()
    for function in (np.mean, hedge_kernel.py_func, hedge_kernel.py_func):
        listener.on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}))
    assert capsys.readouterr().err.count("compiling its kernels") == 1


def test_losses_may_be_any_stream(rng: np.random.Generator) -> None:
    mdp = gridworld(3, 4)
    losses = rng.random((5, *mdp.shape))
    expected = simulate_mirror_descent(mdp, losses, SETTINGS)
    for stream in (iter(losses), nf.rewards(-losses), np.moveaxis(np.moveaxis(losses, 0, 1).copy(), 1, 0)):
        np.testing.assert_array_equal(simulate_mirror_descent(mdp, stream, SETTINGS), expected)


GRID, ARMS = gridworld(3, 4), bandit(2)
COIN = nf.MDP(np.full((2, 1, 2), 0.5), 0, horizon=2)
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "more than one state": (lambda: simulate_hedge(GRID, np.zeros((2, *GRID.shape)), [1.0]), "9 states"),
    "chance": (lambda: simulate_mirror_descent(COIN, np.zeros((1, 2, 2, 1)), SETTINGS), "dense transitions"),
    "no round": (lambda: simulate_hedge(ARMS, np.zeros((0, 1, 1, 2)), [1.0]), "no round"),
    "no round of its own": (
        lambda: simulate_hedge(ARMS, np.zeros((1, 0, 1, 1, 2)), [1.0]),
        "[1, 0, 1, 1, 2]",
    ),
    "streams and steps": (lambda: simulate_hedge(ARMS, np.zeros((3, 1, 1, 1, 2)), [1.0]), "[3, 1, 1, 1, 2]"),
    "wrong shape": (lambda: simulate_mirror_descent(GRID, np.zeros((2, 4, 9)), SETTINGS), "[2, 4, 9]"),
    "nan": (lambda: simulate_hedge(ARMS, np.array([[[[0.0, np.nan]]]]), [1.0]), "[0, 0, 0, 1]"),
    "own nan": (lambda: simulate_hedge(ARMS, np.array([[[[[0.0, np.nan]]]]]), [1.0]), "[0, 0, 0, 0, 1]"),
    "no setting": (lambda: simulate_mirror_descent(GRID, np.zeros((2, *GRID.shape)), []), "no run"),
    "no step size": (lambda: simulate_hedge(ARMS, np.zeros((2, 1, 1, 2)), []), "no run"),
    "negative step": (lambda: simulate_hedge(ARMS, np.zeros((2, 1, 1, 2)), [1.0, -1.0]), "etas[1] is -1"),
    "bad eta": (lambda: MirrorSetting(np.inf), "MirrorSetting.eta is inf"),
    "bad threshold": (lambda: MirrorSetting(1.0, threshold=np.nan), "MirrorSetting.threshold is nan"),
    "bad penalty": (lambda: MirrorSetting(1.0, penalty=-1.0), "MirrorSetting.penalty is -1"),
    "no thread": (lambda: simulate_hedge(ARMS, np.zeros((2, 1, 1, 2)), [1.0], threads=0), "threads is 0"),
    "overflow": (
        lambda: simulate_mirror_descent(GRID, np.full((1, *GRID.shape), 1e308), SETTINGS),
        "round 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])
