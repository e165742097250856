"""O-REPS, mirror descent on occupancy measures, and the projection that it needs.

The projection. For p > 0 on [H, S, A], minimise D(q, p) = Σ [ q log(q/p) − q + p ] over occupancy measures q.
With a multiplier v_h(s) on each flow constraint, and (Mv)_h(s,a) = v_h(s) − E[v_{h+1}(s')|s,a], v_{H+1} = 0,

    q = p · exp(Mv)      for the v that minimises the convex function      f(v) = Σ q − ρ·v_1.

The gradient of f is the imbalance of the flow, what leaves (h,s) minus what arrives there; its Hessian is
Mᵀ diag(q) M. Two kinds of descent step alternate:

- sweeps over the steps h: v_h += ½ log(arriving / leaving), one step after the other. They are exact for
  deterministic kernels, never overshoot for others, and work in logs: they balance the states of vanishing
  mass, which no norm of the imbalance can see.
- damped Newton steps, solved by conjugate gradients in coordinates scaled by the root of the mass: they
  balance what the sweeps pass on too slowly. With m the largest entry of M·direction, a step of length
  log(1+m)/m is sure to descend a sum of exponentials, so there is no line search.

It ends when at every state, however rarely visited, leaving and arriving agree up to `tolerance` of their
size. If rounding forbids that, it ends after MOST_ITERATIONS, with an error unless the flow is balanced to
`tolerance` in absolute terms.

    >>> mdp = MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=2)
    >>> p = np.array([[[1.0, 4.0], [0, 0]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> logs = np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
    >>> np.exp(project_onto_occupancies(mdp, logs))[0, 0].round(6)           # odds √(1/4)
    array([0.333333, 0.666667])
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from normalfan.errors import InputError, check_number
from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.learners.learner import (
    DEFAULT_ETA,
    Described,
    StepSize,
    check_floor,
    check_step_size,
    seen_everywhere,
    step_size,
)
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.mdp import MDP

MEMORY = 300.0
"""How far log p may lie below its largest entry in the same step; what lies deeper is raised to this.

