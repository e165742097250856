"""Proposition "Unpredictable priced crossings are unavoidable", played out.

One state, one step, two actions; each round a fair coin decides which action costs γ and which nothing.
Whatever a learner plays costs it γ/2 in expectation against an optimum of 0, so E[DReg_T] = γT/2 for
*every* learner: the paper's lower bound is an equality. It is not a matter of thin margins, the cone
margin is γ throughout; it is the value error of any prediction that is large.

    >>> played = lower_bound(gamma=0.25, rounds=100, runs=20, rng=np.random.default_rng(0))
    >>> played.left, played.holds
    (12.5, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from normalfan.errors import InputError
from normalfan.learners.learner import Learner
from normalfan.learners.selectors import FaceTracker
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.mdp import MDP
from normalfan.regret import run
from normalfan_paper.environments.constructions import lower_bound_adversary

STANDARD_ERRORS = 4.0
"""How far below the bound the mean of a finite number of runs may fall by chance."""


@dataclass(frozen=True, slots=True, eq=False)
class LowerBound:
    """γT/2 ≤ E[DReg_T], with the mean of some runs in place of the expectation."""

    left: float  # γT/2
    regrets: FloatArray  # [runs]  the dynamic regret of each run
    standard_error: float  # of their mean

    @property
    def right(self) -> float:
        """The realised mean."""
        return math.fsum(self.regrets) / len(self.regrets)

    @property
    def holds(self) -> bool:
        """Whether the mean is above the bound, up to `STANDARD_ERRORS`."""
        return self.left <= self.right + STANDARD_ERRORS * self.standard_error


def lower_bound(
    gamma: float,
    rounds: int,
    *,
    runs: int,
    rng: np.random.Generator,
    learner: Callable[[MDP], Learner] = FaceTracker,
) -> LowerBound:
    """Run a learner against the coin-flipping adversary, `runs` times over `rounds` rounds."""
    if runs < 2:
        raise InputError(f"runs is {runs}, but a standard error needs at least 2: pass more.")
    regrets = np.empty(runs)
    for i, coins in enumerate(rng.spawn(runs)):
        mdp, losses = lower_bound_adversary(gamma, rounds, rng=coins)
        regrets[i] = run(mdp, learner(mdp), losses).total_regret
    error = float(regrets.std(ddof=1)) / math.sqrt(runs)
    return LowerBound(gamma * rounds / 2.0, read_only(regrets), error)
