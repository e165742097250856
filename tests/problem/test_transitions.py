"""Two adjoint maps, three representations, one meaning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, random_problem

from normalfan import MDP, price_stream

problems = st.integers(0, 2**32 - 1).map(lambda seed: random_problem(np.random.default_rng(seed)))


@given(problems, st.integers(0, 2**32 - 1))
def test_expect_and_push_are_adjoint_and_agree_with_loops(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    horizon, n_states, n_actions = problem.shape
    h = int(rng.integers(horizon))
    values, mass = rng.normal(size=n_states), rng.random((n_states, n_actions))
    by_hand = np.zeros((n_states, n_actions))
    for s, a in np.ndindex(n_states, n_actions):
        by_hand[s, a] = sum(float(p) * values[j] for j, p in problem.probability(h, s, a).items())
    for kind in problem.kinds():
        transitions = problem.mdp(kind).transitions
        expected = transitions.expect(h, values)
        np.testing.assert_allclose(expected, by_hand, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            (mass * expected).sum(), transitions.push(h, mass) @ values, rtol=0, atol=1e-12
        )
        columns = np.stack([values, -values], axis=1)
        np.testing.assert_allclose(transitions.expect(h, columns)[..., 1], -by_hand, atol=1e-12)
        masses = np.stack([mass, 3 * mass, mass[::-1]], axis=2)
        alone = np.stack([transitions.push(h, masses[..., i]) for i in range(3)], axis=1)
        np.testing.assert_allclose(transitions.push(h, masses), alone, rtol=0, atol=1e-12)


@given(problems)
def test_representations_price_alike(problem: Problem) -> None:
    dense, *others = (problem.mdp(kind) for kind in problem.kinds())
    expected = price_stream(dense, problem.losses)
    for mdp in others:
        assert mdp.fingerprint == dense.fingerprint
        np.testing.assert_array_equal(mdp.reachable, dense.reachable)
        motion = price_stream(mdp, problem.losses)
        for name, column in expected.columns().items():
            np.testing.assert_allclose(motion.columns()[name], column, rtol=1e-12, atol=1e-13)


def test_a_stationary_kernel_is_the_same_kernel_at_every_step(rng: np.random.Generator) -> None:
    from scipy.sparse import csr_array

    kernel = rng.dirichlet(np.ones(4), size=(4, 3))
    nexts = rng.integers(0, 4, size=(4, 3))
    losses = rng.normal(size=(9, 5, 4, 3))
    rows = csr_array(kernel.reshape(12, 4))
    for once, every_step in (
        (MDP(kernel, 1, horizon=5), MDP(np.stack([kernel] * 5), 1)),
        (MDP(nexts, 1, horizon=5), MDP(np.stack([nexts] * 5), 1)),
        (MDP(rows, 1, horizon=5), MDP([rows] * 5, 1)),
    ):
        assert once.fingerprint == every_step.fingerprint
        np.testing.assert_array_equal(
            price_stream(once, losses).prices, price_stream(every_step, losses).prices
        )


def test_fingerprints_tell_problems_apart(rng: np.random.Generator) -> None:
    kernel = rng.dirichlet(np.ones(3), size=(3, 2))
    seen = {MDP(kernel, 0, horizon=h).fingerprint for h in (1, 2, 3)}
    seen |= {MDP(kernel, s, horizon=2).fingerprint for s in (1, 2)}
    seen.add(MDP(kernel[:, ::-1], 0, horizon=2).fingerprint)
    assert len(seen) == 6


def test_duplicate_sparse_entries_are_added_and_zeros_dropped() -> None:
    from scipy.sparse import coo_array, csr_array

    doubled = coo_array(([0.25, 0.75, 0.0, 1.0], ([0, 0, 1, 1], [1, 1, 0, 1])), shape=(2, 2))
    plain = csr_array([[0.0, 1.0], [0.0, 1.0]])
    assert MDP(doubled, 0, 2).fingerprint == MDP(plain, 0, 2).fingerprint
    assert MDP(doubled, 0, 2).reachable.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_next_states_of_any_integer_type(dtype: type) -> None:
    mdp = MDP(np.array([[0, 1], [1, 0]], dtype=dtype), 0, horizon=2)
    assert mdp.transitions.expect(0, np.array([3.0, 4.0])).tolist() == [[3.0, 4.0], [4.0, 3.0]]


def test_a_dense_kernel_begins_on_a_cache_line(rng: np.random.Generator) -> None:
    for states in (1, 3, 8):
        kernel = rng.dirichlet(np.ones(states), size=(states, 2))
        kept = MDP(kernel, 0, horizon=2).transitions.kernels[0]
        assert kept.ctypes.data % 64 == 0
        np.testing.assert_array_equal(kept, kernel)
