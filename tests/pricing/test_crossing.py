"""One crossing: attribution, ties, near-ties, exact decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_price
from problems import random_problem

import normalfan as nf


@given(st.integers(0, 2**32 - 1))
def test_attribution_adds_up_and_lies_on_the_old_face(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed), rounds=2)
    mdp = problem.mdp()
    face = nf.optimal_face(mdp, problem.losses[0])
    crossing = nf.price(face, problem.losses[1])
    assert crossing.attribution.min() >= 0
    assert crossing.attribution.sum() == pytest.approx(crossing.price, rel=1e-12, abs=0)
    assert crossing.by_step.sum() == pytest.approx(crossing.price, rel=1e-12, abs=0)
    visits = nf.occupancy(mdp, crossing.policy)
    assert face.contains(visits)
    # The performance-difference identity: what the old face's best policy pays is the price.
    regret = (visits * problem.losses[1]).sum() - crossing.value
    assert regret == pytest.approx(crossing.price, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_prices_scale_with_the_loss_and_ignore_offsets(seed: int, scale: float, offset: float) -> None:
    problem = random_problem(np.random.default_rng(seed), rounds=3)
    mdp = problem.mdp()
    plain = nf.price_stream(mdp, problem.losses)
    scaled = nf.price_stream(mdp, problem.losses * scale)
    np.testing.assert_allclose(scaled.prices, plain.prices * scale, rtol=1e-9, atol=0)
    np.testing.assert_array_equal(scaled.crossed, plain.crossed)
    shifted = nf.price_stream(mdp, problem.losses + offset)
    np.testing.assert_allclose(shifted.prices, plain.prices, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(shifted.prices == 0, plain.prices == 0)


def two_arms(*rounds: tuple[float, float]) -> np.ndarray:
    return np.array(rounds).reshape(-1, 1, 1, 2)


ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)


def test_a_near_tie_is_flagged_with_both_prices() -> None:
    # Under the first loss the second arm is worse by far less than any rounding would excuse.
    losses = two_arms((1.0, 1.0 + 2e-12), (1.0, 0.0))
    motion = nf.price_stream(ARMS, losses)
    assert motion.ambiguous.tolist() == [False, True]  # the first round has no price to be unsure of
    assert motion.lowest_prices[1] == 0.0  # read as a tie, the old face contains the new optimum
    assert motion.highest_prices[1] == pytest.approx(1.0)  # read as a difference, it does not
    assert motion.prices[1] in (0.0, 1.0)


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-8, 0.5])
def test_clear_ties_and_clear_differences_are_not_flagged(gap: float) -> None:
    motion = nf.price_stream(ARMS, two_arms((1.0, 1.0 + gap), (1.0, 0.0), (3.0, 3.0)))
    assert not motion.ambiguous.any()
    np.testing.assert_allclose(motion.lowest_prices, motion.prices, rtol=1e-13)
    np.testing.assert_allclose(motion.highest_prices, motion.prices, rtol=1e-13)


def test_a_near_tie_off_the_face_is_not_ambiguous() -> None:
    # State 1 is reachable but not optimal, and only there two actions nearly tie.
    mdp = nf.MDP(np.array([[0, 1], [1, 1]]), 0, horizon=2)
    loss = np.zeros((2, 2, 2))
    loss[0, 0, 1] = 5.0
    loss[1, 0, 1] = 5.0
    loss[1, 1] = [1.0, 1.0 + 3e-12]
    motion = nf.price_stream(mdp, np.stack([loss, loss]))
    assert not motion.ambiguous.any()


def test_ambiguous_rounds_can_be_decided_exactly() -> None:
    losses = two_arms((1.0, 1.0 + 2e-12), (1.0, 0.0), (1.0, 0.0))
    motion = nf.price_stream(ARMS, losses, exact_when_ambiguous=True)
    assert motion.prices.tolist() == [0.0, 1.0, 0.0]  # read exactly, the two arms differ
    assert motion.decided_exactly.tolist() == [True, True, False]
    monitor = nf.Monitor(ARMS, exact_when_ambiguous=True)
    assert [monitor.update(loss).price for loss in losses] == motion.prices.tolist()


@given(st.integers(0, 2**32 - 1))
def test_prices_lie_between_the_two_readings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=4)
    noise = 10.0 ** rng.uniform(-15, -9) * rng.normal(size=problem.losses.shape)
    motion = nf.price_stream(problem.mdp(), problem.losses + noise)
    assert (motion.lowest_prices <= motion.prices).all()
    assert (motion.prices <= motion.highest_prices).all()
    unsure = motion.highest_prices - motion.lowest_prices > 1e-8
    assert motion.ambiguous[unsure].all()


def test_a_penalty_nobody_pays_does_not_blur_the_rest() -> None:
    """A forbidden action's huge loss must not widen the tie rule elsewhere."""
    mdp = nf.MDP(np.array([[0, 0, 0]]), 0, horizon=3)
    losses = np.zeros((2, 3, 1, 3))
    losses[..., 2] = 1e12
    losses[0, :, 0, 1], losses[1, :, 0, 0] = 1e-3, 1e-3
    motion = nf.price_stream(mdp, losses)
    assert motion.prices[1] == pytest.approx(3e-3, rel=1e-12)
    assert not motion.ambiguous.any()


def test_causal_anisotropy_to_the_last_digits() -> None:
    """A path that errs by γ on every layer from h on pays (H − h + 1)·γ (steps from 1)."""
    gamma, horizon = 0.2, 20
    chain = nf.MDP(np.array([[0, 1], [1, 1]]), 0, horizon=horizon)
    for layer in range(horizon):
        before, after = np.zeros((2, horizon, 2, 2))
        before[:, 0, 1] = gamma  # yesterday leaving the first state never paid
        after[:layer, 0, 1] = gamma
        after[layer:, 0, 0] = gamma  # today staying costs from `layer` on, and leaving is free
        priced = nf.price(nf.optimal_face(chain, before), after).price
        assert priced / gamma == pytest.approx(horizon - layer, abs=4e-15 * horizon)


def test_variation_is_the_norm_of_the_move(rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=20)
    motion = nf.price_stream(problem.mdp(), problem.losses)
    moves = np.diff(problem.losses, axis=0).reshape(19, -1)
    for names, order in ((("l1", 1, "L1"), 1), (("l2", 2), 2), (("linf", np.inf, "inf"), np.inf)):
        for name in names:
            assert motion.variation(name)[0] == 0
            expected = np.linalg.norm(moves, ord=order, axis=1)
            np.testing.assert_allclose(motion.variation(name)[1:], expected, rtol=1e-12)


def test_exact_oracle_and_engine_disagree_when_the_loss_is_changed(rng: np.random.Generator) -> None:
    """The oracle is able to object: a wrong previous loss gives another price somewhere."""
    differences = 0
    for _ in range(50):
        problem = random_problem(rng, rounds=3)
        wrong = exact_price(problem, problem.losses[0], problem.losses[2])
        right = nf.price_stream(problem.mdp(), problem.losses).prices[2]
        differences += abs(float(wrong) - right) > 1e-9
    assert differences > 5
