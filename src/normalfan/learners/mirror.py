"""Mirror descent with entropy, plain and optimistic; on one state it is Hedge.

With Q^{π_t} the values of the played policy under the observed loss, the step

    argmin over π of Σ_{h,s} [ η_t ⟨π(·|s), Q^{π_t}(s,·)⟩ + KL(π(·|s) ‖ π_t(·|s)) ]

linearises the objective J_t at π_t and leaves the visiting probabilities of the states out of both terms, so
that rarely visited states learn as fast as the others. Each loss is weighed once, by the step size of its own
round. (The "lazy" form of Hedge weighs the whole sum by the newest step size, and has no place for a floor.
The two agree for a constant η.)
"""

from __future__ import annotations

import numpy.typing as npt

from normalfan.learners.entropy import entropic_step, probabilities, uniform_logs, with_floor
from normalfan.learners.evaluation import policy_backup
from normalfan.learners.models import AnyModel, own_model, predicted_loss
from normalfan.learners.options import (
    DEFAULT_ETA,
    Described,
    StepSize,
    check_floor,
    check_one_state,
    check_step_size,
    step_size,
)
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class MirrorDescent(Described):
    """Exponential weights on the values of the played policy, at every step and state.

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η_t Q^{π_t}(s,a)), from the uniform policy.

    Parameters
    ----------
    mdp : MDP
        The problem.
    eta : float or callable
        The step size η, or a function that gives the step size of a round.
    floor : float
        No action becomes less likely than this: the policy is mixed with the uniform one after every step.

    Raises
    ------
    InputError
        If the step size is not positive and finite, or the floor is not in [0, 1/A).

    Examples
    --------
    >>> import numpy as np
    >>> import normalfan as nf
    >>> mdp = nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2)
    >>> learner = nf.learners.MirrorDescent(mdp, eta=np.log(3))
    >>> loss = np.zeros(mdp.shape)
    >>> loss[1, 1] = 1.0                          # the second state is costly at the last step,
    >>> learner.observe(0, loss)
    >>> learner.act(1)[:, 0]                      # so the first step avoids it
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.floor = check_floor(mdp, floor)
        self._logs = uniform_logs(mdp.shape)

    def act(self, round: int) -> FloatArray:
        return probabilities(self._logs)

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        self._logs = self._moved(self._costs(round, as_loss(self.mdp, loss)))

    def _costs(self, round: int, loss: FloatArray) -> FloatArray:
        """What the step charges each action, [H, S, A]: η_t Q^{π_t}."""
        return step_size(self.eta, round) * policy_backup(self.mdp, self.act(round), loss).q

    def _moved(self, costs: FloatArray) -> FloatArray:
        return with_floor(entropic_step(self._logs, costs), self.floor)


class OptimisticMirrorDescent(MirrorDescent):
    """Mirror descent that plays one step ahead, towards what its model expects.

    It stores a secondary policy g_t and plays a step from it (the two-step form of Rakhlin and Sridharan,
    2013). With m_t the model's prediction of ℓ_t::

        plays      π_t(a|s)     ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of g_t under m_t
        updates    g_{t+1}(a|s) ∝ g_t(a|s) exp(−η_t Q(s,a))      Q of the play π_t under ℓ_t

    Parameters
    ----------
    mdp : MDP
        The problem.
    eta : float or callable
        The step size η, or a function that gives the step size of a round.
    model : LossModel, callable or None
        Predicts the coming loss: a model, a function as in `FromHistory`, or None for the last loss. As long
        as it predicts nothing, g_t is played.
    floor : float
        No action becomes less likely than this, neither in g_t nor in the play.

    Raises
    ------
    InputError
        If the step size is not positive and finite, the floor not in [0, 1/A), or the model of another type.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> learner = nf.learners.OptimisticMirrorDescent(arms, eta=1.0)
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

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        seen = as_loss(self.mdp, loss)
        super().observe(round, seen)
        self.model.update(seen)
        self._played = None

    def _play(self, round: int) -> FloatArray:
        secondary = probabilities(self._logs)
        expected = predicted_loss(self.mdp, self.model)
        if expected is None:
            return secondary
        q = policy_backup(self.mdp, secondary, expected).q
        return probabilities(self._moved(step_size(self.eta, round) * q))


class Hedge(MirrorDescent):
    """Exponential weights over the actions of one state: w_{t+1}(a) ∝ w_t(a) exp(−η_t ℓ_t(a)).

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta : float or callable
        The step size η, or a function that gives the step size of a round.
    floor : float
        No action becomes less likely than this: the weights are mixed with uniform ones after every step.

    Raises
    ------
    InputError
        If the problem has more steps or states, or as in `MirrorDescent`.

    Examples
    --------
    >>> import normalfan as nf
    >>> learner = nf.learners.Hedge(nf.MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.73, 0.27]]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, floor: float = 0.0) -> None:
        super().__init__(check_one_state("Hedge", mdp), eta, floor=floor)


class OptimisticHedge(OptimisticMirrorDescent):
    """Hedge that counts the predicted loss as if it had been seen: it plays ∝ w_t(a) exp(−η_t m_t(a)).

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta : float or callable
        The step size η, or a function that gives the step size of a round.
    model : LossModel, callable or None
        Predicts the coming loss: a model, a function as in `FromHistory`, or None for the last loss.
    floor : float
        No action becomes less likely than this, neither in the weights nor in the play.

    Raises
    ------
    InputError
        If the problem has more steps or states, or as in `OptimisticMirrorDescent`.

    Examples
    --------
    >>> import normalfan as nf
    >>> learner = nf.learners.OptimisticHedge(nf.MDP([[0, 0]], initial=0, horizon=1), eta=1.0)
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(2)
    array([[[0.88, 0.12]]])
    """

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, model: AnyModel = None, floor: float = 0.0
    ) -> None:
        super().__init__(check_one_state("OptimisticHedge", mdp), eta, model=model, floor=floor)
