"""What a learner is: it acts, then it sees the loss.

    for round, loss in enumerate(losses):
        policy = learner.act(round)            # [H, S, A], a distribution at every step and state
        learner.observe(round, loss)           # full information: the whole loss [H, S, A]

The loop owns the round counter, and rounds count from 0. A learner keeps no counter of its own, so a
step-size schedule always advances, and a resumed run continues where it stopped.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


@runtime_checkable
class Learner(Protocol):
    """Plays a policy in every round, and sees the loss of the round afterwards.

    Attributes
    ----------
    mdp : MDP
        The problem that it plays.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> isinstance(nf.learners.Hedge(arms), nf.learners.Learner)
    True
    """

    mdp: MDP

    def act(self, round: int) -> FloatArray:
        """Give the policy of the coming round; asked twice, it gives the same one.

        Parameters
        ----------
        round : int
            The number of the round, from 0.

        Returns
        -------
        array [H, S, A]
            A distribution over actions at every step and state, read-only.
        """
        ...

    def observe(self, round: int, loss: FloatArray) -> None:
        """See the loss of the round that was just played.

        Parameters
        ----------
        round : int
            The number of that round.
        loss : array [H, S, A]
            The whole loss; it is not written to.
        """
        ...


@runtime_checkable
class Clairvoyant(Learner, Protocol):
    """A learner that must see the coming loss before it acts: for comparison only.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> tracker = nf.learners.FaceTracker(arms, nf.learners.Oracle())
    >>> isinstance(tracker, nf.learners.Clairvoyant)
    True
    """

    def foresee(self, loss: FloatArray) -> None:
        """See the loss of the round about to be played; called before `act`.

        Parameters
        ----------
        loss : array [H, S, A]
            The coming loss.
        """
        ...
