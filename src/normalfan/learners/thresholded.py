"""Advantage-thresholded mirror descent (the paper's section of that name).

After the loss of round t the model has seen it and predicts the coming one, m. An optimal backup of m gives
predicted advantages Â, and the actions that may be optimal next,

    near(h, s) = {a : Â_h(s,a) ≤ threshold}              (the paper's c·β, here one number)

and the mirror step charges a penalty λ for whatever lies outside:

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η Q^{π_t}_t(s,a) − λ·1{a ∉ near(h,s)})          the paper's text
    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η (Q^{π_t}_t(s,a) + λ·1{a ∉ near(h,s)}))        the paper's proof

The two formulas of the paper disagree on whether η multiplies λ. `penalty_inside_step` chooses: False, the
default, is the text's objective η Ĵ + D + λ Σ, True the proof's rate η (g + λ). Two more choices that the
paper leaves open: Q is the played policy's under the observed loss, as in the proof and in MirrorDescent,
and the near set is that of the coming round's prediction, so with the default model, the last loss, both
speak of the loss just seen. An advantage that exceeds the threshold by less than the tie rule's notion of
rounding counts as equal to it, and near.

Every action outside the near set loses λ in log-odds in each round it stays there, whatever its Q: without
a floor this memory has no bound (see `options`). threshold = ∞ is mirror descent.

    >>> learner = ThresholdedMirrorDescent(
    ...     MDP([[0, 0, 0]], initial=0, horizon=1), eta=1e-9, threshold=0.1, penalty=np.log(2))
    >>> learner.observe(0, [[[0.0, 0.1, 0.5]]])
    >>> learner.act(1).round(6)
    array([[[0.4, 0.4, 0.2]]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.evaluation import policy_backup
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import (
    DEFAULT_ETA,
    StepSize,
    check_floor,
    check_not_negative,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP

DEFAULT_THRESHOLD = 0.1
"""The middle of the paper's sweep, 0.02 to 0.18."""

DEFAULT_PENALTY = 0.35
"""The smaller of the paper's two, 0.35 and 0.7."""


class ThresholdedMirrorDescent:
    """Mirror descent that leaves confidently suboptimal actions faster."""

    def __init__(
        self,
        mdp: MDP,
        eta: StepSize = DEFAULT_ETA,
        *,
        threshold: float = DEFAULT_THRESHOLD,
        penalty: float = DEFAULT_PENALTY,
        penalty_inside_step: bool = False,
        model: AnyModel = None,
        floor: float = 0.0,
        ties: TieRule = DEFAULT_TIES,
    ) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.threshold = check_not_negative("threshold", threshold, may_be_infinite=True)
        self.penalty = check_not_negative("penalty", penalty)
        self.penalty_inside_step = penalty_inside_step
        self.floor = check_floor(mdp, floor)
        self.ties = ties
        self._model = own_model(model)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: Any) -> None:
        seen, eta = as_loss(self.mdp, loss), step_size(self.eta, round)
        self._model.update(seen)
        charge = eta * self.penalty if self.penalty_inside_step else self.penalty
        q = policy_backup(self.mdp, self.act(round), seen).q
        cost = eta * q + np.where(self._near(), 0.0, charge)
        self._logs = with_floor(entropic_step(self._logs, cost), self.floor)

    def _near(self) -> BoolArray:
        """[H, S, A]: the actions that the model cannot tell from optimal ones."""
        expected = predicted_loss(self.mdp, self._model)
        if expected is None:
            return np.ones(self.mdp.shape, dtype=bool)
        backup = optimal_backup(self.mdp, expected)
        slack = self.ties.thresholds(backup.values, self.mdp.reachable)[:, :, None]
        return np.asarray(backup.advantages <= self.threshold + slack)
