"""Holding costs through changed dynamics: a plan is a table of actions, judged in the dynamics of each day.

The plan of day j is the first of the actions that were optimal then, at every state. On day t it is followed
under the dynamics of that day, q_{j,t}, and costs C[j,t] = ⟨q_{j,t}, A_t⟩. Where the day does not allow what
it does, or the plan says nothing, the best that is allowed takes its place (forbidden.md).
"""

from __future__ import annotations

import numpy as np

from normalfan.geometry.bellman import finite_backup
from normalfan.geometry.face import Face, completed
from normalfan.geometry.ties import TieRule
from normalfan.pricing.crossing import price
from normalfan.pricing.dynamics import MovingStream
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.problem.mdp import MDP

AT_ONCE = 64


def costs_through_dynamics(moving: MovingStream, ties: TieRule) -> tuple[FloatArray, FloatArray]:
    """C[j,t] [n, n] of the plan of each day j on each day t, and J* [n]; all losses are in memory."""
    days = list(moving.rounds(AT_ONCE))
    backups = [finite_backup(mdp, loss, f"losses[{t}]") for t, (mdp, loss) in enumerate(days)]
    tied = np.stack([backup.tied(mdp, ties) for backup, (mdp, _) in zip(backups, days, strict=True)])
    plans = tied & (tied.cumsum(axis=3) == 1)
    values = np.array([backup.value(mdp) for backup, (mdp, _) in zip(backups, days, strict=True)])
    costs = np.empty((len(days), len(days)))
    for problem in dict.fromkeys(mdp for mdp, _ in days):
        visits = _visits(problem, plans)
        for t, (mdp, loss) in enumerate(days):
            if mdp is not problem:
                continue
            advantages = np.where(tied[t], 0.0, backups[t].advantages)
            allowed = advantages < np.inf
            costs[:, t] = visits @ np.where(allowed, advantages, 0.0).reshape(-1)
            silent = (visits * ~(plans & allowed).reshape(visits.shape)).any(axis=1)
            for j in np.flatnonzero(silent):
                kept = Face(problem, completed(plans[j], problem.allowed))
                costs[j, t] = price(kept, loss, ties=ties).price
    return costs, values


def _visits(mdp: MDP, plans: BoolArray) -> FloatArray:
    """[n, H·S·A]: where plans [n, H, S, A] go; where one says nothing its first action stands for that."""
    visits = np.empty(plans.shape)
    actions = np.eye(mdp.n_actions)[plans.argmax(axis=3)]
    reached = np.tile(mdp.initial[:, None], len(plans))
    for h in range(mdp.horizon):
        visits[:, h] = reached.T[:, :, None] * actions[:, h]
        reached = mdp.transitions.push(h, np.moveaxis(visits[:, h], 0, 2))
    return visits.reshape(len(plans), -1)
