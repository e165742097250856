"""Mirror descent with entropy: plain, optimistic, thresholded; on one state, Hedge. And the Euclidean one.

With Q^{π_t} the values of the played policy under the observed loss, the step

    argmin over π of Σ_{h,s} [ η_t ⟨π(·|s), Q^{π_t}(s,·)⟩ + KL(π(·|s) ‖ π_t(·|s)) ]

linearises J_t at π_t and leaves the visiting probabilities of the states out of both terms, so that rarely
visited states learn as fast as the others; `visit_weighted` has them in the first. Each loss is weighed by
the step size of its own round. Beside a policy its logs are kept, exact even where it has underflowed to 0:
what was unlearned can be learned again.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from normalfan.errors import check_number
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import (
    DEFAULT_ETA,
    AnyModel,
    Described,
    StepSize,
    check_floor,
    check_one_state,
    check_step_size,
    own_model,
    predicted_loss,
    seen_everywhere,
    step_size,
)
from normalfan.pricing.kernels import whole_problem
from normalfan.problem.arrays import (
    FloatArray,
    check_entries,
    check_finite,
    check_shape,
    read_numbers,
    read_only,
)
from normalfan.problem.mdp import MDP

DEFAULT_THRESHOLD = 0.1  # the middle of the paper's sweep, 0.02 to 0.18
DEFAULT_PENALTY = 0.35  # the smaller of the paper's two, 0.35 and 0.7


class MirrorDescent(Described):
    """Exponential weights on the values of the played policy, at every step and state.

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η_t Q^{π_t}(s,a)), from the uniform policy.

    Parameters
    ----------
    mdp : MDP
    eta : float or callable
        The step size η > 0, or a function that gives it for each round.
    floor : float
        In [0, 1/A): no action becomes less likely than this.
    visit_weighted : bool
        Whether Q counts d_h(s) times, the chance that π_t visits the state, as in the gradient of J_t.

    Examples
    --------
    >>> learner = MirrorDescent(MDP([[0, 1], [1, 1]], initial=0, horizon=2), eta=1.0)
    >>> learner.observe(0, [[[0, 0], [0, 0]], [[0, 0], [5, 5]]])     # the second state is costly at the end
    >>> learner.act(1)[0, 0].round(2)                                # so the first step avoids it
    array([0.99, 0.01])
    """

    one_state: ClassVar[bool] = False

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0, visit_weighted: bool = False
    ) -> None:
        self.mdp = check_one_state(type(self).__name__, mdp) if self.one_state else mdp
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self.visit_weighted = visit_weighted
        self._logs: FloatArray = np.zeros(mdp.shape)  # of weights, which the policy has normalised
        self._policy: FloatArray = read_only(np.full(mdp.shape, 1 / mdp.n_actions))

    def act(self, round: int) -> FloatArray:
        return self._policy

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        self._learn(round, seen_everywhere(self, self.mdp, loss))

    def _learn(self, round: int, loss: FloatArray) -> None:
        self._logs, self._policy = self._step(round, self.act(round), loss)

    def _step(self, round: int, policy: FloatArray, loss: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The logs and the policy [H, S, A] after a step that charges η_t Q, or η_t d Q, of a policy."""
        from normalfan._kernels.playing import mirror_step, visits_of

        problem, eta = whole_problem(self.mdp), step_size(self.eta, round)
        visits = visits_of(problem, policy) if self.visit_weighted else None
        charges = self._charges(eta)
        logs, policy = mirror_step(problem, policy, loss, self._logs, eta, self.floor, visits, charges)
        return logs, read_only(policy)

    def _charges(self, eta: float) -> FloatArray | None:
        """What the step charges each action besides, [H, S, A]."""
        return None


class OptimisticMirrorDescent(MirrorDescent):
    """Mirror descent that plays one step ahead, towards what its model expects.

    The two-step form of Rakhlin and Sridharan (2013). With m_t the model's prediction of ℓ_t, it::

        plays      π_t(a|s)     ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of g_t under m_t
        updates    g_{t+1}(a|s) ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of the play π_t under ℓ_t

    Parameters
    ----------
    mdp, eta, floor
        As in `MirrorDescent`; the floor is that of g_t and of the play.
    model : LossModel, callable or None
        Predicts the coming loss, as in `FromHistory` if a function; None is the last loss.

    Examples
    --------
    >>> learner = OptimisticMirrorDescent(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)                   # the loss counts twice: it was seen, and is expected again
    array([[[0.88, 0.12]]])
    """

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, model: AnyModel = None, floor: float = 0.0
    ) -> None:
        super().__init__(mdp, eta, floor=floor)
        self.model = own_model(model)
        self._played: tuple[int, FloatArray] | None = None  # the round, and its play

    def act(self, round: int) -> FloatArray:
        if self._played is None or self._played[0] != round:
            self._played = round, self._play(round)
        return self._played[1]

    def _learn(self, round: int, loss: FloatArray) -> None:
        super()._learn(round, loss)
        self.model.update(loss)
        self._played = None

    def _play(self, round: int) -> FloatArray:
        expected = predicted_loss(self.mdp, self.model)
        if expected is None:
            return self._policy
        return self._step(round, self._policy, expected)[1]


