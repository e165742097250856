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

from normalfan.errors import check_choice, check_number
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import StepSize, check_step_size, step_size
from normalfan.learners.mirror import MirrorDescent
from normalfan.pricing.kernels import whole_problem
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.mdp import MDP

Kind: TypeAlias = Literal["per state", "average", "trajectory"]
Direction: TypeAlias = Literal["new from old", "old from new"]

DEFAULT_RADIUS = 0.12  # the paper's α


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

    def _step(self, round: int, policy: FloatArray, loss: FloatArray) -> tuple[FloatArray, FloatArray]:
        from normalfan._kernels.playing import values_of, visits_of
        from normalfan._kernels.trusting import trust_step

        problem, weights = whole_problem(self.mdp), None
        if self.kind != "per state":
            weights = visits_of(problem, policy) / (self.mdp.horizon if self.kind == "average" else 1)
        values, q = values_of(problem, policy, loss)
        slack = self.ties.allowance(values, self.mdp.reachable)
        eta = step_size(self.eta, round, may_be_infinite=True)
        backward = self.direction == "old from new"
        logs, policy = trust_step(
            self._logs, q, slack, weights, eta, self.radius, self.floor, backward=backward
        )
        return logs, read_only(policy)
