"""Fixed share against all sequences of actions; on one state it and O-REPS are Hedge."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from playing import bandit, plays

from normalfan.learners import Hedge
from normalfan_paper.learners import FixedShare, OReps

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 3), st.integers(0, 5), st.floats(0.0, 0.9))
def test_fixed_share_is_hedge_over_all_sequences_of_actions(
    seed: int, arms: int, rounds: int, share: float
) -> None:
    losses = np.random.default_rng(seed).normal(size=(rounds, arms))
    switch = (1 - share) * np.eye(arms) + share / arms
    weights = np.zeros(arms)
    for sequence in product(range(arms), repeat=rounds + 1):
        cost = sum(losses[t, sequence[t]] for t in range(rounds))
        prior = np.prod([switch[i, j] for i, j in pairwise(sequence)])
        weights[sequence[-1]] += prior * np.exp(-0.7 * cost)
    learner = FixedShare(bandit(arms), eta=0.7, share=share)
    played = plays(learner, losses.reshape(rounds, 1, 1, arms))[-1].ravel()
    np.testing.assert_allclose(played, weights / weights.sum(), rtol=1e-9)


@given(seeds)
def test_on_one_state_they_are_hedge(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(12, 1, 1, 4))
    mdp = bandit(4)
    hedge = plays(Hedge(mdp), losses)
    for other in (FixedShare(mdp, share=0.0), OReps(mdp)):
        np.testing.assert_allclose(plays(other, losses), hedge, rtol=1e-8)
    floored = plays(Hedge(mdp, floor=0.05), losses)
    np.testing.assert_allclose(plays(FixedShare(mdp, share=0.2), losses), floored, rtol=1e-12)
