"""What changed in the plan: the old and the new one, step by step.

Of the plans that were optimal yesterday the old one here is the cheapest under today's loss: it pays
exactly the price. Of today's optimal plans the new one is the one that departs from it least, in expected
number of steps, so that what differs has to differ. That plan is one backup on today's face whose cost is
1 for each action that is not the old one.

    >>> from normalfan.pricing.crossing import price
    >>> arms = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    >>> yesterday, today = np.array([[[0.0, 0.0, 1.0]]]), np.array([[[2.0, 1.0, 0.0]]])
    >>> change = plan_change(arms, price(optimal_face(arms, yesterday), today), today)
    >>> change.steps[0].old.action, change.steps[0].new.action, change.steps[0].paid
    (1, 2, 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import Crossing
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True)
class Move:
    """Where a plan most probably is at a step, and what it does there.

    Of actions that come to the same there (one loss, one distribution of the next state) it is the one with
    the shortest name: an empty battery rests, even if it is told to discharge.
    """

    state: int
    action: int
    probability: float  # of being in that state


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of the old and of the new plan."""

    step: int
    old: Move
    new: Move
    paid: float  # the part of the price that the old plan pays at this step

    @property
    def differs(self) -> bool:
        return self.old.action != self.new.action


@dataclass(frozen=True, slots=True, eq=False)
class PlanChange:
    """A crossing, as two plans side by side."""

    crossing: Crossing
    steps: tuple[PlanStep, ...]  # [H]
    dearest: tuple[int, int, int]  # the (h, s, a) at which the old plan pays most


def plan_change(
    mdp: MDP, crossing: Crossing, loss: FloatArray, *, ties: TieRule = DEFAULT_TIES
) -> PlanChange:
    """The plan that pays the price of `crossing` and the one that is optimal under its `loss` [H, S, A]."""
    departs = np.where(crossing.policy == 1.0, 0.0, 1.0)
    _, kept = optimal_face(mdp, loss, ties=ties).minimise(departs)
    old, new = _likely_moves(mdp, crossing.policy, loss), _likely_moves(mdp, kept, loss)
    paid = crossing.by_step
    h, s, a = (int(i) for i in np.unravel_index(int(crossing.attribution.argmax()), mdp.shape))
    return PlanChange(
        crossing=crossing,
        steps=tuple(PlanStep(h, old[h], new[h], float(paid[h])) for h in range(mdp.horizon)),
        dearest=(h, s, _shortest(mdp, loss, h, s, a)),
    )


def _likely_moves(mdp: MDP, policy: FloatArray, loss: FloatArray) -> list[Move]:
    visits = occupancy(mdp, policy)
    moves = []
    for h, s in enumerate(visits.sum(axis=2).argmax(axis=1).tolist()):
        action = int(visits[h, s].argmax())
        moves.append(Move(s, _shortest(mdp, loss, h, s, action), float(visits[h, s].sum())))
    return moves


def _shortest(mdp: MDP, loss: FloatArray, h: int, s: int, action: int) -> int:
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
