"""Learners, monitors and detectors in dynamics that move."""

from __future__ import annotations

import numpy as np
import pytest
from moving import random_days

import normalfan as nf
from normalfan.geometry.bellman import optimal_backup, restricted_backup
from normalfan.learners import FaceTracker, Lexicographic, Oracle, Predictive, RandomPoint, RandomVertex

SELECTORS = [
    Lexicographic,
    Oracle,
    lambda: Predictive(None),
    lambda: RandomVertex(rng=np.random.default_rng(1)),
    lambda: RandomPoint(rng=np.random.default_rng(1)),
]


def stream(seed):
    days = random_days(seed, 12)
    return days, [day.mdp() for day in days], np.stack([day.loss for day in days])


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("seed", range(12))
def test_regret_is_price_plus_selection(seed, selector):
    days, problems, losses = stream(seed)
    tracker = FaceTracker(problems[0], selector())
    log = nf.run(problems, tracker, losses, dynamics_of_round=np.arange(12), keep="policies")
    split = nf.decompose(log)
    motion = nf.price_stream(zip(problems, losses, strict=True))
    assert split.exact
    assert np.array_equal(split.price, motion.prices)
    assert np.abs(split.residual).max() < 1e-12
    assert split.selection.min() > -1e-12
    for t, day in enumerate(days):
        paid = float((nf.occupancy(problems[t], log.plays[t]) * day.loss).sum())
        assert log.regrets[t] == pytest.approx(paid - day.paid.min(), abs=1e-12)
    if selector is Oracle:
        assert not split.selection.any()


def test_a_play_off_the_plan_is_flagged_also_where_the_old_dynamics_never_were():
    """Yesterday's face never is in state 1, where its plan is action 0: today's action 1 is off it."""
    stays, leaves = nf.MDP([[0, 0], [1, 1]], 0, horizon=2), nf.MDP([[1, 1], [1, 1]], 0, horizon=2)
    loss = np.zeros((2, 2, 2))
    loss[:, 1, 1] = 1.0

    class Stubborn(FaceTracker):
        def act(self, round):
            return np.broadcast_to([0.0, 1.0], (2, 2, 2))

    log = nf.run([stays, leaves], Stubborn(stays), np.stack([loss, loss]), dynamics_of_round=[0, 1])
    assert log.off_face_masses[1] == 1.0
    assert not log.on_face[1]


def test_a_learner_that_cannot_move_is_told_so():
    _, problems, losses = stream(3)
    hedge = nf.learners.MirrorDescent(problems[0])
    with pytest.raises(nf.InputError, match=r"MirrorDescent has no method move\(mdp\)"):
        nf.run(problems, hedge, losses, dynamics_of_round=np.arange(12))
    with pytest.raises(nf.InputError, match="dynamics_of_round is missing"):
        nf.run(problems, hedge, losses)
    with pytest.raises(nf.InputError, match="built for another problem"):
        nf.run(problems[1:2], nf.learners.FaceTracker(nf.MDP([[0]], 0, horizon=1)), losses[1:2])


@pytest.mark.parametrize("seed", range(8))
def test_a_monitor_says_what_the_batch_says_and_resumes_anywhere(seed, tmp_path):
    _, problems, losses = stream(seed)
    of_round = np.random.default_rng(seed).integers(4, size=12)
    motion = nf.price_stream(problems[:4], losses, dynamics_of_round=of_round)
    monitor = nf.Monitor(problems[of_round[0]])
    for t, k in enumerate(of_round.tolist()):
        priced = monitor.update(losses[t], mdp=problems[k] if t % 2 else random_days(seed, 12)[k].mdp())
        assert (priced.price, priced.lowest_price) == (motion.prices[t], motion.lowest_prices[t])
        changed = t > 0 and problems[k].fingerprint != problems[of_round[t - 1]].fingerprint
        assert (priced.moved is not None) == changed
        if priced.moved is not None:
            assert priced.moved.until_surprise == motion.until_surprise[t]
            assert priced.moved.market_alone == motion.market_alone[t]
            assert priced.moved.effective_variation_l1 == motion.effective_variation("l1")[t]
        monitor.save(tmp_path / "snapshot.npz")
        monitor = nf.Monitor.load(tmp_path / "snapshot.npz")
        assert monitor.mdp.fingerprint == problems[k].fingerprint
    assert monitor.total == motion.total


def test_a_monitor_that_refuses_other_dynamics_is_as_it_was():
    monitor = nf.Monitor(nf.MDP([[0, 0]], 0, horizon=1))
    monitor.update([[[0.0, 1.0]]])
    before = monitor.to_arrays()
    with pytest.raises(nf.InputError, match=r"mdp of round 1 has shape \[1, 1, 3\]"):
        monitor.update([[[0.0, 1.0]]], mdp=nf.MDP([[0, 0, 0]], 0, horizon=1))
    other = nf.MDP([[0, 0]], 0, horizon=1, allowed=[[False, True]])
    with pytest.raises(nf.InputError, match="leaves no action"):
        monitor.update([[[0.0, np.inf]]], mdp=other)
    assert all(np.array_equal(before[name], array) for name, array in monitor.to_arrays().items())


def test_a_mask_of_other_dynamics_cannot_be_priced():
    """Where it keeps nothing the plan would go on for free: neither reading of it."""
    stays, leaves = nf.MDP([[0, 0], [1, 1]], 0, horizon=2), nf.MDP([[1, 0], [1, 1]], 0, horizon=2)
    loss = np.array([[[0.0, 1.0], [0.0, 9.0]]] * 2)
    mask = nf.optimal_face(stays, loss).mask
    assert not mask[1, 1].any()
    with pytest.raises(nf.InputError, match="the mask keeps no action at a state that it leads to"):
        restricted_backup(leaves, mask, optimal_backup(leaves, loss).advantages)


@pytest.mark.parametrize("seed", range(60))
def test_the_detector_keeps_its_promise_for_a_model_that_is_wrong_in_both(seed):
    model, truth = random_days(seed, 2)
    nearby = truth.loss + (model.loss - truth.loss) / 64
    rows = (truth.kernel * 63 + model.kernel) / 64
    expected = type(model)(rows, truth.start, nearby)
    found = nf.detect(truth.mdp(), truth.loss, nearby, model_mdp=expected.mdp())
    assert found.error_kind == "upper bound"
    assert found.error >= np.abs(truth.paid - expected.paid).max() - 1e-12
    if found.guaranteed:
        best = expected.paid == expected.paid.min()
        assert (truth.paid[best] == truth.paid.min()).all()


def test_the_bound_is_the_error_itself_if_the_dynamics_are_the_same():
    for seed in range(30):
        before, after = random_days(seed, 2)
        mdp = before.mdp()
        bound = nf.value_error_bound(mdp, after.loss, mdp, before.loss)
        assert bound == nf.value_error(mdp, after.loss, before.loss)
    forbidden = np.array([[[0.0, np.inf]]])
    arms = nf.MDP([[0, 0]], 0, horizon=1)
    assert nf.value_error_bound(arms, forbidden, arms, [[[0.0, 1.0]]]) == np.inf
