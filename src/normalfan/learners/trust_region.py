"""Trust regions: the best policy that is not far from the last one.

With Q the values of the played policy π_t under the observed loss, d its visiting probabilities, and KL that
of π' from π_t at a state, the step minimises ⟨π', Q⟩ + KL / η subject to

    per state:  KL ≤ α everywhere,   trajectory:  Σ_{h,s} d_h(s) KL ≤ α,   average:  Σ_{h,s} d_h(s) KL ≤ α·H.

The solution is π' ∝ π_t exp(−x Q) with the largest x ≤ η that satisfies it: docs/details/learners.md. There,
KL is KL(π' ‖ π_t), "new from old". With KL(π_t ‖ π'), "old from new", the step goes along the same natural
gradient as far as that allows, which is how TRPO's line search measures it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import check_choice, check_number
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import StepSize, check_step_size, step_size
from normalfan.learners.mirror import MirrorDescent, entropic_step, policy_backup
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

Kind: TypeAlias = Literal["per state", "average", "trajectory"]
Direction: TypeAlias = Literal["new from old", "old from new"]

DEFAULT_RADIUS = 0.12  # the paper's α
RELATIVE_ACCURACY = 1e-12  # of a binding divergence, relative to the radius (logs beyond 1e4 allow less)
MOST_ITERATIONS = 500


class TrustRegion(MirrorDescent):
    """Mirror descent by the largest step that stays within a limit on its relative entropy.

    Parameters
    ----------
    mdp, eta, floor
        As in `MirrorDescent`; η is the largest step size, and may be inf.
    radius : float
        α > 0, the relative entropy that a step may spend; inf gives mirror descent.
    kind : {"per state", "average", "trajectory"}
        What it limits: the step at every state, or its mean or expected sum along a trajectory.
    direction : {"new from old", "old from new"}
        Which relative entropy: KL(new ‖ old), which an action given up spares, or KL(old ‖ new), which
        becomes infinite as a played action is given up. It matters: see docs/paper.md.
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
        direction: Direction = "new from old",
        floor: float = 0.0,
        ties: TieRule = DEFAULT_TIES,
    ) -> None:
        check_choice("kind", kind, get_args(Kind))
        check_choice("direction", direction, get_args(Direction))
        super().__init__(mdp, floor=floor)
        self.eta = check_step_size(eta, may_be_infinite=True)
        self.radius = check_number("radius", radius, positive=True, may_be_infinite=True)
        self.kind = kind
        self.direction = direction
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
        divergence, _ = _divergence(logs, gaps, weights, steps, self.direction)
        binding = divergence > self.radius * (1 + RELATIVE_ACCURACY)
        bound = logs[binding], gaps[binding], weights[binding]
        steps[binding] = _root(*bound, self.radius, eta, self.direction)
        return _charges(gaps, steps).reshape(self.mdp.shape)


def _root(
    logs: FloatArray, gaps: FloatArray, weights: FloatArray, radius: float, eta: float, direction: Direction
) -> FloatArray:
    """[G]: the x in (0, η) at which the divergence, which increases with x, equals the radius."""
    # Newton's method on its square root, nearly linear in x at first, kept inside a bracket: a step that
    # would leave the bracket is replaced by bisection of log x, or by doubling while it has no upper end.
    # Divergence grows at most by the largest gap per unit of x, so this is a lower end.
    x: FloatArray = radius / np.vecdot(weights, gaps.max(axis=2))
    low, high = x, np.full_like(x, eta)
    for _ in range(MOST_ITERATIONS):
        divergence, slope = _divergence(logs, gaps, weights, x, direction)
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
    logs: FloatArray, gaps: FloatArray, weights: FloatArray, x: FloatArray, direction: Direction
) -> tuple[FloatArray, FloatArray]:
    """[G]: the weighted KL of π_x ∝ π exp(−x·gaps) and π, and its derivative by x."""
    moved = entropic_step(logs, _charges(gaps, x))
    old, new = np.exp(logs), np.exp(moved)
    mean = (new * gaps).sum(axis=2, keepdims=True)
    if direction == "new from old":
        change = np.subtract(moved, logs, out=np.zeros_like(logs), where=new > 0)
        terms, spread = new * change, np.vecdot(weights, (new * (gaps - mean) ** 2).sum(axis=2))
        slope = np.multiply(x, spread, out=np.zeros_like(spread), where=spread > 0)
    else:
        change = np.subtract(logs, moved, out=np.zeros_like(logs), where=old > 0)
        terms = old * change
        slope = np.vecdot(weights, (old * gaps).sum(axis=2) - mean[:, :, 0])
    # A state that is never visited weighs nothing, however far it moves.
    divergence = np.maximum(terms.sum(axis=2), 0.0)
    return np.multiply(weights, divergence, out=np.zeros_like(weights), where=weights > 0).sum(axis=1), slope


def _charges(gaps: FloatArray, steps: FloatArray) -> FloatArray:
    """x·gaps, where an infinite step costs nothing on the actions without a gap."""
    return np.multiply(steps[:, None, None], gaps, out=np.zeros_like(gaps), where=gaps > 0)
