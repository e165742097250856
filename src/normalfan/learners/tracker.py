"""The previous-face tracker: a learner that plays on the optimal face of the last loss, and nothing else.

Its dynamic regret splits exactly (Theorem "Exact face-regret decomposition"), r_t = Γ_t + ε_t for every round
after the first: the price of the crossing, which the losses alone decide, and the error of its selector.

The default selector is lexicographic. On degenerate faces the obvious prediction, the last loss, is constant
on its own face and decides nothing; a fixed tie-break does the same and claims no knowledge. Any better
choice needs a parameter, which the user should choose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy.typing as npt

from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.options import Described
from normalfan.learners.selectors import ClairvoyantSelector, Lexicographic, Selector, uniform_policy
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


class FaceTracker(Described):
    """Plays on the optimal face of the last loss, at the point that its selector chooses.

    In round 0, before any loss, it plays the uniform policy. It is `Clairvoyant` if its selector is.

    Parameters
    ----------
    mdp : MDP
        The problem.
    selector : Selector or None
        Chooses a point of the face, for this tracker only; None is `Lexicographic()`.
    ties : TieRule
        Which actions count as equally good.

    Examples
    --------
    >>> import normalfan as nf
    >>> tracker = nf.learners.FaceTracker(nf.MDP([[0, 0]], initial=0, horizon=1))
    >>> tracker.observe(0, [[[1.0, 0.0]]])
    >>> tracker.act(1)
    array([[[0., 1.]]])
    """

    foresee: Callable[[FloatArray], None]  # of clairvoyant selectors only

    def __init__(self, mdp: MDP, selector: Selector | None = None, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.mdp = mdp
        self.selector: Selector = Lexicographic() if selector is None else selector
        self.ties = ties
        self.face: Face | None = None  # of the last loss
        self._play = read_only(uniform_policy(mdp))
        self._moved = False  # the face is newer than the play
        if isinstance(self.selector, ClairvoyantSelector):
            self.foresee = self.selector.foresee

    def act(self, round: int) -> FloatArray:
        # The selector is asked once a round: a random one must not draw again within it.
        if self._moved and self.face is not None:
            self._play = read_only(self.selector.select(self.face, self._play))
            self._moved = False
        return self._play

    def observe(self, round: int, loss: npt.ArrayLike) -> None:
        seen = as_loss(self.mdp, loss)
        self.face = optimal_face(self.mdp, seen, ties=self.ties)
        self.selector.observe(seen)
        self._moved = True
