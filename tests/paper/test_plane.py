"""The shadow of a polytope: its corners and its fan against the engine's own faces."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_problem

import normalfan as nf
from normalfan_paper.plane import Shadow, example, shadow


def random_shadow(seed: int) -> tuple[nf.MDP, Shadow] | None:
    rng = np.random.default_rng(seed)
    mdp = random_problem(rng).mdp()
    if nf.Face(mdp, np.ones(mdp.shape, dtype=bool)).n_policies > 300:
        return None
    plane = shadow(mdp, rng.integers(-3, 4, size=(2, *mdp.shape)).astype(float))
    return (mdp, plane) if len(plane.corners) > 2 else None


def shadows() -> list[tuple[nf.MDP, Shadow]]:
    found = [random_shadow(seed) for seed in range(60)]
    return [example(), *(pair for pair in found if pair is not None)]


def test_some_polygons_are_tried() -> None:
    assert len(shadows()) > 10


@pytest.mark.parametrize(("mdp", "plane"), shadows())
def test_between_two_rays_a_corner_is_best(mdp: nf.MDP, plane: Shadow) -> None:
    n = len(plane.corners)
    for i in range(n):
        first, last = (plane.rays[k] / np.linalg.norm(plane.rays[k]) for k in (i, (i + 1) % n))
        for x, y in (first + last, 3 * first + last):
            loss = x * plane.along[0] + y * plane.along[1]
            best = nf.optimal_face(mdp, loss)
            assert best.minimise(loss)[0] == pytest.approx(plane.corners[i] @ [x, y], abs=1e-9)
            shades = [[float((v * d).sum()) for d in plane.along] for v in best.vertices()]
            np.testing.assert_allclose(shades, np.tile(plane.corners[i], (len(shades), 1)), atol=1e-9)


@pytest.mark.parametrize(("mdp", "plane"), shadows())
def test_on_a_ray_two_corners_tie(mdp: nf.MDP, plane: Shadow) -> None:
    for i, ray in enumerate(plane.rays):
        values = plane.corners @ ray
        assert values[i] == pytest.approx(values.min(), abs=1e-9)
        assert values[i - 1] == pytest.approx(values.min(), abs=1e-9)
        assert sum(values <= values.min() + 1e-9) == 2
        loss = ray[0] * plane.along[0] + ray[1] * plane.along[1]
        assert not nf.optimal_face(mdp, loss).is_vertex


def test_the_inside_is_never_best() -> None:
    _, plane = example()
    assert len(plane.corners) + len(plane.inside) == 8
    for ray in plane.rays:
        assert (plane.inside @ ray > (plane.corners @ ray).min()).all()
