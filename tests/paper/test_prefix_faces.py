"""Prefix faces and their trackers are the explicit ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.learners.learner import LastLoss
from normalfan.learners.selectors import FaceTracker, Lexicographic, Oracle
from normalfan_paper.environments.prefix_faces import Charge, PrefixFaces, flipping_bits, switching_faces
from normalfan_paper.learners.sticky import StickyEntropy, StickyEuclidean
from normalfan_paper.simulation import simulate_prefix_tracker

CHARGES: tuple[Charge, ...] = ("to the prefix", "to the end", "separable")
GAMMA = 0.2


def random_faces(charge: Charge, horizon: int, rng: np.random.Generator) -> PrefixFaces:
    strings, lengths = flipping_bits(60, horizon, flip=0.15, redraw=0.5, longest=horizon, rng=rng)
    return PrefixFaces(GAMMA, strings, lengths, charge)


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_prefix_trackers_are_the_explicit_ones(
    charge: Charge, horizon: int, rng: np.random.Generator
) -> None:
    faces = random_faces(charge, horizon, rng)
    mdp, losses = faces.explicit()
    prices = nf.price_stream(mdp, losses).prices
    np.testing.assert_allclose(faces.prices(), prices, 1e-13, 1e-15)
    for loss, free in zip(losses[:10], faces.free_layers()[:10], strict=True):
        assert nf.optimal_face(mdp, loss).dimension == 2**free - 1
    for name, selector in (
        ("oracle", Oracle()),
        ("lexicographic", Lexicographic()),
        ("occupancies", StickyEuclidean(LastLoss(), weight=1.0)),
        ("entropy", StickyEntropy(LastLoss(), weight=1.0)),
    ):
        log = nf.run(mdp, FaceTracker(mdp, selector), losses)
        played = simulate_prefix_tracker(faces, name)  # type: ignore[arg-type]
        np.testing.assert_allclose(played.regret[1:], log.regrets[1:], 1e-9, 1e-12)
        np.testing.assert_allclose(played.selection[1:], log.selections[1:], 1e-9, 1e-12)


def costs_of_paths(faces: PrefixFaces, t: int) -> dict[tuple[int, ...], float]:
    """What every path pays in round t, by walking the explicit tree."""
    mdp, losses = faces.explicit()
    costs = {}
    for path in product((0, 1), repeat=faces.horizon):
        state, total = 0, 0.0
        for h, action in enumerate(path):
            total += losses[t, h, state, action]
            state = int(mdp.transitions.nexts[0, state, action])
        costs[path] = total
    return costs


@pytest.mark.parametrize("charge", CHARGES)
def test_a_loss_is_what_its_name_says(charge: Charge, rng: np.random.Generator) -> None:
    faces = random_faces(charge, 4, rng)
    for t in range(4):
        string, length = faces.strings[t], int(faces.lengths[t])
        for path, cost in costs_of_paths(faces, t).items():
            wrong = np.flatnonzero(np.array(path[:length]) != string[:length])
            end = length if charge == "to the prefix" else 4
            expected = len(wrong) if charge == "separable" else end - wrong[0] if len(wrong) else 0
            assert cost == pytest.approx(GAMMA * expected, abs=1e-14)


@pytest.mark.parametrize("charge", CHARGES)
def test_the_string_selector_remembers_each_bit(charge: Charge, rng: np.random.Generator) -> None:
    faces = random_faces(charge, 4, rng)
    played = simulate_prefix_tracker(faces, "strings")
    z = np.zeros(4, dtype=int)
    for t in range(1, 60):
        length = int(faces.lengths[t - 1])
        z[:length] = faces.strings[t - 1, :length]
        costs = costs_of_paths(faces, t)
        reachable = [c for p, c in costs.items() if p[:length] == tuple(z[:length])]
        assert played.regret[t] == pytest.approx(costs[tuple(z.tolist())], abs=1e-13)
        assert played.selection[t] == pytest.approx(costs[tuple(z.tolist())] - min(reachable), abs=1e-13)


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("selector", ["random vertex", "random point"])
def test_random_selectors_have_the_mean_of_the_uniform_policy(charge: Charge, selector: str) -> None:
    pair = np.array([[0, 1, 0, 1], [0, 1, 1, 1]]), np.array([1, 4])
    costs = costs_of_paths(PrefixFaces(GAMMA, *pair, charge), 1)
    expected = np.mean([cost for path, cost in costs.items() if path[0] == 0])
    faces = PrefixFaces(GAMMA, np.tile(pair[0], (4000, 1)), np.tile(pair[1], 4000), charge)
    played = simulate_prefix_tracker(faces, selector, rng=np.random.default_rng(5))  # type: ignore[arg-type]
    regrets = played.regret[1::2]
    assert regrets.mean() == pytest.approx(expected, abs=4 * regrets.std() / np.sqrt(4000))
    assert regrets.std() > 0
    certain = np.isclose(regrets / GAMMA, np.round(regrets / GAMMA))
    assert certain.all() == (selector == "random vertex")


def test_faces_move_as_told(rng: np.random.Generator) -> None:
    strings, lengths = flipping_bits(20_000, 10, flip=0.025, redraw=0.25, rng=rng)
    assert (strings[1:] != strings[:-1]).mean() == pytest.approx(0.025, abs=0.003)
    assert set(lengths.tolist()) == set(range(1, 9))
    assert (lengths[1:] != lengths[:-1]).mean() == pytest.approx(0.25 * 7 / 8, abs=0.02)
    strings, lengths = switching_faces(20_000, 10, switch=0.025, longest=3, rng=rng)
    still = (strings[1:] == strings[:-1]).all(axis=1)
    assert 1 - still.mean() == pytest.approx(0.025, abs=0.005)
    assert (lengths[1:] == lengths[:-1])[still].all()
    assert set(lengths.tolist()) == {1, 2, 3}


FACES = PrefixFaces(1.0, np.zeros((2, 3)), np.array([1, 2]))
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "length": (lambda: PrefixFaces(1.0, np.zeros((2, 3)), np.array([0, 2])), "a least entry of 0"),
    "lengths": (lambda: PrefixFaces(1.0, np.zeros((2, 3)), np.array([1])), "lengths has shape [1]"),
    "charge": (lambda: PrefixFaces(1.0, np.zeros((1, 3)), np.array([1]), "x"), "charge is 'x'"),  # type: ignore[arg-type]
    "selector": (lambda: simulate_prefix_tracker(FACES, "x"), "selector is 'x'"),  # type: ignore[arg-type]
    "no rng": (lambda: simulate_prefix_tracker(FACES, "random point"), "rng is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])
