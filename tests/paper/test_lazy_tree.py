"""The lazy tree is the explicit one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.learners import MirrorDescent
from normalfan_paper.bounds.splitting import policy_backup
from normalfan_paper.environments.lazy_tree import Dwell, LazyTree, Suffix, moving_path
from normalfan_paper.simulation import simulate_tree_mirror_descent

SUFFIXES: tuple[Suffix, ...] = ("flipped", "redrawn", "kept")
GAMMA = 0.2


@pytest.mark.parametrize("horizon", [1, 2, 5])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_lazy_tree_is_the_explicit_one(horizon: int, suffix: Suffix, rng: np.random.Generator) -> None:
    tree = LazyTree(GAMMA, moving_path(80, horizon, 0.3, suffix=suffix, rng=rng))
    instance = tree.explicit()
    etas = [0.1, 1.0, 3.0]
    played = simulate_tree_mirror_descent(tree, etas)
    for eta, regret in zip(etas, played, strict=True):
        log = nf.run(instance.mdp, MirrorDescent(instance.mdp, eta), instance.losses)
        np.testing.assert_allclose(regret, log.regrets, 1e-10, 1e-12)
    np.testing.assert_allclose(tree.variations(), log.variations, 1e-13, 1e-14)
    np.testing.assert_array_equal(tree.causal_lengths, log.causal_path_lengths)
    np.testing.assert_array_equal(tree.backed_up_prices, nf.price_stream(*instance).prices)
    np.testing.assert_allclose(tree.prices, tree.backed_up_prices, 1e-14)
    differing = (tree.paths[1:] != tree.paths[:-1]).sum(axis=1)
    np.testing.assert_array_equal(tree.raw_lengths[1:], differing)
    if suffix == "flipped":
        np.testing.assert_array_equal(tree.raw_lengths, tree.causal_lengths)
    if suffix == "kept":
        assert tree.raw_lengths.max() <= 1


def test_mirror_descent_stays_exact_on_long_dwells(rng: np.random.Generator) -> None:
    """Log-odds in the hundreds come back, and nodes are found again."""
    tree = LazyTree(1.0, moving_path(600, 3, 0.01, dwell="regular", rng=rng))
    mdp, losses = tree.explicit()
    learner = MirrorDescent(mdp, 1.0)
    for t, (loss, found) in enumerate(zip(losses, simulate_tree_mirror_descent(tree, [1.0])[0], strict=True)):
        values, _ = policy_backup(mdp, learner.act(t), loss)
        assert found == pytest.approx(mdp.initial @ values[0], 1e-9, 1e-11)
        learner.observe(t, loss)


def test_neighbours_change_nothing(rng: np.random.Generator) -> None:
    tree = LazyTree(GAMMA, moving_path(100, 20, 0.2, suffix="redrawn", rng=rng))
    etas = np.geomspace(0.04, 1, 11)
    together = simulate_tree_mirror_descent(tree, etas)
    np.testing.assert_array_equal(simulate_tree_mirror_descent(tree, etas, threads=2), together)
    np.testing.assert_array_equal(simulate_tree_mirror_descent(tree, etas[9:10])[0], together[9])


@pytest.mark.parametrize("dwell", ["random", "regular"])
def test_a_path_moves_as_told(dwell: Dwell, rng: np.random.Generator) -> None:
    paths = moving_path(4000, 6, 0.1, dwell=dwell, layer=4, suffix="redrawn", rng=rng)
    moved = np.flatnonzero((paths[1:] != paths[:-1]).any(axis=1)) + 1
    assert len(moved) / 4000 == pytest.approx(0.1, abs=0.02)
    assert (len(set(np.diff(moved).tolist())) == 1) == (dwell == "regular")
    tree = LazyTree(1.0, paths)
    assert set(tree.causal_lengths[moved].tolist()) == {3}
    assert tree.raw_lengths[moved].mean() == pytest.approx(2.0, abs=0.2)
    anywhere = LazyTree(1.0, moving_path(4000, 6, 0.5, rng=rng))
    assert set(anywhere.causal_lengths.tolist()) == set(range(7))


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no string": (lambda: LazyTree(1.0, np.zeros(3)), "paths has shape [3]"),
    "no bit": (lambda: LazyTree(1.0, np.array([[0, 2]])), "paths[0, 1] is 2"),
    "gamma": (lambda: LazyTree(-1.0, np.array([[0, 1]])), "gamma is -1"),
    "rate": (lambda: moving_path(5, 3, 1.5, rng=np.random.default_rng()), "rate is 1.5"),
    "layer": (lambda: moving_path(5, 3, 0.5, layer=4, rng=np.random.default_rng()), "layer is 4"),
    "eta": (lambda: simulate_tree_mirror_descent(LazyTree(1.0, [[0]]), [-1.0]), "etas[0] is -1"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])
