"""prop-predsel, prop-bregsel, prop-degsel: what a choice on a degenerate face may cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import optimal_face
from normalfan.learners.learner import LastLoss
from normalfan.learners.selectors import FaceTracker
from normalfan.problem.arrays import FloatArray
from normalfan.regret import run
from normalfan_paper.bounds.selection_bounds import bregman_bound, predictive_bound
from normalfan_paper.bounds.spread import entropy_spread, euclidean_spread
from normalfan_paper.environments.constructions import degenerate_selection
from normalfan_paper.experiments.statements import counterexamples
from normalfan_paper.experiments.statements.counterexamples import GAMMA
from normalfan_paper.experiments.statements.finding import Finding, assuming, reported, written
from normalfan_paper.experiments.statements.instances import Case, cases, random_policy
from normalfan_paper.learners.sticky import StickyEntropy, StickyEuclidean


def prediction_of(case: Case) -> FloatArray:
    """A model of the coming loss, off by a random amount from a thousandth to three."""
    noise: FloatArray = case.rng.normal(size=case.loss.shape) * 10 ** case.rng.uniform(-3, 0.5)
    return case.loss + noise


def predictive(instances: int) -> Iterator[Finding]:
    """ε ≤ diam(F)·δ in three pairs of dual norms."""
    for case in cases("prop-predsel", instances, degenerate=True):
        face = optimal_face(case.mdp, case.previous)
        bound = predictive_bound(face, prediction_of(case), case.loss)
        for pair in bound.pairs:
            slack = pair.right - bound.left
            yield written("prop-predsel", pair.norm, slack, slack >= -bound.rounding, case.instance)


def bregman(instances: int) -> Iterator[Finding]:
    """ε ≤ diam(F)·δ + λR with two geometries; and how large R is where z usually sits."""
    for case in cases("prop-bregsel", instances, degenerate=True):
        face = optimal_face(case.mdp, case.previous)
        model, weight = prediction_of(case), float(10 ** case.rng.uniform(-2, 1))
        played = random_policy(case.mdp, case.rng)
        told = LastLoss()
        told.update(model)
        entropic, euclidean = StickyEntropy(told, weight), StickyEuclidean(told, weight)
        reference = entropic.reference(face, played)
        for name, selector, spread in (
            ("entropy", entropic, entropy_spread(face, reference)),
            ("Euclidean", euclidean, euclidean_spread(face, occupancy(case.mdp, played))),
        ):
            chosen = selector.select(face, played)
            bound = bregman_bound(face, model, case.loss, chosen, weight=weight, spread=spread)
            slack = bound.right - bound.left
            yield written("prop-bregsel", name, slack, bound.holds, case.instance)
        at_vertex = entropy_spread(face, face.minimise(model)[1]).value
        yield written(
            "prop-bregsel/finite", "R at a vertex", at_vertex, np.isfinite(at_vertex), case.instance
        )
        mixed = entropy_spread(face, reference).value
        yield assuming("prop-bregsel/finite", "R of a mixed z", mixed, np.isfinite(mixed), case.instance)
    found = counterexamples.frozen_by_the_boundary()
    for name, value in found.items():
        yield reported("prop-bregsel/finite", name, value)


def degenerate(_: int) -> Iterator[Finding]:
    """Equal prices, different regret of a fixed selector; and what the two sequences share."""
    logs = [run(mdp, FaceTracker(mdp), losses) for mdp, losses in degenerate_selection(GAMMA)]
    prices, regrets = ([float(column[1]) for column in columns] for columns in (
        [log.prices for log in logs], [log.regrets for log in logs]))  # fmt: skip
    separated = prices[0] == prices[1] and regrets[0] != regrets[1]
    yield written("prop-degsel", "difference of regrets", abs(regrets[0] - regrets[1]), separated)
    for i, (price, regret) in enumerate(zip(prices, regrets, strict=True)):
        yield reported("prop-degsel", f"price_{i}", price)
        yield reported("prop-degsel", f"regret_{i}", regret)
    found = counterexamples.best_points_differ()
    yield written("prop-degsel/best-point", "distance", found["distance"], found["distance"] == 0.0)
    yield assuming("prop-degsel/best-point", "gap of values", found["value_gap"], found["value_gap"] == 0.0)
    yield reported("prop-degsel/best-point", "value_gap", found["value_gap"])
    yield reported("prop-degsel/best-point", "distance", found["distance"])
