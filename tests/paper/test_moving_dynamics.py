"""The causal construction, and the reduction of satisfiability to one reading of the old plan."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from moving import random_days, readings

import normalfan as nf
from normalfan_paper.bounds.optimal_reading import optimal_price
from normalfan_paper.environments.moving_dynamics import least_unsatisfied, one_row_moved, satisfiability


def priced(days):
    return nf.price_stream([(days.before, days.previous_loss), (days.after, days.loss)])


@pytest.mark.parametrize("horizon", [2, 5, 12])
def test_one_row_moved_costs_what_is_left_of_the_horizon(horizon):
    for step in range(1, horizon):
        motion = priced(one_row_moved(horizon, step, cost=0.5, detour=0.125))
        assert motion.prices[1] == (horizon - step) * 0.5 - 0.125
        assert motion.transition_variations[1] == 2.0
        assert motion.variation("l1")[1] == 0.0
        assert motion.dynamics_alone[1] == motion.prices[1]
    assert priced(one_row_moved(horizon, horizon, 0.5, 0.125)).prices[1] == 0.0


def test_equal_variation_hides_a_factor_of_the_horizon():
    early, late = (priced(one_row_moved(20, step, 1.0, 2.0**-10)).prices[1] for step in (1, 19))
    assert early / late > 19


@pytest.mark.parametrize("seed", range(40))
def test_the_least_price_of_an_optimal_policy_is_that_of_an_assignment(seed):
    rng = np.random.default_rng(seed)
    variables = int(rng.integers(1, 5))
    signed = rng.choice([-1, 1], size=(int(rng.integers(1, 9)), 3)) * rng.integers(
        1, variables + 1, size=(1, 3)
    )
    clauses = [tuple(dict.fromkeys(row.tolist())) for row in rng.permuted(signed, axis=1)]
    days = satisfiability(clauses)
    found = optimal_price(days.before, days.previous_loss, days.after, days.loss)
    assert found == pytest.approx(least_unsatisfied(clauses), abs=1e-12)
    motion = priced(days)
    assert motion.prices[1] == pytest.approx(1.0)
    assert motion.until_surprise[1] == 0.0


@pytest.mark.parametrize("seed", range(12))
def test_the_optimal_reading_is_that_of_all_policies_listed(seed):
    days = random_days(seed, 12)
    for before, after in pairwise(days):
        optimal, _, _ = readings(before, after)
        assert optimal_price(before.mdp(), before.loss, after.mdp(), after.loss) == optimal
