"""Plans: one policy for each day, made from the losses known by then.

The plan of day j is optimal for the loss of day j, or for the mean of the last n losses up to day j (of all
of them while there are fewer). Where several actions are optimal it takes the one with the lowest index: a
vertex of the optimal face, the same on every machine.

    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> days = np.array([[0.0, 1.0], [3.0, 1.0]]).reshape(2, 1, 1, 2)
    >>> [visits.ravel().tolist() for visits in plan_occupancies(arms, days, TieRule())]
    [[1.0, 0.0], [0.0, 1.0]]
    >>> [loss.ravel().tolist() for loss in trailing_means(days, window=2)]
    [[0.0, 1.0], [1.5, 1.0]]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, occupancy, optimal_backup
from normalfan.geometry.ties import TieRule
from normalfan.pricing.stream import block_rounds
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import LossStream
from normalfan.problem.mdp import MDP


def check_days(name: str, days: int, remedy: str) -> None:
    """Refuse what is not a number of days."""
    if isinstance(days, bool) or not isinstance(days, int | np.integer) or days < 1:
        raise InputError(f"{name} is {days!r}, but must be a whole number of days from 1: {remedy}.")


def each_round(mdp: MDP, stream: LossStream) -> Iterator[FloatArray]:
    """The losses [H, S, A] of a stream, each once."""
    shared = 0
    for block in stream.blocks(mdp.shape, block_rounds(mdp, is_view=stream.is_view)):
        yield from block[shared:]
        shared = 1


def trailing_means(losses: Iterable[FloatArray], window: int) -> Iterator[FloatArray]:
    """The mean of each loss and the `window` − 1 before it; of fewer at the beginning."""
    recent = deque[FloatArray](maxlen=window)
    for loss in losses:
        recent.append(loss)
        yield loss if len(recent) == 1 else np.mean(recent, axis=0)


def plan_occupancies(mdp: MDP, losses: Iterable[FloatArray], ties: TieRule) -> Iterator[FloatArray]:
    """[H, S, A] for each loss: how often its plan is in each state and takes each action."""
    for loss in losses:
        tied = optimal_backup(mdp, loss).tied(mdp, ties)
        yield occupancy(mdp, as_deterministic_policy(mdp, tied.argmax(axis=2)))


def advantages(mdp: MDP, losses: Iterable[FloatArray], ties: TieRule) -> Iterator[FloatArray]:
    """[H, S, A] for each loss: how much worse than the best each action is; 0 where it counts as tied."""
    for loss in losses:
        yield optimal_backup(mdp, loss).settled(mdp, ties)
