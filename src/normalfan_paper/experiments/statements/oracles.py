"""The definitions, evaluated without backups: linear programs and lists of vertices.

Everything here is slow and plain, and shares no arithmetic with the prices it judges.
"""

from __future__ import annotations

import numpy as np

from normalfan.geometry.face import Face, whole_polytope
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

LP_TOLERANCE = 1e-6
"""How far the simplex method's answers are from exact ones, for losses of order one."""


def lp_price(mdp: MDP, previous: FloatArray, loss: FloatArray) -> float:
    """Γ by its definition: two linear programs over the polytope, one of them cut down to the old face."""
    old = _least(mdp, previous)
    return _least(mdp, loss, at_most=(previous, old)) - _least(mdp, loss)


def _least(mdp: MDP, loss: FloatArray, at_most: tuple[FloatArray, float] | None = None) -> float:
    """Min ⟨q, loss⟩ over occupancy measures q, with ⟨q, cut⟩ ≤ level if asked."""
    from scipy.optimize import linprog

    balance, inflow = flow_constraints(mdp)
    cut = {} if at_most is None else {"A_ub": at_most[0].reshape(1, -1), "b_ub": [at_most[1] + 1e-9]}
    return float(linprog(loss.ravel(), A_eq=balance, b_eq=inflow, method="highs", **cut).fun)


def flow_constraints(mdp: MDP) -> tuple[FloatArray, FloatArray]:
    """The polytope {q ≥ 0 : balance q = inflow}: what enters a state leaves it."""
    horizon, n_states, n_actions = mdp.shape
    balance = np.zeros((horizon, n_states, horizon, n_states, n_actions))
    for h in range(horizon):
        balance[h, np.arange(n_states), h, np.arange(n_states)] = 1.0
        if h:
            kernel = mdp.transitions.csr(h - 1).toarray()
            balance[h, :, h - 1] -= kernel.T.reshape(n_states, n_states, n_actions)
    inflow = np.zeros((horizon, n_states))
    inflow[0] = mdp.initial
    return balance.reshape(horizon * n_states, -1), inflow.ravel()


def listed_values(face: Face, loss: FloatArray) -> FloatArray:
    """⟨v, loss⟩ of every vertex of a face, one by one."""
    return np.array([float((vertex * loss).sum()) for vertex in face.vertices(10**6)])


def listed_optimum(mdp: MDP, loss: FloatArray) -> float:
    """J* as the least of all vertices of the polytope."""
    return float(listed_values(whole_polytope(mdp), loss).min())
