"""Trust regions: the best policy that is not far from the last one.

With Q = Q^{π_t}_t, the values of the played policy under the observed loss, and a radius α,

    per state     at every (h,s):  argmin ⟨π', Q⟩ + KL(π' ‖ π_t) / η      subject to  KL(π' ‖ π_t) ≤ α
    trajectory    argmin Σ_{h,s} d_h(s) [ ⟨π', Q⟩ + KL(π' ‖ π_t) / η ]    subject to  Σ_{h,s} d_h(s) KL ≤ α
    average       the same with the trajectory's KL divided by its length, Σ_{h,s} d_h(s) KL / H ≤ α

where d is the visiting probability under π_t. The paper says "a trust-region update, α = 0.12" and no more,
and which of the three it is decides how the update compares, so all are here by name. (In the last two the
states that π_t never visits weigh nothing; they take the same step as the others.)

The solution is π' ∝ π_t exp(−x Q) with one number x = 1/τ for each constraint: the largest x ≤ η at which
the constraint holds. The *role of η* is thus an upper bound on 1/τ. If every x satisfies the constraint
and η = ∞, π' is the greedy limit, π_t restricted to the best actions.

η = ∞ is the pure trust region. It gives exact zeros once the greedy limit lies within the radius, and from
a zero no multiplicative step returns: combine it with a floor. The default is finite and large, so that
the radius binds whenever Q-values differ by more than a few tenths, and nothing is ever lost for good.
With α = ∞ it is mirror descent.

    >>> learner = TrustRegion(MDP([[0, 0]], initial=0, horizon=1), radius=np.log(2), eta=np.inf)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1)                                  # greedy: exactly at the distance log 2 of uniform
    array([[[1., 0.]]])
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.evaluation import PolicyBackup, policy_backup
from normalfan.learners.options import StepSize, check_floor, check_positive, check_step_size, step_size
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

Kind: TypeAlias = Literal["per state", "average", "trajectory"]

DEFAULT_RADIUS = 0.12
"""The paper's α."""

RELATIVE_ACCURACY = 1e-12
"""How close to the radius, relative to it, a binding divergence is brought (logs beyond 1e4 allow less)."""

MOST_ITERATIONS = 500


class TrustRegion:
    """The step that minimises the linearised loss within a ball of relative entropy."""

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
        if kind not in get_args(Kind):
            raise InputError(f"kind is {kind!r}, but must be one of {', '.join(get_args(Kind))}: choose one.")
        self.mdp = mdp
        self.eta = check_step_size(eta, may_be_infinite=True)
        self.radius = check_positive("radius", radius, may_be_infinite=True)
        self.kind = kind
        self.floor = check_floor(mdp, floor)
        self.ties = ties
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: Any) -> None:
        policy = self.act(round)
        rows = self.mdp.horizon * self.mdp.n_states
        logs = self._logs.reshape(rows, -1)
        gaps = self._gaps(policy_backup(self.mdp, policy, loss)).reshape(rows, -1)
        eta = step_size(self.eta, round, may_be_infinite=True)
        if self.kind == "per state":
            steps = _largest_steps(logs, gaps, None, self.radius, eta)
        else:
            visits = occupancy(self.mdp, policy).sum(axis=2).reshape(rows)
            weights = visits / self.mdp.horizon if self.kind == "average" else visits
            steps = _largest_steps(logs, gaps, weights, self.radius, eta)
        moved = entropic_step(logs, _costs(gaps, steps)).reshape(self.mdp.shape)
        self._logs = with_floor(moved, self.floor)

    def _gaps(self, backup: PolicyBackup) -> FloatArray:
        """Q minus its least value among the actions still in play; differences of rounding are none."""
        in_play = self._logs > -np.inf
        gaps = backup.q - backup.q.min(axis=2, keepdims=True, where=in_play, initial=np.inf)
        tied = gaps <= self.ties.thresholds(backup.values, self.mdp.reachable)[:, :, None]
        return np.where(tied, 0.0, gaps)


def _largest_steps(
    logs: FloatArray, gaps: FloatArray, weights: FloatArray | None, radius: float, eta: float
) -> FloatArray:
    """The largest steps x ≤ η whose divergence is within the radius.

    Without weights, one step for each row [n]. With weights, a single one, [1], for the weighted sum of the
    rows' divergences.
    """
    divergence, _ = _divergence(logs, gaps, weights, np.full(len(logs) if weights is None else 1, eta))
    steps = np.full(len(divergence), eta)
    binding = divergence > radius * (1 + RELATIVE_ACCURACY)
    if weights is None:
        steps[binding] = _root(logs[binding], gaps[binding], None, radius, eta)
    elif binding[0]:
        steps = _root(logs, gaps, weights, radius, eta)
    return steps


def _root(
    logs: FloatArray, gaps: FloatArray, weights: FloatArray | None, radius: float, eta: float
) -> FloatArray:
    """The x in (0, η) at which the divergence, which increases with x, equals the radius.

    Newton's method on its square root, nearly linear in x at first, kept inside a bracket: a step that
    would leave the bracket is replaced by bisection of log x, or by doubling while there is no upper end.
    """
    largest = gaps.max(axis=1)
    # Divergence grows at most by the largest gap per unit of x, so this is a lower end.
    x = radius / largest if weights is None else np.array([radius / (weights @ largest)])
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
    logs: FloatArray, gaps: FloatArray, weights: FloatArray | None, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """KL(π_x ‖ π) for π_x ∝ π exp(−x·gaps), and its derivative x·Var_x(gaps); x may be infinite."""
    moved = entropic_step(logs, _costs(gaps, x))
    chance = np.exp(moved)
    change = np.subtract(moved, logs, out=np.zeros_like(logs), where=chance > 0)
    divergence = np.maximum((chance * change).sum(axis=1), 0.0)
    mean = (chance * gaps).sum(axis=1)
    variance = (chance * (gaps - mean[:, None]) ** 2).sum(axis=1)
    if weights is not None:
        divergence, variance = np.array([weights @ divergence]), np.array([weights @ variance])
    slope = np.multiply(x, variance, out=np.zeros_like(variance), where=variance > 0)
    return divergence, slope


def _costs(gaps: FloatArray, steps: FloatArray) -> FloatArray:
    """x·gaps, where an infinite step costs nothing on the actions without a gap."""
    return np.multiply(steps[:, None], gaps, out=np.zeros_like(gaps), where=gaps > 0)
