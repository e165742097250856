"""Where a price is paid: the cell of the plan that carries most of it.

The price of a crossing is Γ = Σ_{h,s} p_h(s), p_h(s) = Σ_a u_h(s,a) A_h(s,a) (see `crossing`).
Its *costliest cell* is the (h, s) with the largest p_h(s), the first of them in order of step and state.
Actions with the same loss and the same distribution of the next state are one move. It is called by the
shortest of their names, the first of them in order: an empty battery that is told to discharge rests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import Crossing
from normalfan.problem.arrays import FloatArray, first_index
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True)
class CostliestCell:
    """The step and state at which the old plan pays most."""

    step: str  # by name, as the next three
    state: str  # in which it is
    action: str  # what the old plan does there
    best_action: str  # what is optimal under the new loss
    paid: float  # the part of the price paid there
    step_index: int  # the same by index
    state_index: int  # of `state`
    action_index: int  # of `action`
    best_action_index: int  # of `best_action`


def costliest_cell(
    mdp: MDP, crossing: Crossing, loss: FloatArray, *, ties: TieRule = DEFAULT_TIES
) -> CostliestCell | None:
    """The costliest cell of `crossing = price(face, loss, ties=ties)`; None if nothing is paid."""
    paid = crossing.attribution.sum(axis=2)
    h, s = first_index(paid == paid.max())
    if paid[h, s] == 0:
        return None
    optimal = optimal_backup(mdp, loss).tied(mdp, ties)[h, s]
    old, best = (
        shortest_named(mdp, loss, h, s, int(actions.argmax())) for actions in (crossing.policy[h, s], optimal)
    )
    return CostliestCell(
        step=mdp.labels.step(h),
        state=mdp.labels.state(s),
        action=mdp.labels.action(old),
        best_action=mdp.labels.action(best),
        paid=float(paid[h, s]),
        step_index=h,
        state_index=s,
        action_index=old,
        best_action_index=best,
    )


def shortest_named(mdp: MDP, loss: FloatArray, h: int, s: int, action: int) -> int:
    """Of the actions that cost and do at (h, s) what `action` does, the one with the shortest name."""
    cost_alike = np.flatnonzero(loss[h, s] == loss[h, s, action]).tolist()
    if len(cost_alike) == 1:
        return action

    def leads_to(a: int) -> FloatArray:
        mass = np.zeros(mdp.shape[1:])
        mass[s, a] = 1.0
        return mdp.transitions.push(h, mass)

    there = leads_to(action)
    same: list[int] = [a for a in cost_alike if np.array_equal(leads_to(a), there)]
    return min(same, key=lambda a: len(mdp.labels.action(a)))
