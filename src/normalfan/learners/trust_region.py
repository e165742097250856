"""Trust regions: the best policy that is not far from the last one.

With Q the values of the played policy π_t under the observed loss, d its visiting probabilities, and KL that
of π' from π_t at a state, the step minimises ⟨π', Q⟩ + KL / η subject to

    per state:  KL ≤ α everywhere,   trajectory:  Σ_{h,s} d_h(s) KL ≤ α,   average:  Σ_{h,s} d_h(s) KL ≤ α·H.

The solution is π' ∝ π_t exp(−x Q) with the largest x ≤ η that satisfies it: docs/details/learners.md.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import check_choice
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import StepSize, check_positive, check_step_size, step_size
from normalfan.learners.mirror import MirrorDescent, entropic_step, policy_backup
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

Kind: TypeAlias = Literal["per state", "average", "trajectory"]

DEFAULT_RADIUS = 0.12  # the paper's α
RELATIVE_ACCURACY = 1e-12  # of a binding divergence, relative to the radius (logs beyond 1e4 allow less)
MOST_ITERATIONS = 500


class TrustRegion(MirrorDescent):
    """Mirror descent by the largest step that stays within a limit on its relative entropy.

    Parameters
    ----------
    mdp : MDP
    eta : float or callable
        The largest step size η > 0, or a function that gives it for each round; may be inf.
    radius : float
        α > 0, the relative entropy that a step may spend; inf gives mirror descent.
    kind : {"per state", "average", "trajectory"}
        What it limits: the step at every state, or its mean or expected sum along a trajectory.
    floor : float
        In [0, 1/A): no action becomes less likely than this.
    ties : TieRule

    Examples
    --------
    >>> learner = TrustRegion(MDP([[0, 0]], initial=0, horizon=1), radius=0.12)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.74, 0.26]]])
    """

    def __init__(
        self,
        mdp: MDP,
        eta: StepSize = 10.0,
        *,
        radius: float = DEFAULT_RADIUS,
        kind: Kind = "per state",
        floor: float = 0.0,
        ties: TieRule = DEFAULT_TIES,
    ) -> None:
        check_choice("kind", kind, get_args(Kind))
        super().__init__(mdp, floor=floor)
        self.eta = check_step_size(eta, may_be_infinite=True)
        self.radius = check_positive("radius", radius, may_be_infinite=True)
        self.kind = kind
        self.ties = ties

    def _costs(self, round: int, loss: FloatArray) -> FloatArray:
        policy, states = self.act(round), self.mdp.horizon * self.mdp.n_states
        # One step for each group of states: every state is a group of its own, or all of them are one.
        if self.kind == "per state":
            weights = np.ones((states, 1))
        else:
            weights = occupancy(self.mdp, policy).sum(axis=2).reshape(1, states)
            weights = weights / self.mdp.horizon if self.kind == "average" else weights
        logs = self._logs.reshape(*weights.shape, -1)
        # Q minus its least value among the actions still in play; differences of rounding are none.
        values, q = policy_backup(self.mdp, policy, loss)
        gaps = q - q.min(axis=2, keepdims=True, where=self._logs > -np.inf, initial=np.inf)
        gaps[gaps <= self.ties.allowance(values, self.mdp.reachable)[:, :, None]] = 0.0
        gaps = gaps.reshape(logs.shape)
        eta = step_size(self.eta, round, may_be_infinite=True)
        steps = np.full(len(weights), eta)
        divergence, _ = _divergence(logs, gaps, weights, steps)
        binding = divergence > self.radius * (1 + RELATIVE_ACCURACY)
        steps[binding] = _root(logs[binding], gaps[binding], weights[binding], self.radius, eta)
        return _charges(gaps, steps).reshape(self.mdp.shape)


def _root(logs: FloatArray, gaps: FloatArray, weights: FloatArray, radius: float, eta: float) -> FloatArray:
    """[G]: the x in (0, η) at which the divergence, which increases with x, equals the radius."""
    # Newton's method on its square root, nearly linear in x at first, kept inside a bracket: a step that
    # would leave the bracket is replaced by bisection of log x, or by doubling while it has no upper end.
    # Divergence grows at most by the largest gap per unit of x, so this is a lower end.
    x: FloatArray = radius / np.vecdot(weights, gaps.max(axis=2))
    low, high = x, np.full_like(x, eta)
    for _ in range(MOST_ITERATIONS):
        divergence, slope = _divergence(logs, gaps, weights, x)
        low, high = np.where(divergence <= radius, x, low), np.where(divergence > radius, x, high)
        close = np.abs(divergence - radius) <= RELATIVE_ACCURACY * radius
        if (close | (high <= np.nextafter(low, np.inf))).all():
            break
        root = np.sqrt(divergence)
        rise = 2 * root * (np.sqrt(radius) - root)
        # Where the slope has underflowed the quotient is no number in (low, high), which is all it is asked.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            newton = x + rise / slope
        middle = np.where(np.isinf(high), 2 * low, np.sqrt(low * high))
        better = np.where((low < newton) & (newton < high), newton, middle)
        x = np.where(close, x, better)
    return np.where(close, x, low)


def _divergence(
    logs: FloatArray, gaps: FloatArray, weights: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """[G]: the weighted KL(π_x ‖ π) for π_x ∝ π exp(−x·gaps), and its derivative x·Var_x(gaps)."""
    moved = entropic_step(logs, _charges(gaps, x))
    chance = np.exp(moved)
    change = np.subtract(moved, logs, out=np.zeros_like(logs), where=chance > 0)
    divergence = np.maximum((chance * change).sum(axis=2), 0.0)
    mean = (chance * gaps).sum(axis=2, keepdims=True)
    variance = np.vecdot(weights, (chance * (gaps - mean) ** 2).sum(axis=2))
    slope = np.multiply(x, variance, out=np.zeros_like(variance), where=variance > 0)
    return np.vecdot(weights, divergence), slope


def _charges(gaps: FloatArray, steps: FloatArray) -> FloatArray:
    """x·gaps, where an infinite step costs nothing on the actions without a gap."""
    return np.multiply(steps[:, None, None], gaps, out=np.zeros_like(gaps), where=gaps > 0)
