"""Random holding costs, to schedule and to run rules on."""

from __future__ import annotations

import numpy as np

from normalfan import replan


def random_costs(rng: np.random.Generator, n_days: int, known: str = "before") -> replan.HoldingCosts:
    """Any upper triangle; small integers make ties."""
    costs = rng.integers(0, 5, size=(n_days, n_days)).astype(float)
    if known == "before":
        np.fill_diagonal(costs, 0)
    costs[np.tril_indices(n_days, -1)] = np.nan
    return replan.HoldingCosts(costs, np.zeros(n_days), known, 1)


def ageing_costs(rng: np.random.Generator, n_days: int, known: str) -> replan.HoldingCosts:
    """An older plan is never better: each column falls with the day the plan was made."""
    heights = rng.choice([0.0, 0.0, 0.3, 1.0, 4.0], size=(n_days, n_days)) * rng.random((n_days, n_days))
    costs = np.cumsum(heights[::-1], axis=0)[::-1]
    costs = np.stack([costs[:, t] - (costs[t, t] if known == "before" else 0) for t in range(n_days)], axis=1)
    costs[np.tril_indices(n_days, -1)] = np.nan
    return replan.HoldingCosts(costs, np.zeros(n_days), known, 1)
