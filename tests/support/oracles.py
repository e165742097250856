"""The mathematics again, by other means: exact rationals written from the definitions.

Nothing here is shared with the package.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from itertools import product

import numpy as np
from problems import Problem

Pairs = dict[tuple[int, int], Fraction]


def exact_values(problem: Problem, loss: np.ndarray) -> tuple[list[list[Fraction]], np.ndarray]:
    """V [H+1][S] and the optimal actions [H, S, A], in rationals."""
    return _exact_values(problem, np.asarray(loss, dtype=np.int64).tobytes())


@lru_cache(maxsize=32)  # value, mask and price of a round ask for the same
def _exact_values(problem: Problem, numbers: bytes) -> tuple[list[list[Fraction]], np.ndarray]:
    horizon, n_states, n_actions = problem.shape
    loss = np.frombuffer(numbers, dtype=np.int64).reshape(problem.shape)
    values = [[Fraction(0)] * n_states for _ in range(horizon + 1)]
    optimal = np.zeros(problem.shape, dtype=bool)
    for h in reversed(range(horizon)):
        for s in range(n_states):
            q = [
                int(loss[h, s, a])
                + sum(p * values[h + 1][j] for j, p in problem.probability(h, s, a).items())
                for a in range(n_actions)
            ]
            values[h][s] = min(q)
            optimal[h, s] = [x == values[h][s] for x in q]
    return values, optimal


def exact_value(problem: Problem, loss: np.ndarray) -> Fraction:
    values, _ = exact_values(problem, loss)
    return sum((p * values[0][s] for s, p in problem.initial().items()), Fraction(0))


def exact_mask(problem: Problem, loss: np.ndarray) -> np.ndarray:
    """The canonical mask: optimal actions at states reached through optimal actions."""
    _, optimal = exact_values(problem, loss)
    mask = np.zeros_like(optimal)
    reached = set(problem.initial())
    for h in range(problem.shape[0]):
        ahead = set()
        for s in reached:
            mask[h, s] = optimal[h, s]
            for a in np.flatnonzero(optimal[h, s]):
                ahead |= set(problem.probability(h, s, int(a)))
        reached = ahead
    return mask


def exact_restricted_value(problem: Problem, mask: np.ndarray, loss: np.ndarray) -> Fraction:
    """Min ⟨u, ℓ⟩ over the face with this mask, as a difference of raw values, not of advantages."""

    @cache
    def value(h: int, s: int) -> Fraction:
        if h == problem.shape[0]:
            return Fraction(0)
        return min(
            int(loss[h, s, a])
            + sum(p * value(h + 1, j) for j, p in problem.probability(h, s, int(a)).items())
            for a in np.flatnonzero(mask[h, s])
        )

    return sum((p * value(0, s) for s, p in problem.initial().items()), Fraction(0))


def exact_price(problem: Problem, previous: np.ndarray, loss: np.ndarray) -> Fraction:
    mask = exact_mask(problem, previous)
    return exact_restricted_value(problem, mask, loss) - exact_value(problem, loss)


def deterministic_policies(problem: Problem) -> list[np.ndarray]:
    """Every deterministic policy, as actions [H, S]."""
    horizon, n_states, n_actions = problem.shape
    return [
        np.array(choice).reshape(horizon, n_states)
        for choice in product(range(n_actions), repeat=horizon * n_states)
    ]
