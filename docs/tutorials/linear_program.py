"""The price from its definition, by linear programs: slow, and independent of the package's own method.

What is not allowed has no variable.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def price_by_linear_programs(mdp, yesterday, today):
    """Least loss today of a plan that was optimal yesterday, minus the least loss of any plan."""
    was_optimal = {"A_ub": np.ravel(yesterday)[None], "b_ub": [least_loss(mdp, yesterday).fun]}
    return least_loss(mdp, today, **was_optimal).fun - least_loss(mdp, today).fun


def price_with_closures(mdp, yesterday, today):
    """The same if today closes some actions: what yesterday's plan, of every state and step, then costs."""
    return price_of_plan(mdp, optimal_actions(mdp, yesterday), today)


def optimal_actions(mdp, loss):
    """[H, S, A]: those without reduced costs, if a round may begin in every state and step."""
    everywhere = np.ones(mdp.horizon * mdp.n_states)
    reduced_costs = np.full(mdp.shape, np.inf)
    reduced_costs[loss < np.inf] = least_loss(mdp, loss, arrivals=everywhere).lower.marginals
    return reduced_costs < 1e-7


def price_of_plan(mdp, plan, today):
    """Where the plan has no action that is allowed today, any other that is allowed will do."""
    allowed = today < np.inf
    kept = np.where((plan & allowed).any(axis=2, keepdims=True), plan & allowed, allowed)
    return least_loss(mdp, np.where(kept, today, np.inf)).fun - least_loss(mdp, today).fun


def least_loss(mdp, loss, arrivals=None, **also):
    steps, states, actions = mdp.shape
    leave = sparse.kron(sparse.eye_array(states), np.ones(actions))
    rows = [[None] * steps for _ in range(steps)]
    for h in range(steps):
        rows[h][h] = leave  # what leaves a state at step h ...
        if h > 0:
            rows[h][h - 1] = -mdp.transitions.csr(h - 1).T  # ... arrived there from step h - 1
    flow = sparse.block_array(rows, format="csc")
    if arrivals is None:
        arrivals = np.concatenate([mdp.initial, np.zeros((steps - 1) * states)])
    allowed = np.isfinite(np.ravel(loss))
    found = linprog(np.ravel(loss)[allowed], A_eq=flow[:, allowed], b_eq=arrivals, method="highs", **also)
    if not found.success:
        raise RuntimeError(found.message)
    return found
