"""Learners: the paper's tracker and baselines, and their neighbours, behind one protocol.

    one state         Hedge, OptimisticHedge, FixedShare, EuclideanMirrorDescent
    every problem     MirrorDescent, OptimisticMirrorDescent, TrustRegion, ThresholdedMirrorDescent, OReps
    the paper's own   FaceTracker, with a selector: Lexicographic, RandomVertex, RandomPoint, Oracle,
                      Predictive, StickyEntropy, StickyEuclidean
    models            LastLoss, ExponentialAverage, FromHistory

The baselines are built as `Name(mdp, eta=…)`, the tracker as `FaceTracker(mdp, selector)`. All play the
uniform policy first and see the whole loss of every round.
"""

from __future__ import annotations

from normalfan.learners.euclidean import EuclideanMirrorDescent, project_onto_simplex
from normalfan.learners.evaluation import PolicyBackup, policy_backup
from normalfan.learners.mirror import (
    FixedShare,
    Hedge,
    MirrorDescent,
    OptimisticHedge,
    OptimisticMirrorDescent,
)
from normalfan.learners.models import ExponentialAverage, FromHistory, LastLoss, LossModel
from normalfan.learners.options import StepSize
from normalfan.learners.oreps import OReps
from normalfan.learners.protocol import Clairvoyant, Learner
from normalfan.learners.selectors import (
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    Selector,
)
from normalfan.learners.sticky import StickyEntropy, StickyEuclidean
from normalfan.learners.thresholded import ThresholdedMirrorDescent
from normalfan.learners.tracker import FaceTracker
from normalfan.learners.trust_region import TrustRegion

__all__ = [
    "Clairvoyant",
    "EuclideanMirrorDescent",
    "ExponentialAverage",
    "FaceTracker",
    "FixedShare",
    "FromHistory",
    "Hedge",
    "LastLoss",
    "Learner",
    "Lexicographic",
    "LossModel",
    "MirrorDescent",
    "OReps",
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
    "StickyEuclidean",
    "ThresholdedMirrorDescent",
    "TrustRegion",
    "policy_backup",
    "project_onto_simplex",
]
