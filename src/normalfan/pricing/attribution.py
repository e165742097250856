"""Where a price is paid: the cell of the plan that carries most of it.

The price of a crossing is Γ = Σ_{h,s} p_h(s), p_h(s) = Σ_a u_h(s,a) A_h(s,a) (see `crossing`).
Its *costliest cell* is the (h, s) with the largest p_h(s), the first of them in order of step and state.
Actions with the same loss and the same distribution of the next state are one move. It is called by the
shortest of their names, the first of them in order: an empty battery that is told to discharge rests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.pricing.kernels import Tables
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.mdp import Labels


@dataclass(frozen=True, slots=True)
class CostliestCell:
    """The step and state at which the plan that is priced pays most."""

    step: str  # by name, as the next three
    state: str  # in which it is
    action: str  # what the plan that is priced does there
    best_action: str  # what is optimal under the new loss
    paid: float  # the part of the price paid there
    step_index: int  # the same by index
    state_index: int  # of `state`
    action_index: int  # of `action`
    best_action_index: int  # of `best_action`


def named_cell(labels: Labels, cell: IntArray, paid: float) -> CostliestCell | None:
    """A cell (step, state, action, best action) by name; None where nothing is paid."""
    h, s, action, best = cell.tolist()
    if h < 0:
        return None
    names = (labels.step(h), labels.state(s), labels.action(action), labels.action(best))
    return CostliestCell(*names, float(paid), h, s, action, best)


def shortest_named(tables: Tables, losses: FloatArray, steps: IntArray, cells: IntArray) -> IntArray:
    """Of the actions that cost and do what an action does, the one with the shortest name, for each [n].

    `losses` [n, A] are those of the step and state of each; `cells` [n, 2] are state and action.
    """
    mdp = tables.mdp
    rows = tables.twins.reshape(-1, mdp.n_states, mdp.n_actions)
    twins = rows[steps % len(rows), cells[:, 0]]
    each, actions = np.arange(len(cells)), cells[:, 1]
    same = (twins == twins[each, actions][:, None]) & (losses == losses[each, actions][:, None])
    lengths = np.array([len(mdp.labels.action(a)) for a in range(mdp.n_actions)])
    shortest: IntArray = np.where(same, lengths, lengths.max() + 1).argmin(axis=1)
    return shortest
