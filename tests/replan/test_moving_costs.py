"""Plans kept through changed dynamics, against the list of all policies and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from forbidden import listed
from moving import random_days

import normalfan as nf


@pytest.mark.parametrize("seed", range(24))
def test_each_plan_costs_what_its_table_loses_on_each_day(seed):
    days = random_days(seed, 9)
    problems, losses = [day.mdp() for day in days], np.stack([day.loss for day in days])
    costs = nf.replan.holding_costs(problems, losses, dynamics_of_round=range(9))
    for j, maker in enumerate(days):
        table = maker.ties.argmax(axis=2)
        chosen = (maker.policies == table).all(axis=(1, 2))
        for t in range(j, 9):
            assert costs.costs[j, t] == days[t].regret(chosen)
    assert costs.values.tolist() == [day.paid.min() for day in days]
    after = nf.replan.holding_costs(problems, losses, dynamics_of_round=range(9), known="after")
    assert np.array_equal(after.costs, costs.learned_after().costs, equal_nan=True)


def test_dynamics_that_do_not_move_cost_the_same():
    mdp = random_days(3, 1, shape=(3, 3, 2))[0].mdp()
    losses = np.random.default_rng(1).integers(0, 4, size=(12, *mdp.shape)).astype(float)
    fixed = nf.replan.holding_costs(mdp, losses)
    moving = nf.replan.holding_costs([mdp, mdp], losses, dynamics_of_round=[0, 1] * 6)
    assert np.allclose(moving.costs, fixed.costs, equal_nan=True, atol=1e-12)
    assert np.allclose(moving.values, fixed.values)


@pytest.mark.parametrize("seed", range(60))
def test_what_a_day_does_not_allow_is_completed(seed):
    """One plan, kept for a day of its own dynamics in which other actions are allowed."""
    day = listed(seed, rounds=2)
    mdp = day.mdp("dense")
    costs = nf.replan.holding_costs([mdp, mdp], day.losses, dynamics_of_round=[0, 1])
    ties = day.ties(0)
    plan = ties & (ties.cumsum(axis=2) == 1)
    assert costs.costs[0, 1] == day.price_of(plan, 1)


def test_rewards_are_values_and_other_readings_are_refused():
    mdp = nf.MDP([[0, 0]], 0, horizon=1)
    other = nf.MDP([[0, 0]], 0, horizon=1, allowed=[[False, True]])
    gains = nf.rewards(np.array([[[[3.0, 1.0]]], [[[3.0, 1.0]]]]))
    costs = nf.replan.holding_costs([mdp, other], gains, dynamics_of_round=[0, 1])
    assert costs.values.tolist() == [3.0, 1.0]
    assert costs.costs[0].tolist() == [0.0, 0.0]
    for more in ({"window": 2}, {"reading": "face"}, {"dynamics_of_round": None}):
        with pytest.raises(nf.InputError, match="plans are kept through several problems only as they are"):
            nf.replan.holding_costs([mdp, other], gains, **({"dynamics_of_round": [0, 1]} | more))
