"""Ranges of the battery against `price` itself, and attacks inside its radius."""

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
def test_ends_are_where_price_passes_the_tolerance(day: str, share: float) -> None:
    """What the last step of a bisection to 1e-6 would see: within just before an end, beyond just after."""
    mdp, losses = battery()
    found = nf.ranging(mdp, losses, at=day, tolerance=f"{100 * share}%", directions=losses.feature_names[:24])
    theta = losses.coefficients[losses.round_names.index(day)]
    moves = np.concatenate([-np.eye(25)[:24], np.eye(25)[:24]])
    ends = np.abs(np.concatenate([found.within[:, 0], found.within[:, 1]]) - np.tile(found.now, 2))
    finite = np.isfinite(ends)
    near = 1e-6 * np.maximum(np.abs(moves @ theta), 1.0)
    before, after = (theta + (ends + side * near)[finite, None] * moves[finite] for side in (-1, 1))
    assert (prices_of_today(theta, before) <= found.tolerance).all()
    assert (prices_of_today(theta, after) > found.tolerance).all()
    assert (prices_of_today(theta, theta + 1e4 * moves[~finite]) <= found.tolerance).all()


def test_an_end_at_zero_is_zero() -> None:
    """At 23:00 the battery has nothing left to sell: it charges only if it is paid for that."""
    mdp, losses = battery()
    found = nf.ranging(mdp, losses, at="2022-05-09", tolerance=0.0, directions=["price 23:00"])
    assert found.optimal[0, 0] == 0.0
    assert found.words(0)[0].startswith("from 0 to ")


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
