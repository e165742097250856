"""K-median: which k rows of a cost matrix serve its columns best, and how much better any choice could be.

Choices come from greedy steps and swaps. The bound is that of the linear relaxation with weights y_j on rows,

    min Σ_t θ_t,   Σ_j y_j = k,   0 ≤ y ≤ 1,   θ_t ≥ λ − Σ_j (λ − C[j,t])⁺ y_j   for every t and λ ≥ 0,

by cutting planes: HiGHS solves it with some of the rows j and some of the λ, more are added where they are
missing. Its multipliers give one λ_t for each column. Whatever these are,

    L(λ) = Σ_t λ_t − (the k largest of Σ_t (λ_t − C[j,t])⁺)  ≤  the least cost,

and only L is reported, which needs no solver: the bound holds even if HiGHS is stopped or off by rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray

ROWS_AT_FIRST = 60  # of the relaxation; more where they are missing
ROUNDS = 25  # of cuts, at most
CLOSE_ENOUGH = 1e-4  # the gap to the relaxation at which no more cuts are made
ROUNDING = 1e-9  # a share of the costs: what is smaller is no gain and no cut


def medians(
    costs: FloatArray, most: int, advance: Callable[[int], object] = lambda _: None
) -> list[tuple[IntArray, float]]:
    """For k = 1 … `most`: the rows chosen and a bound of the cost; ends where one more does not help."""
    chosen, cuts, found = np.empty(0, dtype=np.int64), _Cuts(costs), list[tuple[IntArray, float]]()
    nearest = np.full(costs.shape[1], np.inf)
    while len(found) < most:
        totals = np.minimum(costs, nearest).sum(axis=1)
        if not totals.min() < nearest.sum() * (1 - ROUNDING):
            break
        grown = _swapped(costs, np.append(chosen, totals.argmin()))
        bound, heaviest = cuts.bound(grown)
        # Where its weights are whole numbers, or nearly, the largest are a choice of their own.
        chosen = _cheaper(costs, grown, _swapped(costs, heaviest))
        nearest = costs[chosen].min(axis=0)
        found.append((chosen, bound))
        advance(1)
    for k in range(len(found) - 2, -1, -1):  # and so is a larger choice without one of its rows
        larger = found[k + 1][0]
        fewer = [np.delete(larger, i) for i in range(len(larger))]
        best = min(fewer, key=lambda rows: _cost(costs, rows))
        found[k] = (_cheaper(costs, found[k][0], _swapped(costs, best)), found[k][1])
    return [(np.sort(rows), bound) for rows, bound in found]


def _cost(costs: FloatArray, rows: IntArray) -> float:
    return float(costs[rows].min(axis=0).sum())


def _cheaper(costs: FloatArray, rows: IntArray, others: IntArray) -> IntArray:
    return others if _cost(costs, others) < _cost(costs, rows) * (1 - ROUNDING) else rows


def _swapped(costs: FloatArray, chosen: IntArray) -> IntArray:
    """A choice after every exchange of one row that helps, the best first."""
    chosen, columns = chosen.copy(), np.arange(costs.shape[1])
    while True:
        served = costs[chosen]
        first = served.argmin(axis=0)
        nearest = served[first, columns]
        served[first, columns] = np.inf
        without = np.minimum(costs, served.min(axis=0))  # what a newcomer j costs if the first is gone
        joined = np.minimum(costs, nearest)
        own = first[:, None] == np.arange(len(chosen))
        totals = joined.sum(axis=1)[:, None] + (without - joined) @ own
        joins, leaves = np.unravel_index(totals.argmin(), totals.shape)
        if not totals[joins, leaves] < nearest.sum() * (1 - ROUNDING):
            return chosen
        chosen[leaves] = joins


class _Cuts:
    """The relaxation for one k after the other; cuts do not depend on k, so those that bind are kept."""

    def __init__(self, costs: FloatArray) -> None:
        self.costs = costs
        self.columns = np.empty(0, dtype=np.int64)  # t of each cut
        self.levels = np.empty(0)  # λ of each cut

    def bound(self, chosen: IntArray) -> tuple[float, IntArray]:
        """The largest L found, and the k rows of largest weight; `chosen` are k good rows to start from."""
        costs, k = self.costs, len(chosen)
        if k == 1 or not costs[chosen].min(axis=0).any():  # the best of n, or free
            return float(costs[chosen].min(axis=0).sum()), chosen
        nearest, second = np.partition(costs[chosen], 1, axis=0)[:2]
        for level in ((nearest + second) / 2, second):
            self._add(np.flatnonzero(level > 0), level)
        best, gains = self._dual((nearest + second) / 2, k)
        rows = np.union1d(chosen, np.argsort(-gains)[:ROWS_AT_FIRST])
        for _ in range(ROUNDS):
            weights, paid, multipliers = self._solve(rows, k, float(nearest.mean()))
            heaviest = rows[np.argsort(-weights)[:k]]
            levels = np.zeros(len(nearest))
            np.add.at(levels, self.columns, multipliers * self.levels)
            value, gains = self._dual(levels, k)
            best = max(best, value)
            level, needed = _fractional(costs[rows], weights)
            missing = np.flatnonzero(needed > paid + ROUNDING * needed.sum())
            newcomers = np.setdiff1d(np.argsort(-gains)[: ROWS_AT_FIRST // 2 + k], rows)
            if needed.sum() - best <= CLOSE_ENOUGH * needed.sum() or not (len(missing) or len(newcomers)):
                break
            self._add(missing, level)
            rows = np.union1d(rows, newcomers)
        binding = np.flatnonzero(multipliers > ROUNDING)  # those added after the last solution have none
        self.columns, self.levels = self.columns[binding], self.levels[binding]
        return best, heaviest

    def _add(self, columns: IntArray, levels: FloatArray) -> None:
        self.columns = np.append(self.columns, columns)
        self.levels = np.append(self.levels, levels[columns])

    def _dual(self, levels: FloatArray, k: int) -> tuple[float, FloatArray]:
        """L(λ), and what each row gains, Σ_t (λ_t − C[j,t])⁺."""
        gains = np.maximum(levels - self.costs, 0.0).sum(axis=1)
        return float(levels.sum() - np.partition(gains, -k)[-k:].sum()), gains

    def _solve(self, rows: IntArray, k: int, scale: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights y of `rows`, θ, and the multiplier of each cut."""
        from scipy import sparse
        from scipy.optimize import linprog

        n_columns, n_cuts = self.costs.shape[1], len(self.levels)
        saved = np.maximum(self.levels[:, None] - self.costs[np.ix_(rows, self.columns)].T, 0.0) / scale
        theta = sparse.csr_array(
            (np.ones(n_cuts), (np.arange(n_cuts), self.columns)), shape=(n_cuts, n_columns)
        )
        solved = linprog(
            np.repeat([0.0, 1.0], [len(rows), n_columns]),
            A_ub=-sparse.hstack([sparse.csr_array(saved), theta], format="csr"),
            b_ub=-self.levels / scale,
            A_eq=np.repeat([[1.0, 0.0]], [len(rows), n_columns], axis=1),
            b_eq=[k],
            bounds=[(0, 1)] * len(rows) + [(0, None)] * n_columns,
            method="highs-ds",
        )
        weights, paid = np.split(np.maximum(solved.x, 0.0), [len(rows)])
        return weights, paid * scale, -solved.ineqlin.marginals


def _fractional(costs: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What each column costs if served by the nearest rows as far as their weights go: the cut's λ, and θ."""
    order = costs.argsort(axis=0)
    full = np.cumsum(weights[order], axis=0) >= 1 - ROUNDING
    last = np.where(full.any(axis=0), full.argmax(axis=0), len(costs) - 1)
    level = costs[order[last, np.arange(costs.shape[1])], np.arange(costs.shape[1])]
    return level, level - weights @ np.maximum(level - costs, 0.0)
