"""Hedge and its optimistic form, on one state.

    Hedge               w_{t+1}(a) ∝ w_t(a) exp(−η_t ℓ_t(a)),                    plays w_t
    OptimisticHedge     the same weights, and plays  x_t(a) ∝ w_t(a) exp(−η_t m_t(a))

so that with a constant step size Hedge plays exp(−η Σ losses) and OptimisticHedge exp(−η (Σ losses + m_t)),
normalised. A schedule enters as in mirror descent: each loss is weighed once, by the step size of its own
round, and never again. (The "lazy" form would weigh the whole sum by the newest step size; it has no place
for a floor. The two agree for a constant η.)

    >>> import numpy as np
    >>> learner = Hedge(MDP([[0, 0]], initial=0, horizon=1), eta=np.log(3))
    >>> learner.act(0)
    array([[[0.5, 0.5]]])
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1)
    array([[[0.75, 0.25]]])
"""

from __future__ import annotations

from typing import Any

from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import (
    DEFAULT_ETA,
    StepSize,
    check_floor,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class Hedge:
    """Exponential weights over the actions of one state."""

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0) -> None:
        self.mdp = check_one_state("Hedge", mdp)
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: Any) -> None:
        cost = step_size(self.eta, round) * as_loss(self.mdp, loss)
        self._logs = with_floor(entropic_step(self._logs, cost), self.floor)


class OptimisticHedge:
    """Exponential weights that count the predicted loss as if it had been seen."""

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, model: AnyModel = None, floor: float = 0.0
    ) -> None:
        self.mdp = check_one_state("OptimisticHedge", mdp)
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._model = own_model(model)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        expected = predicted_loss(self.mdp, self._model)
        if expected is None:
            return probabilities(self._logs)
        ahead = entropic_step(self._logs, step_size(self.eta, round) * expected)
        return probabilities(with_floor(ahead, self.floor))

    def observe(self, round: int, loss: Any) -> None:
        seen = as_loss(self.mdp, loss)
        self._logs = with_floor(entropic_step(self._logs, step_size(self.eta, round) * seen), self.floor)
        self._model.update(seen)
