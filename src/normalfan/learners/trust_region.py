"""Trust regions: the best policy that is not far from the last one.

With Q the values of the played policy π_t under the observed loss, and a radius α,

    per state     at every (h,s):  argmin ⟨π', Q⟩ + KL(π' ‖ π_t) / η      subject to  KL(π' ‖ π_t) ≤ α
    trajectory    argmin Σ_{h,s} d_h(s) [ ⟨π', Q⟩ + KL(π' ‖ π_t) / η ]    subject to  Σ_{h,s} d_h(s) KL ≤ α
    average       the same with the trajectory's KL divided by its length, Σ_{h,s} d_h(s) KL / H ≤ α

where d is the visiting probability under π_t. The paper says "a trust-region update, α = 0.12" and no more.
Which of the three it is decides how the update compares, so all are here by name. (In the last two the states
that π_t never visits weigh nothing; they take the same step as the others.)

The solution is π' ∝ π_t exp(−x Q) with one number x for each constraint: the largest x ≤ η at which the
constraint is satisfied. If every x satisfies it and η = ∞, π' is the greedy limit, π_t restricted to the best
actions.

η = ∞ is the pure trust region. It gives exact zeros once the greedy limit lies within the radius, and from a
zero no multiplicative step returns: combine it with a floor. The default is finite and large, so that the
radius binds whenever Q-values differ by more than a few tenths, and nothing is ever lost for good.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.entropy import entropic_step
from normalfan.learners.evaluation import PolicyBackup, policy_backup
from normalfan.learners.mirror import MirrorDescent
from normalfan.learners.options import StepSize, check_positive, check_step_size, step_size
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

Kind: TypeAlias = Literal["per state", "average", "trajectory"]

DEFAULT_RADIUS = 0.12
"""The paper's α."""

RELATIVE_ACCURACY = 1e-12
"""How close to the radius, relative to it, a binding divergence is brought (logs beyond 1e4 allow less)."""

MOST_ITERATIONS = 500


class TrustRegion(MirrorDescent):
    """The step that minimises the linearised loss within a ball of relative entropy.

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−x Q^{π_t}(s,a)) for the largest x ≤ η_t that stays within the radius.

    Parameters
    ----------
    mdp : MDP
        The problem.
    eta : float or callable
        The largest step size η, or a function that gives it for each round; may be inf.
    radius : float
        α, the relative entropy that a step may spend; inf gives mirror descent.
    kind : {"per state", "average", "trajectory"}
        What the radius limits: the step at every state, or its expected sum along a trajectory, which
        "average" divides by the horizon.
    floor : float
        No action becomes less likely than this: the policy is mixed with the uniform one after every step.
    ties : TieRule
        Which differences of Q are rounding.

    Raises
    ------
    InputError
        If eta or the radius is not positive, the kind unknown, or the floor not in [0, 1/A).

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> learner = nf.learners.TrustRegion(arms, eta=np.inf, radius=np.log(2))
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1)                            # greedy: exactly at the distance log 2 of uniform
    array([[[1., 0.]]])
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
        if kind not in get_args(Kind):
            raise InputError(f"kind is {kind!r}, but must be one of {', '.join(get_args(Kind))}: choose one.")
        super().__init__(mdp, floor=floor)
        self.eta = check_step_size(eta, may_be_infinite=True)
        self.radius = check_positive("radius", radius, may_be_infinite=True)
        self.kind = kind
        self.ties = ties

    def _costs(self, round: int, loss: FloatArray) -> FloatArray:
        policy, rows = self.act(round), self.mdp.horizon * self.mdp.n_states
        logs = self._logs.reshape(rows, -1)
        gaps = self._gaps(policy_backup(self.mdp, policy, loss)).reshape(rows, -1)
        eta = step_size(self.eta, round, may_be_infinite=True)
        weights = None
        if self.kind != "per state":
            visits = occupancy(self.mdp, policy).sum(axis=2).reshape(rows)
            weights = visits / self.mdp.horizon if self.kind == "average" else visits
        steps = _largest_steps(logs, gaps, weights, self.radius, eta)
        return _charges(gaps, steps).reshape(self.mdp.shape)

    def _gaps(self, backup: PolicyBackup) -> FloatArray:
        """Q minus its least value among the actions still in play; differences of rounding are none."""
        in_play = self._logs > -np.inf
        gaps = backup.q - backup.q.min(axis=2, keepdims=True, where=in_play, initial=np.inf)
        tied = gaps <= self.ties.allowance(backup.values, self.mdp.reachable)[:, :, None]
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
    moved = entropic_step(logs, _charges(gaps, x))
    chance = np.exp(moved)
    change = np.subtract(moved, logs, out=np.zeros_like(logs), where=chance > 0)
    divergence = np.maximum((chance * change).sum(axis=1), 0.0)
    mean = (chance * gaps).sum(axis=1)
    variance = (chance * (gaps - mean[:, None]) ** 2).sum(axis=1)
    if weights is not None:
        divergence, variance = np.array([weights @ divergence]), np.array([weights @ variance])
    slope = np.multiply(x, variance, out=np.zeros_like(variance), where=variance > 0)
    return divergence, slope


def _charges(gaps: FloatArray, steps: FloatArray) -> FloatArray:
    """x·gaps, where an infinite step costs nothing on the actions without a gap."""
    return np.multiply(steps[:, None], gaps, out=np.zeros_like(gaps), where=gaps > 0)
