"""Learners: the paper's tracker and baselines behind one protocol.

    one state         Hedge, OptimisticHedge, EuclideanMirrorDescent
    every problem     MirrorDescent, OptimisticMirrorDescent, TrustRegion, ThresholdedMirrorDescent
    the paper's own   FaceTracker, with a selector
    of learners       Combined, never much worse than the best of them

All play the uniform policy first and see the whole loss of every round.
"""

from __future__ import annotations

from normalfan.learners.combined import Combined
from normalfan.learners.learner import ExponentialAverage, FromHistory, LastLoss, Learner, LossModel
from normalfan.learners.mirror import (
    EuclideanMirrorDescent,
    Hedge,
    MirrorDescent,
    OptimisticHedge,
    OptimisticMirrorDescent,
    ThresholdedMirrorDescent,
)
from normalfan.learners.selectors import (
    FaceTracker,
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    Selector,
)
from normalfan.learners.trust_region import TrustRegion

__all__ = [
    "Combined",
    "EuclideanMirrorDescent",
    "ExponentialAverage",
    "FaceTracker",
    "FromHistory",
    "Hedge",
    "LastLoss",
    "Learner",
    "Lexicographic",
    "LossModel",
    "MirrorDescent",
    "OptimisticHedge",
    "OptimisticMirrorDescent",
    "Oracle",
    "Predictive",
    "RandomPoint",
    "RandomVertex",
    "Selector",
    "ThresholdedMirrorDescent",
    "TrustRegion",
]
