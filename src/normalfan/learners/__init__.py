"""Learners: the baselines of the paper, and their neighbours, behind one protocol.

    one state         Hedge, OptimisticHedge, FixedShare, EuclideanMirrorDescent
    every problem     MirrorDescent, OptimisticMirrorDescent, TrustRegion, ThresholdedMirrorDescent, OReps
    models            LastLoss, ExponentialAverage, FromHistory

Each is built as `Name(mdp, eta=…)`, plays the uniform policy first and sees the whole loss of every round.
"""

from __future__ import annotations

from normalfan.learners.euclidean import EuclideanMirrorDescent, project_onto_simplex
from normalfan.learners.evaluation import PolicyBackup, policy_backup
from normalfan.learners.fixed_share import FixedShare
from normalfan.learners.hedge import Hedge, OptimisticHedge
from normalfan.learners.mirror import MirrorDescent, OptimisticMirrorDescent
from normalfan.learners.models import ExponentialAverage, FromHistory, LastLoss, LossModel
from normalfan.learners.options import StepSize
from normalfan.learners.oreps import OReps
from normalfan.learners.protocol import Clairvoyant, Learner
from normalfan.learners.thresholded import ThresholdedMirrorDescent
from normalfan.learners.trust_region import TrustRegion

__all__ = [
    "Clairvoyant",
    "EuclideanMirrorDescent",
    "ExponentialAverage",
    "FixedShare",
    "FromHistory",
    "Hedge",
    "LastLoss",
    "Learner",
    "LossModel",
    "MirrorDescent",
    "OReps",
    "OptimisticHedge",
    "OptimisticMirrorDescent",
    "PolicyBackup",
    "StepSize",
    "ThresholdedMirrorDescent",
    "TrustRegion",
    "policy_backup",
    "project_onto_simplex",
]
