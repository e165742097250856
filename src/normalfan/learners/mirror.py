"""Policy mirror descent with entropy, plain and optimistic.

At every step and state, with Q^π_t the values of the played policy under the observed loss,

    MirrorDescent     π_{t+1}(a|s) ∝ π_t(a|s) exp(−η_t Q^{π_t}_t(s,a)).

This is argmin over π of Σ_{h,s} [ η ⟨π(·|s), Q^{π_t}(s,·)⟩ + KL(π(·|s) ‖ π_t(·|s)) ]: the objective J_t,
linearised at π_t, with the visiting probabilities of the states left out of both terms, so that rarely
visited states learn as fast as the others. On one state it is Hedge.

The optimistic form keeps a secondary iterate g_t and plays a step ahead of it (two-step form of Rakhlin
and Sridharan, 2013), with m_t the model's prediction of ℓ_t:

    plays             π_t(a|s)     ∝ g_t(a|s) exp(−η_t Q^{g_t}_{m_t}(s,a))       Q of g_t under m_t
    then updates      g_{t+1}(a|s) ∝ g_t(a|s) exp(−η_t Q^{π_t}_{ℓ_t}(s,a))       Q of the play under ℓ_t

Before the model has seen anything the play is g_t itself. A floor is mixed into g and into the play.

    >>> import numpy as np
    >>> mdp = MDP([[0, 1], [1, 1]], initial=0, horizon=2)
    >>> learner = MirrorDescent(mdp, eta=np.log(3))
    >>> loss = np.zeros(mdp.shape)
    >>> loss[1, 1] = 1.0                                        # the second state is dear at the end
    >>> learner.observe(0, loss)
    >>> learner.act(1)[:, 0]                                    # so the first state's first step avoids it
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
"""

from __future__ import annotations

from typing import Any

from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.evaluation import policy_backup
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import DEFAULT_ETA, StepSize, check_floor, check_step_size, step_size
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class MirrorDescent:
    """Exponential weights on the values of the played policy, at every step and state."""

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: Any) -> None:
        q = policy_backup(self.mdp, self.act(round), loss).q
        self._logs = with_floor(entropic_step(self._logs, step_size(self.eta, round) * q), self.floor)


class OptimisticMirrorDescent:
    """Mirror descent that plays one step ahead, towards what its model expects."""

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, model: AnyModel = None, floor: float = 0.0
    ) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._model = own_model(model)
        self._secondary = uniform_logs(mdp.shape)
        self._played: tuple[int, FloatArray] | None = None  # the round, and its play

    def act(self, round: int) -> FloatArray:
        if self._played is None or self._played[0] != round:
            self._played = round, self._play(round)
        return self._played[1]

    def observe(self, round: int, loss: Any) -> None:
        seen = as_loss(self.mdp, loss)
        self._secondary = self._moved(round, policy_backup(self.mdp, self.act(round), seen).q)
        self._model.update(seen)
        self._played = None

    def _play(self, round: int) -> FloatArray:
        secondary = probabilities(self._secondary)
        expected = predicted_loss(self.mdp, self._model)
        if expected is None:
            return secondary
        return probabilities(self._moved(round, policy_backup(self.mdp, secondary, expected).q))

    def _moved(self, round: int, q: FloatArray) -> FloatArray:
        """The step from the secondary iterate, in logs."""
        return with_floor(entropic_step(self._secondary, step_size(self.eta, round) * q), self.floor)