class ThresholdedMirrorDescent(MirrorDescent):
    """Mirror descent with a charge on every action that is not near-optimal under the predicted loss.

    With Â the optimal advantages of that loss, near(h,s) = {a : Â_h(s,a) ≤ threshold}, up to rounding::

        π_{t+1}(a|s) ∝ π_t(a|s) exp(−η Q^{π_t}(s,a) − λ·1{a ∉ near(h,s)})          the paper's text
        π_{t+1}(a|s) ∝ π_t(a|s) exp(−η (Q^{π_t}(s,a) + λ·1{a ∉ near(h,s)}))        the paper's proof

    Parameters
    ----------
    mdp, eta, floor
        As in `MirrorDescent`.
    threshold : float or array_like [H, S, A]
        The largest predicted advantage that is near-optimal, ≥ 0: one for all, or cβ(h,s,a) of each action.
    penalty : float
        λ ≥ 0, the finite charge on all others.
    penalty_inside_step : bool
        Whether η multiplies λ, as in the paper's proof; false is the paper's text.
    model
        As in `OptimisticMirrorDescent`.
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
        threshold: npt.ArrayLike = DEFAULT_THRESHOLD,
        penalty: float = DEFAULT_PENALTY,
        penalty_inside_step: bool = False,
        model: AnyModel = None,
        floor: float = 0.0,
        ties: TieRule = DEFAULT_TIES,
    ) -> None:
        super().__init__(mdp, eta, floor=floor)
        self.threshold = _check_thresholds(mdp, threshold)
        self.penalty = check_number("penalty", penalty)
        self.penalty_inside_step = penalty_inside_step
        self.model = own_model(model)
        self.ties = ties

    def _learn(self, round: int, loss: FloatArray) -> None:
        self.model.update(loss)
        super()._learn(round, loss)

    def _charges(self, eta: float) -> FloatArray | None:
        from normalfan._kernels.accounting import settle

        expected = predicted_loss(self.mdp, self.model)
        if expected is None:
            return None
        values, advantages, _ = settle(whole_problem(self.mdp), expected, self.ties.rule(self.mdp))
        slack = self.ties.allowance(values, self.mdp.reachable)[:, :, None]
        charge = self.penalty * eta if self.penalty_inside_step else self.penalty
        return np.where(advantages <= self.threshold + slack, 0.0, charge)


def _check_thresholds(mdp: MDP, threshold: npt.ArrayLike) -> float | FloatArray:
    numbers = read_numbers("threshold", threshold)
    if numbers.ndim == 0:
        return check_number("threshold", float(numbers), may_be_infinite=True)
    check_shape(
        "threshold", numbers.shape, mdp.shape, "give one for every step, state and action, or one number"
    )
    check_entries("threshold", numbers, numbers >= 0, "every threshold must be at least 0: check the radii")
    return read_only(numbers.astype(np.float64))


class Hedge(MirrorDescent):
    """`MirrorDescent` on one state and step: w_{t+1}(a) ∝ w_t(a) exp(−η_t ℓ_t(a)). Same arguments.

    Examples
    --------
    >>> learner = Hedge(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.73, 0.27]]])
    """

    one_state = True


class OptimisticHedge(OptimisticMirrorDescent):
    """`OptimisticMirrorDescent` on one state and step: it plays ∝ w_t(a) exp(−η_t m_t(a)). Same arguments.

    Examples
    --------
    >>> learner = OptimisticHedge(MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.88, 0.12]]])
    """

    one_state = True


class EuclideanMirrorDescent(Described):
    """Projected gradient descent over the actions of one state: x_{t+1} = Proj(x_t − η_t ℓ_t).

    That is the least η_t ⟨x, ℓ_t⟩ + ½‖x − x_t‖². It leaves the boundary again at once: it needs no floor.

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta
        As in `MirrorDescent`.

    Examples
    --------
    >>> learner = EuclideanMirrorDescent(MDP([[0, 0]], initial=0, horizon=1), eta=0.5)
    >>> learner.observe(0, [[[0.0, 0.5]]])
    >>> learner.act(1)
    array([[[0.625, 0.375]]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA) -> None:
        self.mdp = check_one_state("EuclideanMirrorDescent", mdp)
        self.eta = check_step_size(eta)
        self._play = read_only(np.full(mdp.shape, 1 / mdp.n_actions))

    def act(self, round: int) -> FloatArray:
        return self._play

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        moved = self._play - step_size(self.eta, round) * seen_everywhere(self, self.mdp, loss)
        self._play = read_only(project_onto_simplex(moved.ravel()).reshape(self.mdp.shape))


def project_onto_simplex(point: FloatArray) -> FloatArray:
    """The distribution nearest to a point [A] in Euclidean distance, exactly.

    >>> project_onto_simplex(np.array([0.75, 0.75, -2.0]))
    array([0.5, 0.5, 0. ])
    """
    check_finite("point", point)
    # It is max(y − θ, 0) for the one θ that makes it sum to 1; with y sorted downwards, θ is
    # (y_1 + … + y_k − 1) / k for the largest k with y_k > θ. Measured from its largest entry, what can be
    # kept lies within 1 of zero: no digits are lost.
    y = point - point.max()
    descending = np.sort(y)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, y.size + 1)
    kept = np.flatnonzero(descending > thresholds)[-1]
    return np.asarray(np.maximum(y - thresholds[kept], 0.0))
