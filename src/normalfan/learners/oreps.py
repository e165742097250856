"""O-REPS: mirror descent on occupancy measures (Zimin and Neu, 2013).

    q_{t+1} = argmin over q in the polytope of  η_t ⟨q, ℓ_t⟩ + D(q, q_t),
    D(q, p) = Σ_{h,s,a} [ q log(q/p) − q + p ],        the unnormalised relative entropy

One projection a round: the unconstrained step q_t exp(−η ℓ_t), then the nearest occupancy measure in D
(`projection`). Unlike policy mirror descent it pays for moving the *visits* of states, not only for the
choices made there. Losses that differ by a potential, v_h(s) − E[v_{h+1}(s')], cost every policy the same
up to a constant and have the same projection, so the optimal advantages stand in for the loss: all numbers
are then as small as the problem allows.

A floor f mixes q with the visits u of the uniform policy, q ← (1 − A·f) q + A·f·u, again an occupancy; so
here it bounds q_h(s,a) from below, by f·u_h(s), and not the choices of a state that q visits more than u.

    >>> learner = OReps(MDP([[0, 0]], initial=0, horizon=1), eta=np.log(3))        # one state: Hedge
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(9)
    array([[[0.75, 0.25]]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.learners.entropy import normalised, probabilities, uniform_logs
from normalfan.learners.options import (
    DEFAULT_ETA,
    StepSize,
    check_floor,
    check_positive,
    check_step_size,
    step_size,
)
from normalfan.learners.projection import project_onto_occupancies
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class OReps:
    """Mirror descent with relative entropy over occupancy measures.

    `tolerance` is the flow residual, relative to a state's mass, at which a projection ends.
    """

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, tolerance: float = 1e-9, floor: float = 0.0
    ) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.tolerance = check_positive("tolerance", tolerance)
        self.floor = check_floor(mdp, floor)
        visits = occupancy(mdp, np.full(mdp.shape, 1 / mdp.n_actions))
        self._uniform = np.log(visits, out=np.full(mdp.shape, -np.inf), where=visits > 0)
        self._logs = self._uniform  # log q [H, S, A]; −∞ where no policy can be

    def act(self, round: int) -> FloatArray:
        """The choices π(a|s) = q(s,a) / q(s); uniform where no policy can be."""
        choices = uniform_logs(self.mdp.shape)
        choices[self.mdp.reachable] = normalised(self._logs[self.mdp.reachable])
        return probabilities(choices)

    def observe(self, round: int, loss: Any) -> None:
        advantages = optimal_backup(self.mdp, as_loss(self.mdp, loss)).advantages
        moved = self._logs - step_size(self.eta, round) * advantages
        projected = project_onto_occupancies(self.mdp, moved, tolerance=self.tolerance)
        if self.floor > 0:
            share = self.mdp.n_actions * self.floor
            projected = np.logaddexp(projected + np.log1p(-share), self._uniform + np.log(share))
        self._logs = projected
