"""Ranges of the battery against bisection on `price`, and attacks inside its radius."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import normalfan as nf
from normalfan.battery import Battery, ercot_prices

DAYS = ["2021-07-01", "2021-02-15", "2022-05-09"]


@cache
def battery() -> tuple[nf.MDP, nf.FactoredLosses]:
    prices = ercot_prices()
    return Battery().mdp(), Battery().losses(prices.prices, round_names=prices.dates)


def prices_of_today(theta: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """What staying on the face of θ costs under each of the moved coefficients [n, 25]."""
    mdp, losses = battery()
    there_and_back = np.stack([np.broadcast_to(theta, moved.shape), moved], axis=1).reshape(-1, 25)
    return nf.price_stream(mdp, nf.FactoredLosses(there_and_back, losses.features), detail="prices").prices[
        1::2
    ]


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("share", [0.0, 0.01])
def test_ends_are_those_of_bisection(day: str, share: float) -> None:
    mdp, losses = battery()
    names = losses.feature_names
    found = nf.ranging(mdp, losses, at=day, tolerance=f"{100 * share}%", directions=names[:24])
    theta = losses.coefficients[losses.round_names.index(day)]
    moves = np.concatenate([-np.eye(25)[:24], np.eye(25)[:24]])
    ends = np.abs(np.concatenate([found.within[:, 0], found.within[:, 1]]) - np.tile(found.now, 2))
    finite = np.isfinite(ends)
    low, high = np.zeros(finite.sum()), np.full(finite.sum(), 4 * ends[finite].max())
    for _ in range(50):
        middle = (low + high) / 2
        fits = prices_of_today(theta, theta + middle[:, None] * moves[finite]) <= found.tolerance
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    scale = np.maximum(np.abs(np.tile(theta[:24], 2)[finite]), 1.0)
    np.testing.assert_array_less(np.abs(ends[finite] - low) / scale, 1e-6)
    assert (prices_of_today(theta, theta + 1e4 * moves[~finite]) <= found.tolerance).all()


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("relative", [True, False])
def test_no_error_inside_the_radius_costs_more(day: str, relative: bool) -> None:
    mdp, losses = battery()
    names = losses.feature_names[:24]
    found = nf.radius(mdp, losses, at=day, directions=names, relative=relative)
    assert 0 < found.lower <= found.upper
    assert found.lower > 0.9 * found.upper
    theta = losses.coefficients[losses.round_names.index(day)]
    units = np.abs(theta[:24]) if relative else np.ones(24)
    rng = np.random.default_rng(0)
    errors = np.concatenate([rng.uniform(-1, 1, (200, 24)), rng.choice([-1.0, 1.0], (200, 24))])
    moved = np.tile(theta, (401, 1))
    moved[:400, :24] += found.lower * errors * units
    moved[400, :24] += 1.001 * found.worst
    values = nf.price_stream(mdp, nf.FactoredLosses(moved, losses.features), detail="prices").values
    plan = nf.ranging(mdp, losses, at=day, directions=names).today.policy
    taken = losses.features @ nf.occupancy(mdp, plan).reshape(-1)
    paid = moved @ taken - values
    assert paid[:400].max() <= found.tolerance * (1 + 1e-9)
    assert paid[400] > found.tolerance
