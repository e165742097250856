"""The costliest rounds: the map of where they pay, and their plans, each against its definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.battery import Battery
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.kernels import Tables
from normalfan.problem.mdp import Labels
from normalfan.report.costliest import (
    MOST_STATES,
    MOST_STEPS,
    SHARE,
    fold,
    most_expensive,
    plan_steps,
    read_costliest,
    rows_of,
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
        assert list(found.changes) == motion.costliest(50).tolist()
        assert list(read_costliest(mdp, losses, motion, DEFAULT_TIES, 2).changes) == list(found.changes)[:2]
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


def test_the_old_plan_pays_the_price_and_the_new_one_departs_least() -> None:
    moved = 0
    for seed in range(80):
        mdp, losses = random_stream(seed)
        for old, new in pairwise(losses):
            crossing = nf.price(nf.optimal_face(mdp, old), new)
            steps = plan_steps(Tables(mdp), crossing, new)
            visits = nf.occupancy(mdp, crossing.policy)
            assert (visits * new).sum() - crossing.value == pytest.approx(crossing.price, abs=1e-9)
            assert sum(step.paid for step in steps) == pytest.approx(crossing.price, abs=1e-12)
            assert sum(step.cash for step in steps) == pytest.approx(crossing.price, abs=1e-9)
            face = nf.optimal_face(mdp, new)
            if np.prod(face.mask.sum(axis=2)[face.reached], dtype=float) > 500:
                continue
            least = min((v * (crossing.policy != 1)).sum() for v in face.vertices(limit=500))
            _, kept = face.minimise(np.where(crossing.policy == 1, 0.0, 1.0))
            assert (nf.occupancy(mdp, kept) * (crossing.policy != 1)).sum() == pytest.approx(least, abs=1e-9)
            likely = nf.occupancy(mdp, kept).sum(axis=2)
            for h, step in enumerate(steps):
                assert step.new.probability == pytest.approx(likely[h].max())
                assert face.mask[h, step.new.state, step.new.action]
            moved += any(step.differs for step in steps)
            if crossing.price == 0 and nf.optimal_face(mdp, old) == face:
                assert least == pytest.approx(0, abs=1e-12)
    assert moved > 30


def test_the_cash_of_a_step_is_that_of_the_old_plan_minus_the_new_one_and_adds_up() -> None:
    """By enumeration: every path of each plan, and the least loss of all deterministic plans."""
    told_apart = 0
    for seed in range(80):
        mdp, losses = random_stream(seed)
        if nf.whole_polytope(mdp).n_policies > 3000:
            continue
        for before, now in pairwise(losses):
            crossing = nf.price(nf.optimal_face(mdp, before), now)
            steps = plan_steps(Tables(mdp), crossing, now)
            face = nf.optimal_face(mdp, now)
            _, new = face.minimise(np.where(crossing.policy == 1, 0.0, 1.0))
            cash = _loss_by_step(mdp, crossing.policy, now) - _loss_by_step(mdp, new, now)
            assert [step.cash for step in steps] == pytest.approx(cash, abs=1e-9)
            best = min((visits * now).sum() for visits in nf.whole_polytope(mdp).vertices(limit=3000))
            cheapest = min((visits * now).sum() for visits in nf.optimal_face(mdp, before).vertices(3000))
            assert cash.sum() == pytest.approx(cheapest - best, abs=1e-9)
            told_apart += any(abs(step.cash - step.paid) > 1e-6 for step in steps)
    assert told_apart > 10


def _loss_by_step(mdp: nf.MDP, policy: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """The expected loss of each step, summed path by path."""
    totals = np.zeros(mdp.horizon)
    paths = [(0, s, p) for s, p in enumerate(mdp.initial) if p]
    while paths:
        h, s, reached = paths.pop()
        for a, chosen in enumerate(policy[h, s]):
            totals[h] += reached * chosen * loss[h, s, a]
            if chosen and h + 1 < mdp.horizon:
                row = mdp.transitions.csr(h).toarray()[s * mdp.n_actions + a]
                paths += [(h + 1, j, reached * chosen * p) for j, p in enumerate(row) if p]
    return totals


def test_an_empty_battery_rests_by_whatever_name() -> None:
    battery = Battery(100.0, 50.0, 5, leak=0.0)
    mdp = battery.mdp()
    days = np.array(
        [np.r_[np.full(12, 20.0), np.full(12, 80.0)], np.r_[np.full(12, 80.0), np.full(12, 20.0)]]
    )
    motion = nf.price_stream(mdp, battery.losses(days))
    found = read_costliest(mdp, battery.losses(days), motion, DEFAULT_TIES)
    (row,) = rows_of(motion, motion.variation(), found.changes, "$")
    assert {line.new.text for line in row.plan} == {"rest at 0 MWh"}
    assert {line.old.text for line in row.plan if not line.differs} <= {"rest at 0 MWh", "rest at 100 MWh"}
    trades = [line.old.text.split()[0] for line in row.plan if line.differs]
    assert set(trades) == {"charge", "discharge"}
    assert trades == sorted(trades)  # first it buys, then it sells
