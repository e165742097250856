"""The scenarios of the gridworld are what their formulas say, and seeds make them differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.problem.losses import ArrayLosses
from normalfan_paper.environments.gridworlds import (
    MOVES,
    boundary_crossing,
    changing_obstacles,
    gridworld,
    moving_goal,
    rotating_field,
)

SCENARIOS = (moving_goal, rotating_field, changing_obstacles, boundary_crossing)
SIDE, ROUNDS = 6, 90


def made(scenario: Callable[..., np.ndarray], seed: int = 0, **options: float) -> np.ndarray:
    return scenario(SIDE, ROUNDS, rng=np.random.default_rng(seed), **options)


def distance(cell: int, goal: tuple[float, float]) -> float:
    row, column = divmod(cell, SIDE)
    return (abs(row - goal[0]) + abs(column - goal[1])) / (2 * (SIDE - 1))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_losses_lie_in_the_unit_interval_and_move(scenario: Callable[..., np.ndarray]) -> None:
    for seed in range(5):
        losses = made(scenario, seed, period=20)
        assert losses.shape == (ROUNDS, SIDE * SIDE, len(MOVES))
        assert losses.min() >= 0
        assert losses.max() <= 1
        assert (losses != losses[0]).any()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_seed_is_a_problem_of_its_own(scenario: Callable[..., np.ndarray]) -> None:
    np.testing.assert_array_equal(made(scenario, 3), made(scenario, 3))
    assert (made(scenario, 3, period=30) != made(scenario, 4, period=30)).any()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenarios_are_streams_one_can_price(scenario: Callable[..., np.ndarray]) -> None:
    mdp = gridworld(SIDE, 5, (2, 2))
    priced = nf.price_stream(mdp, ArrayLosses(made(scenario, period=20), axes="TSA"))
    assert priced.total > 0


def test_moving_goal_goes_round_once_a_period() -> None:
    losses = made(moving_goal, period=30, jitter=0)
    np.testing.assert_array_equal(losses[:60], losses[30:])
    goals = losses[:30, :, 0].argmin(axis=1)
    for t in (0, 7, 29):
        expected = [distance(cell, divmod(goals[t], SIDE)) for cell in range(SIDE * SIDE)]
        for a in range(len(MOVES)):
            np.testing.assert_allclose(losses[t, :, a], expected, 1e-15)
    # The centre is not a cell and the goal rounds to cells: never nearer than the circle, but for rounding.
    radii = np.hypot(*(np.array(np.divmod(goals, SIDE)) - (SIDE - 1) / 2))
    assert np.abs(radii - (SIDE - 1) / 2).max() <= np.sqrt(0.5)
    assert len(set(goals)) > 8


def test_rotating_field_is_free_with_the_wind() -> None:
    losses = made(rotating_field, period=40, jitter=0)
    assert (losses == losses[:, :1]).all()
    up, down, left, right = (
        losses[:, 0, list(MOVES).index(name)] for name in ("up", "down", "left", "right")
    )
    np.testing.assert_allclose(up + down, 1)
    np.testing.assert_allclose(left + right, 1)
    np.testing.assert_allclose((down - up) ** 2 + (right - left) ** 2, 1)
    np.testing.assert_allclose(losses[:, 0, 0], 0.5)
    np.testing.assert_allclose(losses[:50], losses[40:], atol=1e-12)
    angle = np.unwrap(np.arctan2(down - up, right - left))
    np.testing.assert_allclose(np.abs(np.diff(angle)), 2 * np.pi / 40)


def test_obstacles_are_a_share_of_the_cells_and_stay_for_a_period() -> None:
    losses = made(changing_obstacles, period=25, jitter=0, density=0.2)
    goal = int(losses[:, :, 0].mean(axis=0).argmin())
    base = 0.5 * np.array([distance(cell, divmod(goal, SIDE)) for cell in range(SIDE * SIDE)])
    costly = losses[:, :, 0] - base
    assert set(costly.round(12).ravel()) == {0.0, 0.5}
    assert (costly.round(12).sum(axis=1) == 0.5 * round(0.2 * (SIDE * SIDE - 1))).all()
    changes = np.flatnonzero((losses[1:] != losses[:-1]).any(axis=(1, 2)))
    assert len(changes) in (3, 4)
    np.testing.assert_array_equal(np.diff(changes), 25)
    assert (costly[:, goal].round(12) == 0).all()


def test_boundary_crossing_swings_between_opposite_ends() -> None:
    losses = made(boundary_crossing, period=36, jitter=0)
    np.testing.assert_allclose(losses[:50], losses[36:86], atol=1e-12)
    best = losses[:, :, 0].argmin(axis=1)
    assert len(set(best)) == 2
    here, there = (np.array(divmod(cell, SIDE)) for cell in sorted(set(best)))
    np.testing.assert_array_equal(here + there, SIDE - 1)
    assert 4 <= (best[1:] != best[:-1]).sum() <= 6  # two jumps a period
    ends = [np.array([distance(cell, tuple(end)) for cell in range(SIDE * SIDE)]) for end in (here, there)]
    for loss in losses[::7, :, 0]:
        share = (loss - ends[0])[0] / (ends[1] - ends[0])[0]
        np.testing.assert_allclose(loss, (1 - share) * ends[0] + share * ends[1], atol=1e-14)


def test_jitter_varies_periods_by_no_more_than_it_says() -> None:
    for seed in range(20):
        losses = made(rotating_field, seed, period=40, jitter=0.25)
        cosine = 1 - 2 * losses[:, 0, list(MOVES).index("right")]
        sine = 1 - 2 * losses[:, 0, list(MOVES).index("down")]
        turn = np.abs(np.diff(np.unwrap(np.arctan2(sine, cosine))))
        assert 30 <= 2 * np.pi / turn.mean() <= 50


RNG = np.random.default_rng(0)
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no room": (lambda: moving_goal(1, 5, rng=RNG), "side is 1"),
    "no round": (lambda: rotating_field(3, 0, rng=RNG), "rounds is 0"),
    "no period": (lambda: boundary_crossing(3, 5, period=0, rng=RNG), "period is 0"),
    "wild": (lambda: changing_obstacles(3, 5, jitter=1, rng=RNG), "jitter is 1"),
    "too dense": (lambda: changing_obstacles(3, 5, density=1.5, rng=RNG), "density is 1.5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])
