"""Diameters against all pairs of listed policies, on random faces given by their masks."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from normalfan.errors import InputError
from normalfan.geometry.face import Face, whole_polytope
from normalfan.problem.mdp import MDP, follow
from normalfan_paper.bounds import diameter as diameter_module
from normalfan_paper.bounds.diameter import Diameter, diameter

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}


def random_kernel(rng, H, S, A, certain):
    kernel = np.zeros((H, S, A, S))
    for row in kernel.reshape(-1, S):
        among = rng.choice(S, size=1 if certain else rng.integers(1, S + 1), replace=False)
        np.add.at(row, rng.choice(among, size=1 if certain else rng.choice([1, 2, 8])), 1.0)
        row /= row.sum()
    return kernel


def random_face(seed, certain):
    """A face with at most a few hundred policies, and its kernel and start."""
    rng = np.random.default_rng([seed, certain])
    while True:
        H, S, A = (int(n) for n in rng.integers(1, 4, size=3))
        kernel = random_kernel(rng, H, S, A, certain)
        start = random_kernel(rng, 1, S, 1, certain)[0, 0, 0]
        mask = rng.random((H, S, A)) < rng.choice([0.4, 0.7, 1.0])
        mask[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = True
        mdp = MDP(kernel, start)
        face = Face(mdp, follow(mdp, mask)[0])
        counts = face.mask.sum(axis=2)
        if counts[counts > 0].prod() <= 250:
            return face, kernel, start


def listed_occupancies(face, kernel, start):
    """Every deterministic policy of the face, followed forward with plain loops."""
    H, S, _ = face.mask.shape
    choices = [np.flatnonzero(face.mask[h, s]) for h in range(H) for s in range(S)]
    visits = []
    for policy in product(*(list(kept) or [0] for kept in choices)):
        actions = np.reshape(policy, (H, S))
        occupancy, arriving = np.zeros(face.mask.shape), start
        for h in range(H):
            occupancy[h, np.arange(S), actions[h]] = arriving
            arriving = arriving @ kernel[h, np.arange(S), actions[h]]
        visits.append(occupancy.reshape(-1))
    return np.array(visits)


def listed_diameter(visits, order):
    differences = visits[:, None] - visits[None]
    return np.linalg.norm(differences, ord=order, axis=2).max()


@pytest.mark.parametrize("certain", [True, False])
def test_diameters_are_those_of_the_list(certain):
    kinds, flat, tight = Counter(), 0, 0
    for seed in range(200):
        face, kernel, start = random_face(seed, certain)
        visits = listed_occupancies(face, kernel, start)
        flat += face.is_vertex
        for norm, order in NORMS.items():
            expected = listed_diameter(visits, order)
            listed = diameter(face, norm)
            assert listed.kind == "exact"
            assert listed.value == pytest.approx(expected, rel=1e-9, abs=1e-12), (seed, norm)
            found = diameter(face, norm, enumerate_up_to=0)
            assert found.value >= expected * (1 - 1e-9), (seed, norm)
            if found.kind == "exact":
                assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-12), (seed, norm)
            else:
                tight += found.value <= expected * (1 + 1e-9)
            kinds[norm, found.kind] += 1
    assert 5 < flat < 150
    for norm in ("l1", "l2"):
        assert (kinds[norm, "upper bound"] > 50) == (not certain)
    assert kinds["linf", "exact"] == 200
    assert (tight > 20) == (not certain)


@pytest.mark.parametrize("norm", NORMS)
def test_representations_and_batches_agree(monkeypatch, norm):
    for seed in range(40):
        face, kernel, start = random_face(seed, False)
        H, S, A = face.mask.shape
        thin = MDP([sparse.csr_array(kernel[h].reshape(S * A, S)) for h in range(H)], start)
        expected = diameter(face, norm, enumerate_up_to=0)
        monkeypatch.setattr(diameter_module, "TARGETS_AT_ONCE", 1)
        found = diameter(Face(thin, face.mask), norm, enumerate_up_to=0)
        monkeypatch.undo()
        assert found.kind == expected.kind
        assert found.value == pytest.approx(expected.value, rel=1e-12)


def test_a_walk_given_by_its_next_states_is_as_large_as_its_dense_twin():
    for seed in range(40):
        face, kernel, start = random_face(seed, True)
        walk = MDP(kernel.argmax(axis=3), int(start.argmax()))
        for norm in NORMS:
            assert diameter(Face(walk, face.mask), norm) == diameter(face, norm)


def test_paths_may_part_and_meet_again():
    """Free, forced, free: the paths differ on the first and the last layer, at most."""
    nexts = np.zeros((3, 2, 2), dtype=int)
    mdp = MDP(nexts, 0)
    mask = np.ones((3, 2, 2), dtype=bool)
    mask[1, :, 1] = False
    face = Face(mdp, follow(mdp, mask)[0])
    assert diameter(face).value == 4.0
    assert diameter(face, "l2").value == 2.0
    assert diameter(face, "linf").value == 1.0


def test_policies_agree_until_the_first_choice():
    """Three arms in a state of probability 1/8: the box has width 3/8, the distance is 2/8."""
    mdp = MDP(np.zeros((1, 2, 3), dtype=int), [7 / 8, 1 / 8])
    mask = np.ones((1, 2, 3), dtype=bool)
    mask[0, 0, 1:] = False
    face = Face(mdp, follow(mdp, mask)[0])
    assert diameter(face, enumerate_up_to=0) == Diameter(1 / 4, "upper bound")
    assert diameter(face) == Diameter(1 / 4, "exact")


def test_a_bound_never_exceeds_twice_the_horizon():
    rng = np.random.default_rng(3)
    face = whole_polytope(MDP(rng.dirichlet(np.ones(8), size=(6, 8, 3)), 0))
    bound = diameter(face)
    assert bound.kind == "upper bound"
    assert 2.0 <= bound.value <= 12.0
    assert diameter(face, "l2").value <= np.sqrt(12.0)


def test_long_horizons_exhaust_no_stack():
    mdp = MDP([[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.6, 0.4]]], initial=0, horizon=1200)
    mask = np.zeros(mdp.shape, dtype=bool)
    mask[:, :, 0] = mask[-1, 0, 1] = True  # a choice at the end
    face = Face(mdp, mask)
    first, second = face.vertices()
    assert diameter(face) == Diameter(np.abs(first - second).sum(), "exact")


def test_an_unknown_norm_is_refused():
    face = whole_polytope(MDP(np.array([[0, 0]]), 0, horizon=1))
    with pytest.raises(InputError, match="norm is 'l3'"):
        diameter(face, "l3")
