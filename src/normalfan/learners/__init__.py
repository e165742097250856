"""Learners: the paper's tracker and baselines behind one protocol.

    one state         Hedge, OptimisticHedge, EuclideanMirrorDescent
    every problem     MirrorDescent, OptimisticMirrorDescent, TrustRegion, ThresholdedMirrorDescent
    the paper's own   FaceTracker, with a selector

All play the uniform policy first and see the whole loss of every round.
"""

from __future__ import annotations

from normalfan.learners.mirror import (
    EuclideanMirrorDescent,
    Hedge,
    MirrorDescent,
    OptimisticHedge,
    OptimisticMirrorDescent,
    PolicyBackup,
    policy_backup,
    project_onto_simplex,
)
from normalfan.learners.models import ExponentialAverage, FromHistory, LastLoss, LossModel
from normalfan.learners.options import StepSize
from normalfan.learners.protocol import Clairvoyant, Learner
from normalfan.learners.selectors import (
    FaceTracker,
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    Selector,
    StickyEntropy,
)
from normalfan.learners.thresholded import ThresholdedMirrorDescent
from normalfan.learners.trust_region import TrustRegion

__all__ = [
    "Clairvoyant",
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
    "PolicyBackup",
    "Predictive",
    "RandomPoint",
    "RandomVertex",
    "Selector",
    "StepSize",
    "StickyEntropy",
    "ThresholdedMirrorDescent",
    "TrustRegion",
    "policy_backup",
    "project_onto_simplex",
]
