"""Dynamics that move: where one moved row costs most, and why one reading of the old plan is NP-hard.

`one_row_moved` is causal: within one problem, moving one row of the transitions at step h, always by 2, costs
(H−h)γ − κ: equal variation of the transitions hides a factor H − 1.

`satisfiability` makes a formula into two days. Yesterday each variable chose one of its two literals, and who
reached a literal was bound to the action "pay" there. Today clauses, which no policy met yesterday, choose
among their literals; "pay" costs 1, the other action nothing. A policy that was optimal yesterday is free at
the literals that it did not reach: its variables are an assignment (a literal is true if it was left out),
and the least that such a policy pays is the least share of clauses that an assignment leaves unsatisfied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.mdp import MDP, Labels

Clause: TypeAlias = tuple[int, ...]
"""Its literals, as in DIMACS files: 3 is the third variable, -3 its negation."""

PAY, FREE = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class TwoDays:
    """Yesterday's problem and loss, and today's."""

    before: MDP
    previous_loss: FloatArray  # [H, S, A]
    after: MDP
    loss: FloatArray  # [H, S, A]


def one_row_moved(horizon: int, step: int, cost: float, detour: float) -> TwoDays:
    """A road that is blocked today at one step, counted from 1: straight on leads to a slow road for good.

    Examples
    --------
    >>> import normalfan as nf
    >>> days = one_row_moved(horizon=6, step=2, cost=1.0, detour=0.25)
    >>> nf.price_stream([(days.before, days.previous_loss), (days.after, days.loss)]).prices
    array([0.  , 3.75])
    """
    nexts = np.broadcast_to(np.array([[0, 0], [1, 1]]), (horizon, 2, 2)).copy()
    labels = Labels(states=("main road", "slow road"), actions=("straight on", "detour"))
    before = MDP(nexts, 0, labels=labels)
    nexts[step - 1, 0, 0] = 1
    loss = np.broadcast_to(np.array([[0.0, detour], [cost, cost]]), (horizon, 2, 2))
    return TwoDays(before, loss, MDP(nexts, 0, labels=labels), loss)


def satisfiability(clauses: Sequence[Clause]) -> TwoDays:
    """The two days of a formula in conjunctive normal form.

    Examples
    --------
    >>> import normalfan as nf
    >>> from normalfan_paper.bounds.optimal_reading import optimal_price
    >>> days = satisfiability([(1,), (-1,), (1, 2)])             # one of the first two must fail
    >>> round(optimal_price(days.before, days.previous_loss, days.after, days.loss), 12)
    0.333333333333
    """
    variables = max(abs(literal) for clause in clauses for literal in clause)
    n_actions = max(2, *map(len, clauses))
    n_clauses = len(clauses)
    # States: the variables' choices, their literals (x₁, ¬x₁, x₂, …), then the clauses.
    literals = variables + np.arange(2 * variables).reshape(-1, 2)
    n_states = 3 * variables + n_clauses
    moves = np.tile(np.arange(n_states)[:, None], n_actions)
    moves[:variables] = _filled(literals.tolist(), n_actions)
    ends = [[int(literals[abs(one) - 1, int(one < 0)]) for one in clause] for clause in clauses]
    moves[3 * variables :] = _filled(ends, n_actions)
    starts: list[FloatArray] = []
    for first, count in ((0, variables), (3 * variables, n_clauses)):
        start = np.zeros(n_states)
        start[first : first + count] = 1.0 / count
        starts.append(start)
    yesterday, today = (np.zeros((2, n_states, n_actions)) for _ in range(2))
    at_literals = slice(variables, 3 * variables)
    yesterday[1, at_literals, 1:] = 1.0
    today[1, at_literals] = 1.0
    today[1, at_literals, FREE] = 0.0
    return TwoDays(MDP(moves, starts[0], 2), yesterday, MDP(moves, starts[1], 2), today)


def least_unsatisfied(clauses: Sequence[Clause]) -> float:
    """The least share of clauses that an assignment leaves unsatisfied, from the list of all assignments."""
    variables = max(abs(literal) for clause in clauses for literal in clause)
    truth = np.indices((2,) * variables).reshape(variables, -1).astype(bool)
    failed: list[Any] = [
        ~np.any([truth[abs(one) - 1] == (one > 0) for one in clause], axis=0) for clause in clauses
    ]
    return float(np.mean(failed, axis=0).min())


def _filled(rows: Sequence[Sequence[int]], width: int) -> IntArray:
    """Rows of one width: further actions repeat the first."""
    return np.array([[*row, *[row[0]] * (width - len(row))] for row in rows])
