"""The price from its definition, by linear programs: slow, and independent of the package's own method."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def price_by_linear_programs(mdp, yesterday, today):
    """Least loss today of a plan that was optimal yesterday, minus the least loss of any plan."""
    steps, states, actions = mdp.shape
    leave = sparse.kron(sparse.eye_array(states), np.ones(actions))
    rows = [[None] * steps for _ in range(steps)]
    for h in range(steps):
        rows[h][h] = leave  # what leaves a state at step h ...
        if h > 0:
            rows[h][h - 1] = -mdp.transitions.csr(h - 1).T  # ... arrived there from step h - 1
    flow = sparse.block_array(rows, format="csr")
    arrivals = np.concatenate([mdp.initial, np.zeros((steps - 1) * states)])

    def least(loss, **also):
        found = linprog(np.ravel(loss), A_eq=flow, b_eq=arrivals, method="highs", **also)
        if not found.success:
            raise RuntimeError(found.message)
        return found.fun

    was_optimal = {"A_ub": np.ravel(yesterday)[None], "b_ub": [least(yesterday)]}
    return least(today, **was_optimal) - least(today)
