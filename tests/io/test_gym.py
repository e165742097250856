"""Gymnasium's tables as problems, against values computed straight from the tables."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.optimize import linprog
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


def least_losses(env: Any, horizon: int, rewards: list[Any]) -> list[float]:
    """By linear programs from the table: the least loss of two rounds, and of one on the other's face.

    A round's reward is a function of state, action and next state. The unknowns are how often each action is
    taken at each step by an episode that has not terminated.
    """
    table = env.unwrapped.P
    shape = (horizon, len(table), len(table[0]))
    flow = np.zeros((horizon, len(table), *shape))
    for h, s, a in np.ndindex(*shape):
        flow[h, s, h, s, a] += 1
        for p, after, _, done in table[s][a] if h + 1 < horizon else ():
            if not done:
                flow[h + 1, after, h, s, a] -= p
    arrivals = np.zeros(shape[:2])
    arrivals[0] = env.unwrapped.initial_state_distrib
    equal = {"A_eq": flow.reshape(arrivals.size, -1), "b_eq": arrivals.ravel(), "method": "highs"}
    losses = [
        -np.ravel(
            [[[sum(p * r(s, a, j) for p, j, *_ in table[s][a]) for a in table[s]] for s in table]] * horizon
        )
        for r in rewards
    ]
    alone = [linprog(loss, **equal).fun for loss in losses]
    kept = linprog(losses[1], **equal, A_ub=losses[0][None], b_ub=[alone[0] + 1e-9]).fun
    return [*alone, kept]


def best_reward(mdp: nf.MDP, earned: np.ndarray) -> float:
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
    assert best_reward(mdp, nf.io.expected_rewards(env)) == pytest.approx(expected, rel=1e-12)
    assert expected != 0


def test_moving_rewards_are_priced_as_by_linear_programs() -> None:
    """FrozenLake when a fall costs another amount each day; against the definition of the price."""
    env = gymnasium.make("FrozenLake-v1")
    falls = [0.0, 0.3, 0.9, 0.2]

    def reward(fall: float, _: int, action: int, arrival: int) -> float:
        return (arrival == 15) - fall * (arrival in (5, 7, 11, 12)) - 0.01 * action

    mdp = nf.io.from_gymnasium(env, 8)
    motion = nf.price_stream(mdp, nf.io.gymnasium_losses(env, reward, falls))
    assert motion.round_names == ("0.0", "0.3", "0.9", "0.2")
    assert (motion.prices[1:] > 1e-4).any()
    for t in range(1, 4):
        days = [partial(reward, fall) for fall in falls[t - 1 : t + 1]]
        before, now, kept = least_losses(env, 8, days)
        assert motion.values[t - 1 : t + 1] == pytest.approx([-before, -now], abs=1e-7)
        assert motion.prices[t] == pytest.approx(kept - now, abs=1e-6)


@pytest.mark.parametrize("env", [Toll(), RoundTrip()])
def test_an_end_earns_once_by_the_number_of_the_table(env: Any) -> None:
    """Ends that get a state of their own: the reward of a move is still asked for by the table's numbers."""
    seen = {(s, a, int(j)): r for s in env.P for a in env.P[s] for _, j, r, _ in env.P[s][a]}
    losses = nf.io.gymnasium_losses(env, lambda t, *move: t * seen[move], 3)
    mdp = nf.io.from_gymnasium(env, 5)
    values = nf.price_stream(mdp, losses).values

    # Entries of the table that lead to the same state may have other rewards.
    changed = type(env)()
    changed.P = {
        s: {a: [(p, j, seen[s, a, j], d) for p, j, _, d in env.P[s][a]] for a in env.P[s]} for s in env.P
    }
    assert values == pytest.approx(best_return(changed, 5) * np.arange(3), rel=1e-12)
    assert values[1] != 0


def test_bad_moving_rewards_are_refused() -> None:
    def given(reward: Any, rounds: Any = 2) -> Any:
        return lambda: nf.io.gymnasium_losses(Toll(), reward, rounds)

    check_refusal(given(lambda t, s, *_: np.nan if (t, s) == (1, 1) else 0), "round 1 for state 1, action 0")
    check_refusal(given(lambda *_: "much"), "rewards has dtype")
    check_refusal(given(lambda *_: [1, 2]), "rewards of round 0 has shape")
    check_refusal(given(lambda *_: 1, 0), "rounds is 0")
    check_refusal(given(lambda *_: 1, []), "rounds is []")


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
