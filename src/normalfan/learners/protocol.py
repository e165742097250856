"""What a learner is: it acts, then it sees the loss.

    for round, loss in enumerate(losses):
        policy = learner.act(round)            # [H, S, A], a distribution at every step and state
        learner.observe(round, loss)           # full information: the whole loss [H, S, A]

The loop owns the counter of the rounds, from 0: a schedule always advances, and a resumed run continues.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


@runtime_checkable
class Learner(Protocol):
    """Plays a policy in every round, and sees the loss of the round afterwards.

    Examples
    --------
    >>> import normalfan as nf
    >>> isinstance(nf.learners.Hedge(nf.MDP([[0, 0]], initial=0, horizon=1)), nf.learners.Learner)
    True
    """

    mdp: MDP  # the problem that it plays

    def act(self, round: int) -> FloatArray:
        """The policy [H, S, A] of the coming round, read-only; asked twice, it is the same one."""

    def observe(self, round: int, loss: FloatArray) -> None:
        """See the whole loss [H, S, A] of the round that was just played; it is not written to."""


@runtime_checkable
class Clairvoyant(Learner, Protocol):
    """A learner that must see the coming loss before it acts: for comparison only.

    Examples
    --------
    >>> from normalfan.learners import FaceTracker, Oracle
    >>> isinstance(FaceTracker(MDP([[0, 0]], initial=0, horizon=1), Oracle()), Clairvoyant)
    True
    """

    def foresee(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round about to be played; called before `act`."""