It keeps every mass a double (e⁻³⁰⁰ ≈ 1e-130; below e⁻⁷⁴⁵ there is only 0, from which nothing returns).
A learner forgets beyond it: at η = 0.3, after a thousand rounds of an advantage of 1.
"""

MOST_ITERATIONS = 500


class OReps(Described):
    """Mirror descent with relative entropy over occupancy measures (Zimin and Neu, 2013).

    One projection a round, onto the polytope of occupancy measures q::

        q_{t+1} = argmin over q of  η_t ⟨q, ℓ_t⟩ + D(q, q_t),      D(q, p) = Σ_{h,s,a} [ q log(q/p) − q + p ]

    Unlike policy mirror descent it charges for moving the *visits* of states, not only the choices there.

    Parameters
    ----------
    mdp : MDP
        The problem.
    eta : float or callable
        The step size η, or a function that gives the step size of a round.
    tolerance : float
        The flow residual, relative to a state's mass, at which a projection ends.
    floor : float
        f mixes q with the visits u of the uniform policy, q ← (1 − A·f) q + A·f·u. It is thus a lower bound
        on q_h(s,a), f·u_h(s), and not on the choices of a state that q visits more than u does.

    Raises
    ------
    InputError
        If the step size or tolerance is not positive and finite, or the floor is not in [0, 1/A); by
        `observe`, if an action is not allowed or the projection does not reach the tolerance.

    Examples
    --------
    >>> learner = OReps(MDP([[0, 0]], initial=0, horizon=1), eta=np.log(3))
    >>> learner.observe(0, [[[0.0, 1.0]]])
    >>> learner.act(1).round(9)                   # on one state it is Hedge
    array([[[0.75, 0.25]]])
    """

    def __init__(
        self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, tolerance: float = 1e-9, floor: float = 0.0
    ) -> None:
        self.mdp = mdp
        self.eta = check_step_size(eta)
        self.tolerance = check_number("tolerance", tolerance, positive=True)
        self.floor = check_floor(mdp, floor)
        visits = occupancy(mdp, np.full(mdp.shape, 1 / mdp.n_actions))
        self._uniform = np.log(visits, out=np.full(mdp.shape, -np.inf), where=visits > 0)
        self._logs = self._uniform  # log q [H, S, A]; −∞ where no policy can be

    def act(self, round: int) -> FloatArray:
        """The choices π(a|s) = q(s,a) / q(s); uniform where no policy can be."""
        choices = np.full(self.mdp.shape, 1 / self.mdp.n_actions)
        choices[self.mdp.reachable] = softmax(self._logs[self.mdp.reachable], axis=1)
        return read_only(choices)

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        # They cost every policy as much as the loss, up to a constant, and are as small as can be.
        advantages = optimal_backup(self.mdp, seen_everywhere(self, self.mdp, loss)).advantages
        moved = self._logs - step_size(self.eta, round) * advantages
        projected = project_onto_occupancies(self.mdp, moved, tolerance=self.tolerance)
        if self.floor > 0:
            share = self.mdp.n_actions * self.floor
            projected = np.logaddexp(projected + np.log1p(-share), self._uniform + np.log(share))
        self._logs = projected


def project_onto_occupancies(mdp: MDP, logs: FloatArray, *, tolerance: float = 1e-9) -> FloatArray:
    """The logs [H, S, A] of the occupancy measure q nearest to p = exp(logs).

    `logs` must be finite where some policy can be; elsewhere they do not matter, and q is 0.
    """
    reachable = mdp.reachable[:, :, None]
    # A constant for each step is of the form Mv: it changes nothing but the size of the numbers.
    top = logs.max(axis=(1, 2), keepdims=True, where=reachable, initial=-np.inf)
    prior = np.where(reachable, np.maximum(logs - top, -MEMORY), -np.inf)
    v = _first_guess(mdp, prior)
    for _ in range(MOST_ITERATIONS):
        _sweep(mdp, v, prior, range(mdp.horizon - 1, -1, -1))
        _sweep(mdp, v, prior, range(mdp.horizon))
        q = np.exp(prior + _slack(mdp, v))
        leaving, arriving = q.sum(axis=2), _arriving(mdp, q)
        imbalance = np.abs(leaving - arriving)
        if (imbalance <= tolerance * np.maximum(leaving, arriving)).all():
            break
        v += _newton_step(mdp, q, leaving, arriving)
    if imbalance.max() > tolerance:
        raise InputError(
            f"the projection onto occupancy measures left a flow residual of {imbalance.max():.3g}, but it "
            f"must be at most the tolerance, {tolerance:g}: lower eta, or raise the tolerance."
        )
    return prior + _slack(mdp, v)


def _first_guess(mdp: MDP, prior: FloatArray) -> FloatArray:
    """Multipliers [H, S] under which a state is left by the share of its step that the prior gives it."""
    v = np.zeros((mdp.horizon + 1, mdp.n_states))
    for h in range(mdp.horizon - 1, -1, -1):
        here = mdp.reachable[h]
        share = _log_sum_exp(prior[h, here])
        cost = mdp.transitions.expect(h, v[h + 1])[here]
        v[h, here] = share - _log_sum_exp(share) - _log_sum_exp(prior[h, here] - cost)
    return v[:-1]


def _sweep(mdp: MDP, v: FloatArray, prior: FloatArray, steps: Iterable[int]) -> None:
    """v_h += ½ log(arriving / leaving) at one step after the other; at the first, whose start is fixed, 1."""
    q = np.exp(prior + _slack(mdp, v))
    for h in steps:
        leaving = q[h].sum(axis=1)
        arriving = mdp.transitions.push(h - 1, q[h - 1]) if h > 0 else mdp.initial
        change = np.zeros(mdp.n_states)
        np.log(arriving / np.where(leaving > 0, leaving, 1), out=change, where=(leaving > 0) & (arriving > 0))
        if h > 0:
            change /= 2
            q[h - 1] *= np.exp(-mdp.transitions.expect(h - 1, change))
        v[h] += change
        q[h] *= np.exp(change)[:, None]


def _newton_step(mdp: MDP, q: FloatArray, leaving: FloatArray, arriving: FloatArray) -> FloatArray:
    """The damped Newton step: (Mᵀ diag(q) M) x = arriving − leaving by conjugate gradients."""
    size = np.sqrt(leaving + arriving)
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    x = np.zeros_like(size)
    residual = scale * (arriving - leaving)
    direction = residual
    square = float((residual**2).sum())
    # Looser far from the solution, where an exact step would be wasted, tighter close to it.
    target = square * min(0.01, square)
    for _ in range(size.size):
        flow = q * _slack(mdp, scale * direction)
        image = scale * (flow.sum(axis=2) - _pushed(mdp, flow))
        curvature = float((direction * image).sum())
        if square <= target or curvature <= 0:
            break
        x = x + square / curvature * direction
        residual = residual - square / curvature * image
        square, previous = float((residual**2).sum()), square
        direction = residual + square / previous * direction
    step = scale * x
    largest = _slack(mdp, step).max(where=q > 0, initial=0.0)
    return step * (np.log1p(largest) / largest) if largest > 0 else step


def _slack(mdp: MDP, v: FloatArray) -> FloatArray:
    """(Mv)_h(s,a) = v_h(s) − E[v_{h+1}(s')|s,a]."""
    slack = np.repeat(v[:, :, None], mdp.n_actions, axis=2)
    for h in range(mdp.horizon - 1):
        slack[h] -= mdp.transitions.expect(h, v[h + 1])
    return slack


def _arriving(mdp: MDP, q: FloatArray) -> FloatArray:
    """[H, S]: the start, then what each step sends to the next."""
    arriving = _pushed(mdp, q)
    arriving[0] = mdp.initial
    return arriving


def _pushed(mdp: MDP, q: FloatArray) -> FloatArray:
    """[H, S]: what each step receives from the one before; the first receives nothing."""
    pushed = np.zeros(q.shape[:2])
    for h in range(mdp.horizon - 1):
        pushed[h + 1] = mdp.transitions.push(h, q[h])
    return pushed


def _log_sum_exp(logs: FloatArray) -> FloatArray:
    """Log Σ exp over the last axis; SciPy's would make every import of the package load SciPy."""
    largest = logs.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(logs - largest[..., None]).sum(axis=-1)))
