"""The price by its definition: two linear programs over the occupancy polytope, by HiGHS.

    J* = min ⟨q, ℓ_t⟩ over Q,      m = min ⟨q, ℓ_t⟩ over Q ∩ {⟨q, ℓ_{t−1}⟩ ≤ J*_{t−1}},      Γ = m − J*.

A thousand times slower than the backup and good to about 1e-7: a yardstick, never the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

# The old face is thin: what HiGHS is allowed to violate it by comes back divided by the cone margin.
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def definitional_price(mdp: MDP, previous: FloatArray, loss: FloatArray) -> float:
    flow, inflow = _flow_constraints(mdp)
    best_before = _minimise(previous, flow, inflow)
    best_now = _minimise(loss, flow, inflow)
    on_old_face = _minimise(loss, flow, inflow, previous.reshape(1, -1), best_before)
    return on_old_face - best_now


def _minimise(
    cost: FloatArray,
    flow: Any,
    inflow: FloatArray,
    at_most: FloatArray | None = None,
    bound: float = 0.0,
) -> float:
    from scipy.optimize import linprog

    limit = None if at_most is None else np.array([bound])
    solved = linprog(cost.reshape(-1), at_most, limit, flow, inflow, method="highs", options=TIGHT)
    if solved.status != 0:
        raise RuntimeError(f"HiGHS did not solve the program: {solved.message}")
    return float(solved.fun)


def _flow_constraints(mdp: MDP) -> tuple[Any, FloatArray]:
    """What leaves (h, s) is what arrives there: one row per (h, s), one column per (h, s, a)."""
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
