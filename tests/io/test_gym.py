"""Gymnasium's tables as problems, against values computed straight from the tables."""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf


def best_return(env: Any, horizon: int) -> float:
    """The most an episode of at most `horizon` steps can earn on average: it stops when terminated."""
    inner = env.unwrapped

    @cache
    def value(left: int, state: int) -> float:
        if left == 0:
            return 0.0
        return max(
            sum(p * (r + (0.0 if done else value(left - 1, int(s)))) for p, s, r, done in entries)
            for entries in inner.P[state].values()
        )

    return float(sum(p * value(horizon, s) for s, p in enumerate(inner.initial_state_distrib) if p > 0))


def best_loss(mdp: nf.MDP, earned: np.ndarray) -> float:
    losses = nf.rewards(nf.ArrayLosses(earned[None], axes="TSA"))
    return float(nf.price_stream(mdp, losses).values[0])


class Toll:
    """Two cells and a gate: the gate may be passed through (action 0) or end the episode (action 1)."""

    initial_state_distrib = np.array([1.0, 0.0, 0.0])
    P = {  # noqa: RUF012
        0: {
            0: [(0.25, 1, 1.0, False), (0.25, 1, 3.0, False), (0.5, 0, 0.0, False)],
            1: [(1.0, 1, 2.5, True)],
        },
        1: {0: [(1.0, 2, 1.0, False)], 1: [(1.0, 0, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, False)], 1: [(1.0, 1, 0.5, False)]},
    }

    @property
    def unwrapped(self) -> Any:
        return self


class RoundTrip(Toll):
    """There and back: an episode ends where it began."""

    initial_state_distrib = np.array([1.0, 0.0])
    P = {  # noqa: RUF012
        0: {0: [(1.0, 1, 1.0, False)], 1: [(1.0, 1, -1.0, False)]},
        1: {0: [(1.0, 0, 2.0, True)], 1: [(1.0, 1, 0.0, False)]},
    }


@pytest.mark.parametrize(
    ("env", "horizon"),
    [
        ("FrozenLake-v1", 12),
        ("FrozenLake8x8-v1", 20),
        ("CliffWalking-v1", 15),
        ("Taxi-v4", 6),
        (Toll(), 7),
        (RoundTrip(), 5),
    ],
)
def test_values_are_those_of_the_table(env: Any, horizon: int) -> None:
    env = gymnasium.make(env) if isinstance(env, str) else env
    mdp = nf.io.from_gymnasium(env, horizon)
    expected = best_return(env, horizon)
    assert best_loss(mdp, nf.io.expected_rewards(env)) == pytest.approx(-expected, rel=1e-12)
    assert expected != 0


def test_the_limit_of_the_environment_is_the_horizon() -> None:
    mdp = nf.io.load_mdp("gym:FrozenLake-v1")
    assert mdp.shape == (100, 16, 4)
    assert mdp.fingerprint == nf.io.from_gymnasium(gymnasium.make("FrozenLake-v1")).fingerprint
    check_refusal(lambda: nf.io.load_mdp("gym:CliffWalking-v1"), "CliffWalking-v1 sets no limit")


def test_ends_absorb_in_place_where_they_can() -> None:
    lake = nf.io.from_gymnasium("FrozenLake-v1", 5)
    holes = [5, 7, 11, 12, 15]
    kernel = lake.transitions.csr(0).toarray().reshape(16, 4, 16)
    assert np.array_equal(np.flatnonzero((kernel == np.eye(16)[:, None]).all(axis=(1, 2))), holes)
    # The goal of CliffWalking could be left again by its table.
    cliff = nf.io.from_gymnasium("CliffWalking-v1", 5)
    assert cliff.n_states == 48
    # Taxi's table goes on after a passenger was delivered, through states no episode sees.
    assert nf.io.from_gymnasium("Taxi-v4", 5).n_states == 500
    assert np.array_equal(cliff.transitions.expect(0, np.arange(48.0))[47], [47] * 4)


def test_an_end_that_is_also_a_way_through_gets_a_state_of_its_own() -> None:
    mdp = nf.io.from_gymnasium(Toll(), 3)
    assert mdp.labels.states == ("0", "1", "2", "terminated")
    kernel = mdp.transitions.csr(0).toarray().reshape(4, 2, 4)
    assert np.array_equal(kernel[0], [[0.5, 0.5, 0, 0], [0, 0, 0, 1]])  # duplicates summed, the end apart
    assert np.array_equal(kernel[3], [[0, 0, 0, 1]] * 2)
    assert nf.io.expected_rewards(Toll())[0].tolist() == [1.0, 2.5]


def test_a_start_may_be_chosen() -> None:
    mdp = nf.io.load_mdp("gym:FrozenLake-v1", horizon=3, start="14")
    assert np.flatnonzero(mdp.initial).tolist() == [14]


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("CartPole-v1", "CartPole-v1 is not a tabular environment"),
        ("NoSuchLake-v1", "NoSuchLake"),
        ("FrozenLake-v99", "v99"),
        ("not an id", "not an id"),
        ("nowhere:Lake-v1", "nowhere"),
    ],
)
def test_refusals(name: str, where: str) -> None:
    check_refusal(lambda: nf.io.load_mdp(f"gym:{name}", horizon=3), where)


@pytest.mark.parametrize(
    "table",
    [
        {0: {0: [(1.0, 0, 0.0)]}},
        {0: {0: [(1.0, 5, 0.0, False)]}},
        {"a": {0: [(1.0, 0, 0.0, False)]}},
        {0: {0: [(1.0, 0, 0.0, False)]}, 1: {}},
        {0: {0: [(1.0, 0, 0.0, False)]}, 1: {0: [], 1: []}},
        {0: {0: [("likely", 0, 0.0, False)]}},
        {0: 7},
    ],
)
def test_tables_of_another_form_are_refused(table: Any) -> None:
    class Odd:
        P = table
        initial_state_distrib = (1.0,)

    check_refusal(lambda: nf.io.from_gymnasium(Odd(), 2), "Odd has a table P of another form")


def test_probabilities_and_starts_are_checked_like_any_others() -> None:
    class Leaky:
        P = {0: {0: [(0.5, 0, 0.0, False)]}}  # noqa: RUF012

    check_refusal(lambda: nf.io.from_gymnasium(Leaky(), 2), "Leaky does not say where it starts")
    check_refusal(lambda: nf.io.from_gymnasium(Leaky(), 2, start=0), "sums to 0.5")
    Leaky.initial_state_distrib = (0.5, 0.5)  # type: ignore[attr-defined]
    check_refusal(lambda: nf.io.from_gymnasium(Leaky(), 2), "distribution")
