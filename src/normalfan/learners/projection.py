"""The occupancy measure nearest to a positive measure in relative entropy.

For p > 0 on [H, S, A], argmin over occupancy measures q of D(q, p) = Σ [ q log(q/p) − q + p ]. With a
multiplier v_h(s) on each flow constraint, and (Mv)_h(s,a) = v_h(s) − E[v_{h+1}(s')|s,a], v_{H+1} = 0,

    q = p · exp(Mv)      for the v that minimises the convex function      f(v) = Σ q − ρ·v_1.

The gradient of f is the imbalance of the flow, what leaves (h,s) minus what arrives there; its Hessian is
Mᵀ diag(q) M. Both are sweeps of `expect` and `push`. Two kinds of descent step alternate:

- sweeps over the steps h: v_h += ½ log(arriving / leaving), in one coordinate after the other. It is exact
  for deterministic kernels, never overshoots for others, and works in logs: it balances the states of
  vanishing mass, which no norm of the imbalance can see.
- damped Newton steps, solved by conjugate gradients in coordinates scaled by the root of the mass: they
  balance what the sweeps pass on too slowly. With m the largest entry of M·direction, a step of length
  log(1+m)/m is sure to descend a sum of exponentials, so there is no line search.

It ends when at every state, however rarely visited, leaving and arriving agree up to `tolerance` of their
size; should rounding forbid that, it ends after MOST_ITERATIONS, and is refused unless the flow is balanced
to `tolerance` in absolute terms.

    >>> mdp = MDP(np.array([[0, 1], [1, 1]]), initial=0, horizon=2)
    >>> p = np.array([[[1.0, 4.0], [0, 0]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> logs = np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
    >>> np.exp(project_onto_occupancies(mdp, logs))[0, 0].round(6)           # odds √(1/4)
    array([0.333333, 0.666667])
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from normalfan.errors import InputError
from normalfan.learners.entropy import log_sum_exp
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

MEMORY = 300.0
"""How far log p may lie below its largest entry in the same step; what lies deeper is raised to this.

It keeps every mass a double (e⁻³⁰⁰ ≈ 1e-130; below e⁻⁷⁴⁵ there is only 0, from which nothing returns).
A learner forgets beyond it: at η = 0.3, after a thousand rounds of an advantage of 1.
"""

MOST_ITERATIONS = 500


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
        share = log_sum_exp(prior[h, here])
        cost = mdp.transitions.expect(h, v[h + 1])[here]
        v[h, here] = share - log_sum_exp(share) - log_sum_exp(prior[h, here] - cost)
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
