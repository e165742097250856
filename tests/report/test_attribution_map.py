"""The map of where the price is paid, and the rounds that it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.problem.labels import Labels
from normalfan.report.attribution_map import (
    MOST_STATES,
    MOST_STEPS,
    SHARE,
    fold,
    most_expensive,
    read_costliest,
)


def test_the_map_of_what_is_paid_adds_up_to_the_engine_s_split_by_step() -> None:
    priced = 0
    for seed in range(60):
        mdp, losses = random_stream(seed)
        motion = nf.price_stream(mdp, losses)
        found = read_costliest(mdp, losses, motion, DEFAULT_TIES)
        costliest = most_expensive(motion.prices, share=SHARE, at_most=500)
        assert found.attributed == len(costliest)
        assert found.attribution.sum(axis=1) == pytest.approx(
            motion.by_step[costliest].sum(axis=0), abs=1e-12
        )
        assert found.attributed_price >= SHARE * motion.total
        assert list(found.changes) == costliest
        priced += len(costliest)
    assert priced > 60


def test_the_costliest_rounds_are_the_fewest_that_carry_the_share() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        prices = rng.integers(0, 5, size=rng.integers(1, 9)).astype(float)
        chosen = most_expensive(prices, share=0.8, at_most=100)
        carried = prices[chosen].sum()
        assert carried >= 0.8 * prices.sum()
        assert not chosen or carried - prices[chosen].min() < 0.8 * prices.sum()
        assert (np.diff(prices[chosen]) <= 0).all()
    assert most_expensive(np.ones(9), share=1.0, at_most=4) == [0, 1, 2, 3]


def test_a_large_map_is_folded_without_losing_steps() -> None:
    paid = np.random.default_rng(1).random((1000, 100)) * np.arange(100)
    folded = fold(paid, paid.sum(axis=1), Labels())
    assert folded.paid.shape == (MOST_STATES, MOST_STEPS)
    assert folded.states == tuple(map(str, range(40, 100)))
    assert folded.states_left_out == 40
    assert folded.by_step.sum() == pytest.approx(paid.sum())
    assert folded.paid.sum() == pytest.approx(paid[:, 40:].sum())
    assert folded.shown == pytest.approx(paid[:, 40:].sum() / paid.sum())
    assert folded.steps[0] == "0 – 3"
    assert folded.steps[-1].endswith("999")
    small = fold(paid[:3, :2], paid[:3].sum(axis=1), Labels(states=("a", "b")))
    assert (small.steps, small.states, small.states_left_out) == (("0", "1", "2"), ("a", "b"), 0)
    np.testing.assert_array_equal(small.paid, paid[:3, :2].T)
