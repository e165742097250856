"""Every way of handing over losses gives the same prices."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.pricing import stream as stream_module


@pytest.fixture
def mdp(rng: np.random.Generator) -> nf.MDP:
    return nf.MDP(rng.dirichlet(np.ones(4), size=(3, 4, 2)), 0)


@pytest.fixture
def losses(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-3, 4, size=(70, 3, 4, 2)).astype(float)


def same(left: nf.PricedMotion, right: nf.PricedMotion) -> bool:
    ours, theirs = left.columns(), right.columns()
    return all(np.array_equal(ours[name], theirs[name]) for name in ours) and np.array_equal(
        left.by_step, right.by_step
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, ">f8"])
def test_any_real_dtype(mdp: nf.MDP, losses: np.ndarray, dtype: object) -> None:
    assert same(nf.price_stream(mdp, losses.astype(dtype)), nf.price_stream(mdp, losses))


def test_any_strides(mdp: nf.MDP, losses: np.ndarray) -> None:
    expected = nf.price_stream(mdp, losses)
    spread = np.zeros((140, 3, 4, 6))[::2, :, :, ::3]
    spread[...] = losses
    reversed_twice = np.ascontiguousarray(losses[::-1, :, ::-1])[::-1, :, ::-1]
    for variant in (np.asfortranarray(losses), spread, reversed_twice, losses.tolist()):
        assert same(nf.price_stream(mdp, variant), expected)


@pytest.mark.parametrize(("axes", "lacking"), [("TSA", 1), ("THA", 2), ("TA", (1, 2)), ("THS", 3)])
def test_named_axes_broadcast(
    mdp: nf.MDP, losses: np.ndarray, axes: str, lacking: int | tuple[int, ...]
) -> None:
    index = tuple(0 if i in np.atleast_1d(lacking) else slice(None) for i in range(4))
    small = losses[index]
    full = np.broadcast_to(np.expand_dims(small, lacking), losses.shape)
    named = nf.price_stream(mdp, nf.ArrayLosses(small, axes=axes))
    assert same(named, nf.price_stream(mdp, full.copy()))


def test_axes_are_named_in_the_same_way_in_python_and_on_the_command_line(
    mdp: nf.MDP, losses: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "losses.npy", losses[:, 0])
    nf.io.save_mdp(mdp, tmp_path / "model.npz")
    priced = call("price", tmp_path / "model.npz", tmp_path / "losses.npy", "--axes", "TSA", "--json")
    named = nf.price_stream(mdp, nf.ArrayLosses(losses[:, 0], axes="TSA"))
    assert [entry["price"] for entry in json.loads(priced.out)["rounds"]] == named.prices.tolist()
    refused = call("price", tmp_path / "model.npz", tmp_path / "losses.npy")
    assert refused.code == 2
    assert "--axes TSA" in refused.err
    check_refusal(lambda: nf.price_stream(mdp, losses[:, 0]), 'ArrayLosses(array, axes="TSA")')
    check_refusal(lambda: nf.price_stream(mdp, iter(losses[:, 0])), "axes=")


def test_how_streams_are_shown(losses: np.ndarray) -> None:
    assert repr(nf.ArrayLosses(losses)) == "ArrayLosses(T=70, H=3, S=4, A=2, float64)"
    assert repr(nf.ArrayLosses(losses[:, 0], axes="TSA")) == "ArrayLosses(T=70, S=4, A=2, float64)"
    assert repr(nf.IterableLosses(loss for loss in losses)) == "IterableLosses(generator, axes='HSA')"
    factored = nf.FactoredLosses(np.ones((7, 2)), losses[:2])
    assert repr(nf.rewards(factored)) == "Negated(FactoredLosses(T=7, K=2))"


def test_iterators_are_read_once_in_order(mdp: nf.MDP, losses: np.ndarray) -> None:
    def arriving() -> Iterator[np.ndarray]:
        yield from losses

    assert same(nf.price_stream(mdp, arriving()), nf.price_stream(mdp, losses))


def test_memory_mapped_files(mdp: nf.MDP, losses: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "losses.npy", losses)
    for mode in ("r", "r+", "c"):
        mapped = np.load(tmp_path / "losses.npy", mmap_mode=mode)
        assert same(nf.price_stream(mdp, mapped), nf.price_stream(mdp, losses))
    changed = np.load(tmp_path / "losses.npy", mmap_mode="c")
    changed[3] += 1.0  # copy-on-write: only in memory, and it must survive the pricing
    nf.price_stream(mdp, changed)
    np.testing.assert_array_equal(changed[3], losses[3] + 1.0)


def test_mapped_files_longer_than_memory_should_be(
    mdp: nf.MDP, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Pages are let go of once priced: the mapping's share of memory does not grow with the file."""
    smaps = Path("/proc/self/smaps")
    if not smaps.exists():
        pytest.skip("this system does not tell what part of a mapping is in memory")
    path = tmp_path / "losses.npy"
    np.save(path, rng.random((120_000, 3, 4, 2)))
    mapped = np.load(path, mmap_mode="r")
    peak = 0

    def resident() -> int:
        lines = smaps.read_text().split(str(path))[1].splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Rss:"))) * 1024

    losses = nf.ArrayLosses(mapped)
    for block in losses.blocks(mdp.shape, rounds=2_000):
        block.sum()
        peak = max(peak, resident())
    assert 0 < peak < mapped.nbytes / 4


