"""Fixed share: Hedge that forgets, on one state.

After each exponential step a share α of all weight is dealt out evenly (Herbster and Warmuth, 1998):

    v(a) ∝ w_t(a) exp(−η_t ℓ_t(a)),        w_{t+1}(a) = (1 − α) v(a) + α / A

which is Hedge with the floor α / A, under the name and in the parameter that the literature uses. It
competes with a best action that changes about α·T times.

    >>> learner = FixedShare(MDP([[0, 0]], initial=0, horizon=1), eta=1.0, share=0.5)
    >>> learner.observe(0, [[[0.0, 1000.0]]])
    >>> learner.act(1)
    array([[[0.75, 0.25]]])
"""

from __future__ import annotations

from typing import Any

from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.options import (
    DEFAULT_ETA,
    StepSize,
    check_fraction,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class FixedShare:
    """Exponential weights of which a fixed share is dealt out evenly in every round."""

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, share: float = 0.01) -> None:
        self.mdp = check_one_state("FixedShare", mdp)
        self.eta = check_step_size(eta)
        self.share = check_fraction("share", share, below=1.0, among="a share of all weight")
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: Any) -> None:
        cost = step_size(self.eta, round) * as_loss(self.mdp, loss)
        self._logs = with_floor(entropic_step(self._logs, cost), self.share / self.mdp.n_actions)
