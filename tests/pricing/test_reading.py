"""The promise: an exact price never lies outside the interval that its round reports.

`SOAK=1` (as in `make soak`) tries 50,000 crossings instead of some thousand.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from problems import random_problem
from regimes import DRAWS, long_stream, random_stream
from scipy.sparse import csr_array
from soaking import SOAK, repeated

import normalfan as nf
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.kernels import Sweeper, Tables
from normalfan.pricing.reading import SURE, Reader

PROBLEMS = repeated(60, 2000)
LONG_PROBLEMS = repeated(4, 100)
BELOW_ALL_FLOATS = 64 * Fraction(5e-324)
"""Sums of subnormal numbers cannot be enclosed more narrowly than floats are dense there."""


def check_promise(mdp: nf.MDP, losses: np.ndarray) -> tuple[int, int]:
    """Every crossing against exact rationals; how many there were, and how many were flagged."""
    motion = nf.price_stream(mdp, losses)
    for t in range(1, len(losses)):
        exact = nf.certify(mdp, losses[t - 1], losses[t]).price
        lowest, highest = Fraction(motion.lowest_prices[t]), Fraction(motion.highest_prices[t])
        assert lowest - BELOW_ALL_FLOATS <= exact <= highest + BELOW_ALL_FLOATS, (t, float(exact), motion)
        if not motion.ambiguous[t]:
            stated = 1e-6 * motion.prices[t] + 1e-9 * np.abs(losses[t]).max() + float(BELOW_ALL_FLOATS)
            assert motion.highest_prices[t] - motion.lowest_prices[t] <= stated
    return len(losses) - 1, int(motion.ambiguous.sum())


@pytest.mark.parametrize("regime", DRAWS)
def test_exact_prices_lie_in_the_interval(regime: str) -> None:
    counts = [
        check_promise(*random_stream(regime, np.random.default_rng([seed, 11]))) for seed in range(PROBLEMS)
    ]
    crossings, flagged = np.sum(counts, axis=0)
    _note(regime, int(crossings), int(flagged))
    assert flagged < crossings / 2


@pytest.mark.parametrize(("unit", "most"), [(1, 0.0), (10, 1.0)])  # beside 1e9, tenths are near-ties
def test_long_horizons_and_large_offsets_are_priced_right(unit: int, most: float) -> None:
    streams = [long_stream(np.random.default_rng([seed, 12]), unit) for seed in range(LONG_PROBLEMS)]
    crossings, flagged = np.sum([check_promise(*stream) for stream in streams], axis=0)
    _note(f"200 to 1000 steps, multiples of 1/{unit}, offsets up to 1e9", int(crossings), int(flagged))
    assert flagged <= most * crossings


def _note(regime: str, crossings: int, flagged: int) -> None:
    """A soak leaves its figures in a file, a line for each regime."""
    if SOAK and (target := os.environ.get("SOAK_FIGURES")):
        with Path(target).open("a") as file:
            file.write(json.dumps({"regime": regime, "crossings": crossings, "flagged": flagged}) + "\n")


# --- the cases that used to be wrong ---------------------------------------------------------------


def test_the_highest_reading_pays_for_the_worst_of_the_doubtful() -> None:
    arms = nf.MDP(np.zeros((1, 3), int), 0, 1)
    losses = np.array([[1.0, 1.0 + 1e-15, 1.0 + 5e-13], [5.0, 0.0, 1.0]]).reshape(2, 1, 1, 3)
    motion = nf.price_stream(arms, losses)
    assert motion.ambiguous[1]
    assert motion.lowest_prices[1] == 0.0 == motion.prices[1]  # the rule reads three ties
    assert motion.highest_prices[1] >= 5.0 == nf.certify(arms, *losses).price


@pytest.mark.parametrize(
    ("horizon", "penalty", "behind", "today"),
    [(2, 1e15, 1.0, 1e6), (24, 1e9, 2e-3, 50.0), (365, 1e9, 0.5, 1e4), (1000, 1e9, 4.0, 1e5)],
)
def test_a_pit_that_no_plan_visits_blurs_nothing(
    horizon: int, penalty: float, behind: float, today: float
) -> None:
    mdp = nf.MDP(np.array([[0, 0, 1], [1, 1, 1]]), initial=0, horizon=horizon)
    old = np.zeros((horizon, 2, 3))
    old[:, 1] = penalty
    old[0, 0, 1] = behind
    new = old.copy()
    new[0, 0, :2] = (today, 0.0)
    motion = nf.price_stream(mdp, [old, new])
    assert motion.prices[1] == pytest.approx(today, rel=1e-12)
    assert not motion.ambiguous.any()


def test_ties_of_whole_numbers_and_of_equal_actions_are_sure() -> None:
    """Equal sums in another order are equal: no flag, whatever hangs on them."""
    chain = nf.MDP(np.array([[1, 2], [3, 3], [3, 3], [3, 3]]), 0, 3)
    old = np.zeros((3, 4, 2))
    old[0, 0], old[1, 1], old[1, 2] = (0.1, 0.2), 0.2, 0.1  # 0.1 + 0.2 either way
    new = old.copy()
    new[0, 0, 0] = 7.0
    motion = nf.price_stream(chain, [old, new])
    assert motion.dimensions[0] > 0
    assert motion.prices[1] == 0
    assert not motion.ambiguous.any()


def test_marks_agree_with_exact_advantages() -> None:
    """What is sure is exactly zero, what is out is not, on ties full of thirds."""
    for seed in range(60):
        mdp, losses = random_stream("tenths", np.random.default_rng([seed, 13]))
        reading = Reader(Tables(mdp), DEFAULT_TIES).read(losses[0])
        exactly = Reader(Tables(mdp), DEFAULT_TIES, exactly=True)._read_exactly(losses[0])
        met = mdp.reachable[:, :, None] & np.ones(mdp.shape, dtype=bool)
        assert (exactly.advantages[met & (reading.marks == SURE)] == 0).all()
        assert (exactly.advantages[met & (reading.marks == 0)] > 0).all()
        assert (reading.low[met] <= exactly.high[met]).all()
        assert (exactly.low[met] <= reading.high[met]).all()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 2.0])
@pytest.mark.parametrize("band", [1.0, 30.0])
def test_wide_tie_rules_are_those_of_single_crossings(share: float, band: float) -> None:
    """A loss that is much larger than the value of its state may still be a tie."""
    rule = nf.TieRule(relative=share, band=band)
    for seed in range(40):
        rng = np.random.default_rng([seed, 14])
        problem = random_problem(rng, rounds=4)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        losses = (
            problem.losses + rng.random(problem.losses.shape) / 8
        )  # so that none is at the threshold itself
        motion = nf.price_stream(mdp, losses, ties=rule)
        for t in range(1, 4):
            face = nf.optimal_face(mdp, losses[t - 1], ties=rule)
            alone = nf.price(face, losses[t], ties=rule).price
            assert motion.prices[t] == pytest.approx(alone, rel=1e-9, abs=1e-12)
            assert motion.dimensions[t - 1] == face.dimension


@pytest.mark.parametrize("kind", ["dense", "sparse", "certain"])
def test_a_long_horizon_is_no_reason_for_a_second_reading(kind: str) -> None:
    """The tie rule asks for the largest loss ahead, which does not grow with the number of steps."""
    rng = np.random.default_rng(15)
    nexts = rng.integers(0, 6, size=(6, 3))
    rows = np.eye(6)[nexts] * 0.75 + 0.25 / 6
    forms = {"dense": rows, "sparse": csr_array(rows.reshape(18, 6)), "certain": nexts}
    mdp = nf.MDP(forms[kind], 0, horizon=400)
    losses = rng.random((24, *mdp.shape))
    rule = nf.TieRule(relative=1e-9)  # its band is 1e-7; summed over the horizon it would be 1e-5
    assert not Sweeper(Tables(mdp), rule)(losses).near.any()


def test_prices_only_reads_near_ties_as_full_detail_does() -> None:
    for seed in range(40):
        mdp, losses = random_stream("near-ties", np.random.default_rng([seed, 14]))
        full, prices = (nf.price_stream(mdp, losses, detail=detail) for detail in ("full", "prices"))
        for name, column in prices.columns().items():
            np.testing.assert_array_equal(column, full.columns()[name])


def test_decided_exactly_is_the_whole_row() -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, 2)
    near = np.array([[[1.0, 1.0 + 5e-13]], [[0.0, 0.0]]])
    nearer = np.array([[[1.0, 1.0 + 5e-11]], [[0.0, 0.0]]])
    new = np.array([[[3.0, 0.0]], [[0.0, 0.0]]])
    motion = nf.price_stream(mdp, [near, new, new], exact_when_ambiguous=True)
    assert motion.prices.tolist() == [0.0, 3.0, 0.0] == motion.by_step.sum(axis=1).tolist()
    assert motion.dimensions.tolist() == [1, 1, 1]
    assert motion.decided_exactly.tolist() == [True, True, False]
    assert not motion.ambiguous.any()
    assert motion.lowest_prices[1] == pytest.approx(3.0) == motion.highest_prices[1]
    assert not nf.price_stream(mdp, [near, nearer], exact_when_ambiguous=True).crossed.any()


def test_sums_beyond_all_floats_are_refused_and_leave_a_monitor_as_it_was() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    large, other = [[[1e308, -1e308]]], [[[-1e308, 1e308]]]
    with pytest.raises(nf.InputError, match="losses of round 1 add up beyond"):
        nf.price_stream(arms, np.array([large, other]))
    monitor = nf.Monitor(arms)
    monitor.update(large)
    with pytest.raises(nf.InputError, match="round 1"):
        monitor.update(other)
    assert monitor.rounds == 1
    assert monitor.last_loss is not None
    assert monitor.last_loss.tolist() == large


def test_sums_that_fit_are_priced_though_their_scale_does_not() -> None:
    mdp = nf.MDP(np.array([[0, 1], [1, 1]]), 0, 3)
    old = np.zeros((3, 2, 2))
    old[2] = 1.2e308
    old[0, 0, 1] = 1e307
    new = old.copy()
    new[0, 0] = (1e307, 0.0)
    motion = nf.price_stream(mdp, [old, new])
    assert motion.prices[1] == pytest.approx(float(nf.certify(mdp, old, new).price), rel=1e-12)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1.0])
def test_the_l2_variation_neither_overflows_nor_vanishes(size: float) -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    moved = nf.price_stream(arms, size * np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2))
    assert moved.variation("l2")[1] == pytest.approx(size * np.sqrt(2.0), rel=1e-14, abs=0)


def test_a_state_whose_probability_is_no_float_is_still_reached() -> None:
    from scipy import sparse

    size = 170
    rows = np.zeros((size, 2, size))
    for s in range(size):
        rows[s, :, 0] += 0.99
        rows[s, :, min(s + 1, size - 1)] += 0.01
    loss = np.zeros((size, size, 2))
    loss[:, :, 1] = 5.0
    loss[size - 1, size - 1, 1] = 1e-3
    for source in (rows, sparse.csr_array(rows.reshape(-1, size))):
        motion = nf.price_stream(nf.MDP(source, 0, size), [loss, loss])
        assert motion.advantage_gaps.tolist() == [1e-3, 1e-3]
        assert motion.margins.tolist() == [0.0, 0.0]
        assert not motion.margin_exact.any()  # 0 is a safe bound, not the margin
