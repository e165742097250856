"""What a learner is: it acts, then it sees the loss.

    for round, loss in enumerate(losses):
        policy = learner.act(round)            # [H, S, A], a distribution at every step and state
        learner.observe(round, loss)           # full information: the whole loss [H, S, A]

The loop owns the round counter and rounds count from 0; a learner keeps none of its own, so a step-size
schedule always advances and a resumed run goes on where it stopped. `act` changes nothing that a caller
could see: asked twice, it answers the same.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


@runtime_checkable
class Learner(Protocol):
    """Plays a policy in every round, and sees that round's loss afterwards."""

    mdp: MDP

    def act(self, round: int) -> FloatArray:
        """The policy [H, S, A] of the coming round, read-only."""
        ...

    def observe(self, round: int, loss: FloatArray) -> None:
        """The loss [H, S, A] of the round that was just played."""
        ...


@runtime_checkable
class Clairvoyant(Learner, Protocol):
    """A learner that must see the coming loss before it acts: a comparator, not a competitor."""

    def foresee(self, loss: FloatArray) -> None:
        """The loss [H, S, A] of the round about to be played; called before `act`."""
        ...
