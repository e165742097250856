"""Floors, optimism, trust regions, noise and records: batched runs do what single learners do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import entropic_step
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.learners import (
    Learner,
    MirrorDescent,
    OptimisticMirrorDescent,
    ThresholdedMirrorDescent,
    TrustRegion,
)
from normalfan.problem.losses import ArrayLosses
from normalfan_paper.bounds.splitting import policy_backup
from normalfan_paper.environments.gridworlds import gridworld
from normalfan_paper.simulation import (
    MirrorSetting,
    TrustSetting,
    record_mirror_descent,
    simulate_combination,
    simulate_mirror_descent,
    simulate_noisy_mirror_descent,
    simulate_trust_region,
)

seeds = st.integers(0, 2**32 - 1)
SETTINGS = [
    MirrorSetting(0.6, floor=1e-3),
    MirrorSetting(0.3, optimistic=True),
    MirrorSetting(20.0, floor=1e-2),
    MirrorSetting(0.6, threshold=0.1, penalty=0.7, floor=1e-3),
    MirrorSetting(0.6),
    MirrorSetting(1.5, optimistic=True, floor=1e-2),
    MirrorSetting(0.4, threshold=0.5, penalty=0.35, penalty_inside_step=True, floor=0.05),
    MirrorSetting(0.5, driven_by="optimal", floor=1e-3),
    MirrorSetting(0.5, driven_by="optimal"),
    MirrorSetting(0.5, threshold=0.1, penalty=1.0, driven_by="optimal"),
]


class DrivenByAdvantages:
    """Mirror descent on the optimal advantages of the last loss, in NumPy."""

    def __init__(self, mdp: nf.MDP, setting: MirrorSetting) -> None:
        self.mdp, self.setting = mdp, setting
        self.logs = np.full(mdp.shape, -np.log(mdp.n_actions))

    def act(self, round: int) -> np.ndarray:
        return np.exp(self.logs)

    def observe(self, round: int, loss: np.ndarray) -> None:
        backup = optimal_backup(self.mdp, loss)
        slack = DEFAULT_TIES.allowance(backup.values, self.mdp.reachable)[:, :, None]
        far = backup.advantages > self.setting.threshold + slack
        costs = self.setting.eta * backup.advantages + self.setting.charge * far
        self.logs = entropic_step(self.logs, costs, self.setting.floor)


def learner_of(mdp: nf.MDP, setting: MirrorSetting) -> Learner:
    if setting.driven_by == "optimal":
        return DrivenByAdvantages(mdp, setting)
    if setting.optimistic:
        return OptimisticMirrorDescent(mdp, setting.eta, floor=setting.floor)
    if setting.threshold == np.inf:
        return MirrorDescent(mdp, setting.eta, floor=setting.floor)
    return ThresholdedMirrorDescent(
        mdp,
        setting.eta,
        threshold=setting.threshold,
        penalty=setting.penalty,
        penalty_inside_step=setting.penalty_inside_step,
        floor=setting.floor,
    )


def played(learner: Learner, losses: np.ndarray) -> list[np.ndarray]:
    policies = []
    for t, loss in enumerate(losses):
        policies.append(np.array(learner.act(t)))
        learner.observe(t, loss)
    return policies


def paid(learner: Learner, seen: np.ndarray, judged: np.ndarray | None = None) -> np.ndarray:
    mdp, means = learner.mdp, seen if judged is None else judged
    policies = played(learner, seen)
    values = [policy_backup(mdp, p, loss)[0] for p, loss in zip(policies, means, strict=True)]
    return np.array([mdp.initial @ value[0] for value in values])


def deterministic_problem(seed: int, rounds: int = 8) -> tuple[nf.MDP, np.ndarray]:
    problem = random_problem(np.random.default_rng(seed), rounds=rounds)
    mdp = nf.MDP(problem.counts.argmax(axis=-1), problem.start / problem.start.sum())
    return mdp, problem.losses.astype(float)


@settings(max_examples=40)
@given(seeds)
def test_every_mode_pays_what_its_learner_pays(seed: int) -> None:
    mdp, losses = deterministic_problem(seed)
    expected = [paid(learner_of(mdp, setting), losses) for setting in SETTINGS]
    np.testing.assert_allclose(simulate_mirror_descent(mdp, losses, SETTINGS), expected, 1e-11, 1e-11)


@settings(max_examples=30)
@given(seeds)
def test_noisy_runs_are_judged_on_the_mean(seed: int) -> None:
    mdp, means = deterministic_problem(seed)
    seen = means + 0.3 * np.random.default_rng(seed).standard_normal(means.shape)
    expected = [paid(learner_of(mdp, setting), seen, means) for setting in SETTINGS]
    found = simulate_mirror_descent(mdp, seen, SETTINGS, judged=means)
    np.testing.assert_allclose(found, expected, 1e-11, 1e-11)
    judged, apparent = simulate_noisy_mirror_descent(mdp, seen, SETTINGS, judged=means)
    np.testing.assert_array_equal(judged, found)
    np.testing.assert_allclose(apparent, simulate_mirror_descent(mdp, seen, SETTINGS), 1e-12, 1e-12)


@settings(max_examples=30)
@given(seeds, st.booleans())
def test_a_record_is_the_occupancy_of_the_play(seed: int, noisy: bool) -> None:
    mdp, means = deterministic_problem(seed, rounds=5)
    seen = means + 0.3 * np.random.default_rng(seed).standard_normal(means.shape) if noisy else means
    record = record_mirror_descent(mdp, seen, SETTINGS, judged=means if noisy else None, wall=1.0)
    np.testing.assert_array_equal(
        record.paid, simulate_mirror_descent(mdp, seen, SETTINGS, judged=means if noisy else None)
    )
    for i, setting in enumerate(SETTINGS):
        for t, policy in enumerate(played(learner_of(mdp, setting), seen)):
            visits, backup = nf.occupancy(mdp, policy), optimal_backup(mdp, means[t])
            slack = DEFAULT_TIES.allowance(backup.values, mdp.reachable)[:, :, None]
            close = backup.advantages <= 1.0 + slack
            near = close & (backup.advantages > slack)
            regret = (visits * backup.advantages).sum(axis=(1, 2))
            np.testing.assert_allclose(record.regret_by_step[i, t], regret, 1e-10, 1e-10)
            np.testing.assert_allclose(record.near_walls[i, t], visits[near].sum(), 1e-10, 1e-10)
            np.testing.assert_allclose(record.near_optimal[i, t], visits[close].sum(), 1e-10, 1e-10)
            thin = visits[near.any(axis=2)].sum()
            np.testing.assert_allclose(record.at_thin_states[i, t], thin, 1e-10, 1e-10)


def test_recorded_regret_sums_to_regret(rng: np.random.Generator) -> None:
    mdp = gridworld(5, 7, (2, 2))
    losses = rng.random((30, *mdp.shape))
    record = record_mirror_descent(mdp, losses, SETTINGS, threads=2)
    regret = record.paid - nf.price_stream(mdp, losses).values
    np.testing.assert_allclose(record.regret_by_step.sum(axis=2), regret, 1e-10, 1e-12)


def test_losses_shared_by_all_steps_are_not_expanded(rng: np.random.Generator) -> None:
    mdp = gridworld(4, 6, (1, 2))
    shared = rng.random((20, mdp.n_states, mdp.n_actions))
    whole = np.repeat(shared[:, None], mdp.horizon, axis=1)
    stream = ArrayLosses(shared, axes="TSA")
    np.testing.assert_array_equal(
        simulate_mirror_descent(mdp, stream, SETTINGS), simulate_mirror_descent(mdp, whole, SETTINGS)
    )
    for judged in (ArrayLosses(shared[::-1], axes="TSA"), whole[::-1]):
        np.testing.assert_array_equal(
            simulate_mirror_descent(mdp, stream, SETTINGS, judged=judged),
            simulate_mirror_descent(mdp, whole, SETTINGS, judged=whole[::-1]),
        )
    trust = [TrustSetting(1e-3, kind="average")]
    np.testing.assert_array_equal(
        simulate_trust_region(mdp, stream, trust), simulate_trust_region(mdp, whole, trust)
    )


def test_company_and_threads_change_no_bit(rng: np.random.Generator) -> None:
    mdp = gridworld(3, 4)
    losses = rng.random((9, *mdp.shape))
    whole = simulate_mirror_descent(mdp, losses, SETTINGS)
    for threads in (2, 5):
        np.testing.assert_array_equal(simulate_mirror_descent(mdp, losses, SETTINGS, threads=threads), whole)
    for k, setting in enumerate(SETTINGS):
        np.testing.assert_array_equal(simulate_mirror_descent(mdp, losses, [setting])[0], whole[k])


# --- trust regions ----------------------------------------------------------------------------

TRUST = [
    TrustSetting(1e-3),
    TrustSetting(1e-2, eta=0.6),
    TrustSetting(1e-3, kind="trajectory"),
    TrustSetting(1e-3, radius=1.0, kind="average"),
    TrustSetting(1e-2, eta=40.0, radius=0.01),
    TrustSetting(1e-3, eta=2.0, kind="trajectory"),
    TrustSetting(1e-3, kind="average"),
    TrustSetting(1e-3, direction="old from new"),
    TrustSetting(1e-2, eta=0.6, direction="old from new"),
    TrustSetting(1e-3, kind="trajectory", direction="old from new"),
    TrustSetting(1e-3, radius=1.0, kind="average", direction="old from new"),
]


def trust_learner(mdp: nf.MDP, setting: TrustSetting) -> TrustRegion:
    options = {name: getattr(setting, name) for name in ("radius", "kind", "direction", "floor")}
    return TrustRegion(mdp, setting.eta, **options)


@settings(max_examples=40)
@given(seeds)
def test_the_trust_region_pays_what_its_learner_pays(seed: int) -> None:
    mdp, losses = deterministic_problem(seed)
    expected = [paid(trust_learner(mdp, setting), losses) for setting in TRUST]
    np.testing.assert_allclose(simulate_trust_region(mdp, losses, TRUST), expected, 1e-9, 1e-9)


def test_trust_regions_on_losses_of_their_own(rng: np.random.Generator) -> None:
    mdp = gridworld(4, 5, (1, 1))
    runs = [TRUST[k % len(TRUST)] for k in range(11)]
    losses = rng.random((11, 25, *mdp.shape))
    expected = [paid(trust_learner(mdp, run), own) for run, own in zip(runs, losses, strict=True)]
    whole = simulate_trust_region(mdp, losses, runs)
    np.testing.assert_allclose(whole, expected, 1e-9)
    np.testing.assert_array_equal(simulate_trust_region(mdp, losses, runs, threads=3), whole)
    np.testing.assert_array_equal(simulate_trust_region(mdp, np.asfortranarray(losses), runs), whole)
    same = [TRUST[0]] * 11
    alone = [simulate_trust_region(mdp, own, [TRUST[0]])[0] for own in losses]
    np.testing.assert_array_equal(simulate_trust_region(mdp, losses, same), alone)


# --- the edge -----------------------------------------------------------------------------------

GRID = gridworld(3, 4)
ZEROS = np.zeros((2, *GRID.shape))
COIN = nf.MDP(np.full((2, 1, 2), 0.5), 0, horizon=2)
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "driver": (lambda: MirrorSetting(1.0, driven_by="hope"), "'hope'"),  # type: ignore[arg-type]
    "two ideas": (lambda: MirrorSetting(1.0, threshold=0.1, optimistic=True), "optimistic"),
    "negative floor": (lambda: MirrorSetting(1.0, floor=-0.1), "MirrorSetting.floor is -0.1"),
    "high floor": (
        lambda: simulate_mirror_descent(GRID, ZEROS, [MirrorSetting(1.0, floor=0.2)]),
        "floor is 0.2",
    ),
    "fewer judged": (
        lambda: simulate_mirror_descent(GRID, ZEROS, [MirrorSetting(1.0)], judged=ZEROS[:1]),
        "judged has 1 rounds",
    ),
    "wall": (lambda: record_mirror_descent(GRID, ZEROS, [MirrorSetting(1.0)], wall=-1), "wall is -1"),
    "no floor": (lambda: TrustSetting(0.0), "TrustSetting.floor is 0"),
    "radius": (lambda: TrustSetting(0.1, radius=0), "TrustSetting.radius is 0"),
    "kind": (lambda: TrustSetting(0.1, kind="square"), "'square'"),  # type: ignore[arg-type]
    "direction": (lambda: TrustSetting(0.1, direction="up"), "'up'"),  # type: ignore[arg-type]
    "chance": (lambda: simulate_trust_region(COIN, np.zeros((1, 2, 2, 1)), [TRUST[0]]), "dense transitions"),
    "members": (
        lambda: simulate_combination(np.zeros((2, 3)), np.zeros((2, 4))),
        "judged has shape [2, 4]",
    ),
    "streams": (lambda: simulate_trust_region(GRID, ZEROS[None], [TRUST[0]] * 2), "[1, 2, 4, 9, 5]"),
    "no run": (lambda: simulate_trust_region(GRID, ZEROS, []), "no run"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])
