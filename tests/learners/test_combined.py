"""The combination against its definition, by hand and in random play: what it pays, and what it promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import bandit, plays
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan import learners
from normalfan.learners.combined import ExpertWeights

seeds = st.integers(0, 2**32 - 1)


def members_of(mdp: nf.MDP) -> list[learners.Learner]:
    return [
        learners.FaceTracker(mdp),
        learners.MirrorDescent(mdp, 0.3),
        learners.ThresholdedMirrorDescent(mdp, 0.6, floor=0.01),
    ]


def payments(seed: int) -> np.ndarray:
    """[N, T] of members that are good by turns: ties, jumps of scale, a loss that hurts the leader."""
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(1, 6)), int(rng.integers(1, 60))
    scale = 10.0 ** rng.uniform(-3, 3, size=rounds) if rng.random() < 0.5 else np.ones(rounds)
    paid = rng.integers(-1, 3, size=(n, rounds)) * scale
    if rng.random() < 0.5:  # whoever leads pays
        total = np.zeros(n)
        for t in range(rounds):
            paid[:, t] = total == total.min()
            total += paid[:, t]
    return paid


def weighed(paid: np.ndarray, share: float) -> tuple[np.ndarray, ExpertWeights]:
    """The weights of each round, [T, N], and the rule after them."""
    rule, weights = ExpertWeights(len(paid), share), []
    for costs in paid.T:
        weights.append(rule.weights)
        rule.update(costs)
    return np.array(weights), rule


@given(seeds)
def test_it_pays_the_mean_of_its_members(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    mdp = problem.mdp()
    alone = np.array([nf.run(mdp, member, problem.losses).losses_paid for member in members_of(mdp)])
    for share in (0.0, 0.1):
        combined = learners.Combined(members_of(mdp), share=share)
        log = nf.run(mdp, combined, problem.losses)
        weights, rule = weighed(alone, share)
        np.testing.assert_allclose(log.losses_paid, (weights.T * alone).sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(combined.weights, rule.weights, atol=1e-9)
        assert combined.bound() == pytest.approx(rule.bound())
        played = plays(learners.Combined(members_of(mdp), share=share), problem.losses)
        np.testing.assert_allclose(played.sum(axis=-1), 1.0)


@given(seeds)
def test_the_promise_is_kept_over_the_whole_run(seed: int) -> None:
    paid = payments(seed)
    weights, rule = weighed(paid, 0.0)
    excess = float((weights.T * paid).sum()) - paid.sum(axis=1).min()
    spread = np.ptp(paid, axis=0)
    known = math.sqrt(math.log(len(paid)) * float(spread @ spread)) + 2 * spread.max()
    rounding = 1e-9 * np.abs(paid).sum()
    assert excess <= rule.bound() + rounding
    assert rule.bound() <= known + rounding


@given(seeds, st.sampled_from([0.01, 0.2]))
def test_with_a_share_it_is_kept_on_every_interval(seed: int, share: float) -> None:
    paid = payments(seed)
    weights, rule = weighed(paid, share)
    excess = np.einsum("tn,nt->t", weights, paid) - paid
    rounding = 1e-9 * np.abs(paid).sum()
    for begin in range(paid.shape[1]):
        sums = excess[:, begin:].cumsum(axis=1).max(axis=0)
        for end, lost in enumerate(sums, start=begin + 1):
            assert lost <= rule.bound(begin, end) + rounding


def test_the_bound_is_not_idle() -> None:
    """It would notice weights that do not learn: uniform ones exceed it."""
    paid = np.stack([np.zeros(2000), np.ones(2000)])
    _, rule = weighed(paid, 0.0)
    assert 100 * rule.bound() < 0.5 * 2000


def test_a_member_long_given_up_may_become_the_best() -> None:
    """Its weight has underflowed to 0 when it wins by far more than it ever lost."""
    paid = np.stack([np.zeros(3001), np.ones(3001)])
    paid[:, 3000] = 1e5, 0.0
    weights, rule = weighed(paid, 0.0)
    assert weights[3000, 1] == 0.0
    assert np.isfinite(weights).all()
    assert float((weights.T * paid).sum()) - paid.sum(axis=1).min() <= rule.bound()
    assert rule.weights[1] > 0.0


def test_the_weights_by_hand() -> None:
    paid = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]).T  # two members, three rounds
    weights, rule = weighed(paid, 0.0)
    first_gap = Fraction(1, 2)  # all went to the first; half was paid
    np.testing.assert_allclose(weights[:2], [[0.5, 0.5], [1 / (1 + math.exp(-2 * math.log(2))),
                                                          1 / (1 + math.exp(2 * math.log(2)))]])  # fmt: skip
    eta = math.log(2) / float(first_gap)
    w = weights[1]
    second_gap = w @ [1, 0] + math.log(w @ np.exp(-eta * np.array([1, 0]))) / eta
    eta = math.log(2) / (0.5 + second_gap)
    np.testing.assert_allclose(weights[2], [0.5, 0.5])  # both have paid 1
    third_gap = 0.5 + math.log(0.5 * math.exp(-eta) + 0.5) / eta
    assert rule.bound() == pytest.approx(2 * (0.5 + second_gap + third_gap))


def test_one_member_is_played_as_it_is() -> None:
    arms = bandit(3)
    losses = np.random.default_rng(0).normal(size=(9, 1, 1, 3))
    combined = learners.Combined([learners.Hedge(arms, 0.5)])
    np.testing.assert_allclose(plays(combined, losses), plays(learners.Hedge(arms, 0.5), losses), rtol=1e-12)
    assert combined.bound() == 0.0


BAD = {
    "nobody": (lambda: learners.Combined([]), "learners is empty"),
    "two problems": (
        lambda: learners.Combined([learners.Hedge(bandit(2)), learners.Hedge(bandit(2))]),
        "learners[1] plays another problem",
    ),
    "foresight": (
        lambda: learners.Combined([learners.FaceTracker(bandit(2), learners.Oracle())]),
        "learners[0] must see the coming loss",
    ),
    "share": (lambda: learners.Combined([learners.Hedge(bandit(2))], share=1.0), "share is 1.0"),
    "interval": (lambda: weighed(np.zeros((2, 5)), 0.0)[1].bound(since=2), "since is 2"),
    "unseen": (lambda: weighed(np.zeros((2, 5)), 0.1)[1].bound(since=6), "rounds 6 to 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    call, words = BAD[name]
    check_refusal(call, words)