def test_factored_losses_are_their_sum(mdp: nf.MDP, rng: np.random.Generator) -> None:
    from scipy.sparse import csr_array

    coefficients = rng.integers(-3, 4, size=(70, 5))
    features = rng.integers(-1, 2, size=(5, 3, 4, 2))
    expected = nf.price_stream(mdp, np.einsum("tk,khsa->thsa", coefficients, features))
    assert same(nf.price_stream(mdp, nf.FactoredLosses(coefficients, features)), expected)
    flat = csr_array(features.reshape(5, -1))
    assert same(nf.price_stream(mdp, nf.FactoredLosses(coefficients, flat)), expected)


def test_rewards_are_negated_losses(mdp: nf.MDP, losses: np.ndarray) -> None:
    def earned(rewards: Any) -> nf.PricedMotion:
        motion = nf.price_stream(mdp, nf.rewards(rewards))
        return dataclasses.replace(motion, values=-motion.values)

    expected = nf.price_stream(mdp, losses)
    assert same(earned(-losses), expected)
    assert same(earned(-loss for loss in losses), expected)
    full = np.broadcast_to(losses[:, :1], losses.shape)
    assert same(earned(nf.ArrayLosses(-losses[:, 0], axes="TSA")), nf.price_stream(mdp, full))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_neither_blocks_nor_threads_change_a_bit(
    mdp: nf.MDP, losses: np.ndarray, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = nf.price_stream(mdp, losses)
    for rounds in (1, 2, 7, 64, 69, 70):
        monkeypatch.setattr(stream_module, "block_rounds", lambda *_, n=rounds, **__: n)
        assert same(nf.price_stream(mdp, losses, threads=threads), expected)
        assert same(nf.price_stream(mdp, iter(losses), threads=threads), expected)


@pytest.mark.parametrize("kind", ["dense", "sparse", "deterministic", "bandit"])
@pytest.mark.parametrize("rounds", [1, 7, 8, 9, 56, 57, 200])
def test_prices_alone_are_the_prices_of_full_detail(kind: str, rounds: int) -> None:
    """Two sweeps, the plain and the detailed one, and one readable form."""
    rng = np.random.default_rng(rounds)
    problem = random_problem(rng, rounds=rounds)
    while kind == "deterministic" and not problem.is_deterministic:
        problem = random_problem(rng, rounds=rounds)
    losses: np.ndarray = problem.losses.astype(float)
    if kind == "bandit":
        mdp, losses = nf.MDP(np.zeros((1, 11), dtype=int), 0, 1), rng.integers(0, 9, (rounds, 1, 1, 11))
    else:
        mdp = problem.mdp(kind)
    full = nf.price_stream(mdp, losses)
    plain = nf.price_stream(mdp, losses, detail="prices")
    for name, column in plain.columns().items():
        np.testing.assert_array_equal(column, full.columns()[name])
    faces = [nf.optimal_face(mdp, loss) for loss in losses]
    for t in range(1, rounds):
        assert plain.prices[t] == pytest.approx(nf.price(faces[t - 1], losses[t]).price, rel=1e-12)
        assert plain.crossed[t] == (faces[t - 1] != faces[t])
        assert plain.dimensions[t] == faces[t].dimension


def test_inputs_are_left_alone(mdp: nf.MDP, losses: np.ndarray) -> None:
    before = losses.copy()
    nf.price_stream(mdp, losses)
    np.testing.assert_array_equal(losses, before)
    assert losses.flags.writeable


def test_results_cannot_be_changed(mdp: nf.MDP, losses: np.ndarray) -> None:
    motion = nf.price_stream(mdp, losses)
    for array in (motion.prices, motion.by_step, nf.optimal_face(mdp, losses[0]).mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
