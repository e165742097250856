"""The price by its definition: linear programs over the occupancy polytope Q, by HiGHS.

    J* = min ⟨q, ℓ_t⟩ over Q,      m = min ⟨q, ℓ_t⟩ over Q ∩ {⟨q, ℓ_{t−1}⟩ ≤ J*_{t−1}},      Γ = m − J*.

A thousand times slower than the backups, and it shares no arithmetic with them: an oracle, never the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

LP_TOLERANCE = 1e-6
"""How far these prices are from exact ones, for losses of order one."""

# The old face is thin: what HiGHS may violate it by comes back divided by the cone margin.
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def lp_price(mdp: MDP, previous: FloatArray, loss: FloatArray) -> float:
    """Γ of the crossing from `previous` to `loss`, both [H, S, A]."""
    polytope = flow_constraints(mdp)
    best_before = _minimise(previous, *polytope)
    on_old_face = _minimise(loss, *polytope, previous.reshape(1, -1), best_before)
    return on_old_face - _minimise(loss, *polytope)


def flow_constraints(mdp: MDP) -> tuple[Any, FloatArray]:
    """Q = {q ≥ 0 : balance q = inflow}: what enters (h, s) leaves it; a row each, a column each (h, s, a)."""
    from scipy import sparse

    leaving = sparse.kron(sparse.eye_array(mdp.n_states), np.ones((1, mdp.n_actions)))
    blocks: list[list[Any]] = [[None] * mdp.horizon for _ in range(mdp.horizon)]
    for h in range(mdp.horizon):
        blocks[h][h] = leaving
        if h > 0:
            blocks[h][h - 1] = -mdp.transitions.csr(h - 1).T
    inflow = np.zeros(mdp.horizon * mdp.n_states)
    inflow[: mdp.n_states] = mdp.initial
    return sparse.block_array(blocks, format="csr"), inflow


def _minimise(
    cost: FloatArray, balance: Any, inflow: FloatArray, cut: FloatArray | None = None, level: float = 0.0
) -> float:
    """Min ⟨q, cost⟩ over Q, where ⟨q, cut⟩ ≤ level if there is a cut."""
    from scipy.optimize import linprog

    limit = None if cut is None else np.array([level])
    solved = linprog(cost.reshape(-1), cut, limit, balance, inflow, method="highs", options=TIGHT)
    if solved.status != 0:
        raise RuntimeError(f"HiGHS did not solve the program: {solved.message}")
    return float(solved.fun)
