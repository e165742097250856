"""Advantage-thresholded mirror descent (the paper's section of that name).

With Â the optimal advantages of the predicted loss, near(h,s) = {a : Â_h(s,a) ≤ threshold} up to rounding,
the mirror step charges a penalty λ for all other actions:

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η Q^{π_t}(s,a) − λ·1{a ∉ near(h,s)})          the paper's text
    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η (Q^{π_t}(s,a) + λ·1{a ∉ near(h,s)}))        the paper's proof

`penalty_inside_step` chooses between them; docs/details/learners.md has the other readings.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.mirror import MirrorDescent
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import DEFAULT_ETA, StepSize, check_not_negative, step_size
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP

DEFAULT_THRESHOLD = 0.1  # the middle of the paper's sweep, 0.02 to 0.18
DEFAULT_PENALTY = 0.35  # the smaller of the paper's two, 0.35 and 0.7


class ThresholdedMirrorDescent(MirrorDescent):
    """Mirror descent with a charge on every action that is not near-optimal under the predicted loss.

    Parameters
    ----------
    mdp : MDP
    eta : float or callable
        The step size η > 0, or a function that gives it for each round.
    threshold, penalty : float
        The largest predicted advantage that is near-optimal, and λ, the finite charge on all others; ≥ 0.
    penalty_inside_step : bool
        Whether η multiplies λ, as in the paper's proof; false is the paper's text.
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.
    floor : float
        In [0, 1/A): no action becomes less likely than this.
    ties : TieRule

    Examples
    --------
    >>> arms = MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> learner = ThresholdedMirrorDescent(arms, eta=1e-9, threshold=0.1, penalty=1.0)
    >>> learner.observe(0, [[[0.0, 0.1, 0.5]]])
    >>> learner.act(1).round(2)
    array([[[0.42, 0.42, 0.16]]])
    """

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
        super().__init__(mdp, eta, floor=floor)
        self.threshold = check_not_negative("threshold", threshold, may_be_infinite=True)
        self.penalty = check_not_negative("penalty", penalty)
        self.penalty_inside_step = penalty_inside_step
        self.model = own_model(model)
        self.ties = ties

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        seen = as_loss(self.mdp, loss)
        self.model.update(seen)
        super().observe(round, seen)

    def _costs(self, round: int, loss: FloatArray) -> FloatArray:
        scale = step_size(self.eta, round) if self.penalty_inside_step else 1.0
        return super()._costs(round, loss) + np.where(self._near(), 0.0, scale * self.penalty)

    def _near(self) -> BoolArray:
        """[H, S, A]: the actions that the model cannot tell from optimal ones."""
        expected = predicted_loss(self.mdp, self.model)
        if expected is None:
            return np.ones(self.mdp.shape, dtype=bool)
        backup = optimal_backup(self.mdp, expected)
        slack = self.ties.allowance(backup.values, self.mdp.reachable)[:, :, None]
        return np.asarray(backup.advantages <= self.threshold + slack)
