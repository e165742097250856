"""Bounds on reach probabilities against a list of all deterministic policies."""

from __future__ import annotations

from collections import Counter

import numpy as np
from listed_policies import SEEDS, instance, least_positive_reach, suboptimality

from normalfan.geometry.face import optimal_face
from normalfan.geometry.reach import (
    attained_reach,
    backward_pair,
    forward_pair,
    kept_rows,
    reach_bound,
    reach_ceiling,
)


def test_bounds_hold_for_every_target_and_each_is_sometimes_needed():
    best_at = Counter()
    proven = targets = 0
    for seed in SEEDS:
        problem, visits = instance(seed)
        face = optimal_face(problem.mdp, problem.loss)
        least = least_positive_reach(visits, problem.loss)
        rows = kept_rows(face)
        forward = forward_pair(face, rows)
        starts = np.flatnonzero(problem.start)
        weight = problem.start[starts]
        np.testing.assert_array_equal(np.isfinite(forward.some), np.isfinite(least))
        for h, s in np.argwhere(face.reached):
            to_target = backward_pair(face, rows, h, s)
            sure, some = to_target.sure[0, starts], to_target.some[0, starts]
            alone = {
                "forward": forward.some[h, s],
                "backward": weight @ sure + (weight * (some - sure)).min(),
                "joined": reach_bound(forward, to_target),
            }
            attained = attained_reach(face, rows, to_target, s)
            assert max(alone.values()) <= alone["joined"] * (1 + 1e-9)
            assert alone["joined"] <= least[h, s] * (1 + 1e-9) <= attained * (1 + 2e-9)
            for name, bound in alone.items():
                best_at[name] += bound >= least[h, s] * (1 - 1e-9)
            targets += 1
            proven += attained <= alone["joined"] * (1 + 1e-9)
    assert min(best_at["forward"], best_at["backward"]) < best_at["joined"] < targets
    assert 0.9 * targets < proven < targets


def test_the_ceiling_is_above_every_reach_and_exact_on_a_vertex():
    vertices = 0
    for seed in SEEDS:
        problem, visits = instance(seed)
        face = optimal_face(problem.mdp, problem.loss)
        reach = visits[suboptimality(visits, problem.loss) == 0].sum(axis=3).max(axis=0)
        ceiling = reach_ceiling(face)
        assert (reach <= ceiling).all()
        if face.is_vertex:
            vertices += 1
            np.testing.assert_array_equal(reach, ceiling)
    assert vertices > 50
