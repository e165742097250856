"""A learner made of learners, never much worse than the best of them.

All N members run side by side and see every loss. The combination gives each of them a weight and pays the
weighted mean of what they pay: what drawing one at the start of the episode and following it to the end pays
on average. Nothing is drawn here. The occupancies are averaged, and the policy of the average is played: it
pays the same, for losses are linear in the occupancy.

Weights are exponential, at a rate L / Δ that falls as the gaps Δ to a soft minimum add up (AdaHedge; de
Rooij, van Erven, Grünwald and Koolen, 2014). With a share α > 0 they forget: after each round a share α of
all weight is divided evenly (fixed share as Herbster and Warmuth, 1998, but with α / N for every member).
What that promises on whole runs, and with a share on intervals, `bound` computes: docs/details/learners.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.learners.learner import Clairvoyant, Described, Learner, as_played, seen_everywhere
from normalfan.pricing.kernels import whole_problem
from normalfan.problem.arrays import FloatArray, read_only


class ExpertWeights:
    """The weights alone: told what each of N members paid, it says how to weigh them next.

    >>> rule = ExpertWeights(2)
    >>> for paid in ([0.0, 1.0], [0.0, 1.0], [1.0, 0.0]):
    ...     rule.update(np.array(paid))
    >>> rule.weights.round(2), round(rule.bound(), 2)
    (array([0.74, 0.26]), 1.29)
    """

    def __init__(self, members: int, share: float = 0.0) -> None:
        if not 0 <= share < 1:
            raise InputError(
                f"share is {share}, but must be at least 0 and below 1 (a share of all weight): "
                f"0 switches it off."
            )
        self.share = float(share)
        self.weights: FloatArray = np.full(members, 1.0 / members)  # [N]
        self._scale = math.log(members / share) if share else math.log(members)  # L
        self._lost = np.zeros(members)  # Σ c, measured from the best
        self._gaps = [0.0]  # Δ_0, Δ_1, …

    def update(self, paid: FloatArray) -> None:
        """See what each member paid in the round, [N]."""
        costs = paid - paid.min()
        rate = self._rate()
        if self.share:
            moved = self.weights * _decayed(costs, rate)
            soft_minimum = -math.log(moved.sum()) / rate
            weights = (1.0 - self.share) * moved / moved.sum() + self.share / len(moved)
        else:
            # By sums, not by weights: one that has underflowed may belong to a member that wins by far.
            total = self._lost + costs
            soft_minimum = _soft_minimum(total, rate) - _soft_minimum(self._lost, rate)
            self._lost = total - total.min()
        self._gaps.append(self._gaps[-1] + max(float(self.weights @ costs) - soft_minimum, 0.0))
        if not self.share:
            # By the newest rate: if it changes, it must weigh the whole past alike.
            weights = _decayed(self._lost, self._rate())
            weights /= weights.sum()
        self.weights = weights

    def _rate(self) -> float:
        return self._scale / self._gaps[-1] if self._gaps[-1] > 0 else math.inf

    def bound(self, since: int = 0, until: int | None = None) -> float:
        """How much more than any one member it has paid at most, in rounds `since` ≤ t < `until`."""
        played = len(self._gaps) - 1
        end = played if until is None else until
        if not 0 <= since <= end <= played:
            raise InputError(
                f"rounds {since} to {end} are asked for, but {played} have been seen: choose among those."
            )
        if since == end:
            return 0.0
        if not self.share:
            if since:
                raise InputError(
                    f"since is {since}, but without a share weights promise nothing about intervals: "
                    f"build it with share=1/T for T rounds, or ask for since=0."
                )
            return 2.0 * self._gaps[end]
        forgetting = -math.log1p(-self.share) / self._scale * math.fsum(self._gaps[since:end])
        return self._gaps[end - 1] + (self._gaps[end] - self._gaps[since]) + forgetting


def _decayed(costs: FloatArray, rate: float) -> FloatArray:
    """e^{−rate·cost} of costs that are not negative; at an infinite rate, 1 for those of 0 alone."""
    return np.exp(-np.multiply(costs, rate, out=np.zeros_like(costs), where=costs > 0))


def _soft_minimum(costs: FloatArray, rate: float) -> float:
    """−log(mean of e^{−rate·cost}) / rate, at an infinite rate the minimum."""
    least = float(costs.min())
    return least - math.log(_decayed(costs - least, rate).mean()) / rate


class Combined(Described):
    """Several learners as one, which pays little more than the best of them, and says how much at most.

    Parameters
    ----------
    learners : sequence of Learner
        At least one, all of the same problem, fresh: they belong to the combination from now on.
    share : float
        α in [0, 1): 0 competes with one member for the whole run; 1/T with any member on any interval of
        a run of T rounds.

    Raises
    ------
    InputError
        If there is no learner, their problems differ, one must see the coming loss, or the share is not
        in [0, 1).

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> both = Combined([nf.learners.FaceTracker(arms), nf.learners.Hedge(arms, eta=0.1)])
    >>> log = nf.run(arms, both, np.array([[0.0, 1.0], [1.0, 0.0]] * 20).reshape(40, 1, 1, 2))
    >>> both.weights.round(2), round(log.total_regret, 1), round(both.bound(), 1)
    (array([0., 1.]), 20.9, 0.6)
    """

    def __init__(self, learners: Sequence[Learner], *, share: float = 0.0) -> None:
        if not learners:
            raise InputError("learners is empty, but a combination needs one at least: name them.")
        for i, learner in enumerate(learners):
            if learner.mdp is not learners[0].mdp:
                raise InputError(
                    f"learners[{i}] plays another problem than learners[0], but all must play the same: "
                    f"build them with one MDP."
                )
            if isinstance(learner, Clairvoyant):
                raise InputError(
                    f"learners[{i}] must see the coming loss before it acts, but a combination cannot "
                    f"show it: leave it out."
                )
        self.learners = tuple(learners)
        self.mdp = learners[0].mdp
        self.share = share
        self._rule = ExpertWeights(len(learners), share)
        self._played: tuple[int, tuple[FloatArray, FloatArray, FloatArray]] | None = None  # of a round

    @property
    def weights(self) -> FloatArray:
        """How much each member counts in the coming round, [N]."""
        return read_only(self._rule.weights.copy())

    def bound(self, since: int = 0, until: int | None = None) -> float:
        """How much more than any one member it has paid at most, in rounds `since` ≤ t < `until`.

        Of the losses that were observed: `nf.run` judges by the same. `since` is 0 unless there is a share.
        """
        return self._rule.bound(since, until)

    def act(self, round: int) -> FloatArray:
        return self._play(round)[2]

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        from normalfan._kernels.accounting import loss_paid

        seen, problem = seen_everywhere(self, self.mdp, loss), whole_problem(self.mdp)
        visits, plays, _ = self._play(round)
        paid = [loss_paid(problem, *member, seen) for member in zip(visits, plays, strict=True)]
        self._rule.update(np.array(paid))
        for learner in self.learners:
            learner.observe(round, seen)
        self._played = None

    def _play(self, round: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How often each member is in each state [N, H, S], their plays [N, H, S, A], and that of all."""
        from normalfan._kernels.playing import visits_of

        if self._played is None or self._played[0] != round:
            plays = np.stack([as_played(self.mdp, learner.act(round)) for learner in self.learners])
            visits = np.stack([visits_of(whole_problem(self.mdp), play) for play in plays])
            weights = self._rule.weights[:, None, None]
            total = (weights * visits).sum(axis=0)
            # Where the combination never is, any policy pays the same: the weighted mean of the members'.
            shares = np.where(total > 0, weights * visits / np.where(total > 0, total, 1.0), weights)
            policy = np.einsum("nhs,nhsa->hsa", shares, plays)
            self._played = round, (visits, plays, read_only(policy / policy.sum(axis=2, keepdims=True)))
        return self._played[1]
