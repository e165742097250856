"""Sweeps against their readable twins in NumPy, round by round: ties, chances, closed actions, any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import normalfan as nf
from normalfan._kernels import bandit, successors
from normalfan._kernels.buffers import ASKED_AHEAD
from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.pricing.kernels import Tables

SHARED = ("prices", "values", "crossed", "dimensions", "ambiguous", "lowest_prices", "highest_prices")
DETAIL = (
    "by_step", "cells", "cell_prices", "variations", "margins", "margin_exact", "advantage_gaps"
)  # fmt: skip

SHAPES = [
    (1, 1, 1), (1, 1, 9), (1, 1, 64), (1, 1, 150), (1, 4, 3),
    (5, 1, 2), (4, 6, 1), (5, 7, 3), (3, 9, 5), (2, 17, 4),
]  # H, S, A  # fmt: skip


def problem(kind: str, shape: tuple[int, int, int], rng: np.random.Generator) -> nf.MDP:
    steps, states, actions = shape
    start = rng.dirichlet(np.ones(states)) if rng.random() < 0.5 else int(rng.integers(states))
    if kind == "certain":
        return nf.MDP(rng.integers(0, states, (states, actions)), start, horizon=steps)
    kernel = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.4)
    kernel[..., 0] += kernel.sum(axis=-1) == 0
    kernel /= kernel.sum(axis=-1, keepdims=True)
    rows = csr_array(kernel.reshape(-1, states)) if kind == "sparse" else kernel
    return nf.MDP(rows, start, horizon=steps)


def stream(shape: tuple[int, int, int], rounds: int, how: str, rng: np.random.Generator) -> Any:
    if how == "apart":
        return rng.random((rounds, *shape), np.float32).astype(float)
    losses = rng.integers(0, 3 if how == "tied" else 10**6, (rounds, *shape)).astype(float)
    if how == "closed":
        closed = rng.random(losses.shape) < 0.3
        closed[..., 0] = False
        losses[closed] = np.inf
    return losses


@pytest.mark.parametrize("kind", ["certain", "sparse", "dense"])
@pytest.mark.parametrize("how", ["tied", "apart", "closed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_is_its_rounds_in_numpy(kind: str, how: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng([*shape, len(kind), len(how)])
    mdp = problem(kind, shape, rng)
    losses = stream(shape, 67, how, rng)  # more than a block of dense sweeps, and no multiple of the lanes
    motion = nf.price_stream(mdp, losses)
    for t in range(1, len(losses)):
        face = nf.optimal_face(mdp, losses[t - 1])
        crossing = nf.price(face, losses[t])
        np.testing.assert_allclose(motion.prices[t], crossing.price, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(motion.values[t], crossing.value, rtol=1e-12)
        np.testing.assert_allclose(motion.by_step[t].sum(), motion.prices[t], rtol=1e-12)
        both = (losses[t] < np.inf) & (losses[t - 1] < np.inf)
        moved = np.abs(np.subtract(losses[t], losses[t - 1], where=both, out=np.zeros(shape)))
        norms = [moved.sum(), np.sqrt((moved**2).sum()), moved.max()]
        np.testing.assert_allclose(motion.variations[t], norms, rtol=1e-13)
        if how == "apart":  # one plan is optimal, so that who pays is known
            np.testing.assert_allclose(motion.by_step[t], crossing.by_step, rtol=1e-12, atol=1e-9)
            backup = optimal_backup(mdp, losses[t])
            advantages = backup.settled(mdp, nf.TieRule())
            best = advantages == advantages.min(axis=-1, keepdims=True)
            visits = occupancy(mdp, best / best.sum(axis=-1, keepdims=True)).sum(axis=-1)
            left_out = np.where(best, np.inf, advantages).min(axis=-1)
            reached = visits > 0
            weighed = np.where(reached, visits, 1.0) * left_out
            np.testing.assert_allclose(motion.margins[t], weighed[reached].min(), rtol=1e-11)
            np.testing.assert_allclose(motion.advantage_gaps[t], left_out[reached].min(), rtol=1e-11)


@pytest.mark.parametrize("kind", ["certain", "sparse", "dense"])
@pytest.mark.parametrize("how", ["tied", "apart", "closed"])
@pytest.mark.parametrize("seed", [11, 13])  # a policy comes to each state, or not
def test_detail_threads_layout_and_company_change_no_bit(kind: str, how: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (5, 7, 3)
    mdp = problem(kind, shape, rng)
    losses = stream(shape, 120, how, rng)
    whole = nf.price_stream(mdp, losses, threads=1)
    assert same(nf.price_stream(mdp, losses, detail="prices"), whole, SHARED)
    assert same(nf.price_stream(mdp, losses, detail=["variations"]), whole, (*SHARED, "variations"))
    assert same(nf.price_stream(mdp, losses, threads=3), whole, SHARED + DETAIL)
    assert same(nf.price_stream(mdp, np.asfortranarray(losses)), whole, SHARED + DETAIL)
    padded = np.repeat(np.repeat(losses, 2, axis=-1), 3, axis=1)[:, ::3, :, ::2]
    assert same(nf.price_stream(mdp, padded), whole, SHARED + DETAIL)
    short = losses.astype(np.float32)
    assert same(nf.price_stream(mdp, short), nf.price_stream(mdp, short.astype(float)), SHARED + DETAIL)
    assert same(nf.price_stream(mdp, np.asfortranarray(short)), whole, SHARED + DETAIL)
    alone = nf.price_stream(mdp, losses[40:])
    for name in SHARED + DETAIL:
        np.testing.assert_array_equal(getattr(alone, name)[1:], getattr(whole, name)[41:])


def same(one: nf.PricedMotion, other: nf.PricedMotion, names: tuple[str, ...]) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("arms", [1, 3, 8, 63, 64, 65, 150])
@pytest.mark.parametrize("most", [2, 40, 10**6])
def test_the_costliest_arm_is_the_first_that_is_held_and_has_the_shortest_name(arms: int, most: int) -> None:
    rng = np.random.default_rng([arms, most])
    names = tuple("a" * int(rng.integers(1, 5)) + str(k) for k in range(arms))
    mdp = nf.MDP([[0] * arms], 0, horizon=1, labels=nf.Labels(actions=names))
    losses = rng.integers(0, most, (80, arms)).astype(float)
    motion = nf.price_stream(mdp, losses[:, None, None])
    for t in range(1, len(losses)):
        now, kept = losses[t], losses[t - 1] == losses[t - 1].min()
        if now[kept].min() == now.min():
            assert motion.cells[t].tolist() == [-1] * 4
            continue
        alike = (np.flatnonzero(now == loss).tolist() for loss in (now[kept].min(), now.min()))
        named = [min(some, key=lambda arm: (len(names[arm]), arm)) for some in alike]
        assert motion.cells[t].tolist() == [0, 0, *named]
        assert motion.cell_prices[t] == now[kept].min() - now.min()


@pytest.mark.parametrize("shape", SHAPES)
def test_who_looks_ahead_of_the_last_row_stays_within_the_table(shape: tuple[int, int, int]) -> None:
    found = Tables(problem("sparse", shape, np.random.default_rng(shape))).problem
    assert found.indices is not None
    assert found.indptr is not None
    beyond = found.indices[found.indptr[-1] :]
    assert len(beyond) == ASKED_AHEAD >= successors.AHEAD
    assert ((beyond >= 0) & (beyond < shape[1])).all()


def test_losses_as_large_as_floats_go_are_losses_of_arms_that_exist() -> None:
    losses = np.full((3, 5), np.finfo(np.float64).max)
    losses[1, 0] = 1.0
    motion = nf.price_stream(nf.MDP([[0] * 5], 0, horizon=1), nf.ArrayLosses(losses, axes="TA"))
    assert motion.dimensions.tolist() == [4, 0, 4]
    assert motion.advantage_gaps[1] == np.finfo(np.float64).max - 1.0


@pytest.mark.parametrize("best", [0.0, 1.0, -1e300, 5e-324])
@pytest.mark.parametrize("floor", [0.0, 3e-9, 1e-310])
def test_an_arm_about_the_bound_is_in_doubt_or_left_out(best: float, floor: float) -> None:
    arms = Tables(nf.MDP([[0, 0]], 0, horizon=1)).problem
    bound = floor + 1e-10 * abs(best)
    others = [best + bound]
    for _ in range(20):
        others += [np.nextafter(others[-1], np.inf)]
        others = [np.nextafter(others[0], -np.inf), *others]
    losses = np.array([[best, max(other, best)] for other in others])
    swept = bandit.sweep(arms, losses.reshape(-1, 1, 1, 2), (floor, 1e-10, 0.0), detail=True)
    apart = losses[:, 1] - best
    assert (swept.near | (apart == 0) | (apart > bound)).all()
    assert np.array_equal(swept.near, (swept.dimensions == 1) & (apart > 0))
    assert np.array_equal(swept.advantage_gaps, np.where(swept.dimensions == 1, np.inf, apart))
