"""The previous-face tracker.

It plays a point of the optimal face F_{t−1} of the last loss, and nothing else. Its dynamic regret
then splits exactly (Theorem "Exact face-regret decomposition"),

    r_t = Γ_t + ε_t        for every round after the first,

into the price of the crossing, which the losses alone decide, and the error of its selector. In round
0, before any loss, it plays the uniform policy.

The default selector is the lexicographic one. Where all faces are vertices every selector is the same
tracker, and on degenerate faces the obvious prediction, the last loss, is constant on its own face and
decides nothing (see `prediction`): the fixed tie-break does the same without pretending to know. Any
better choice brings in a parameter, which is the user's to name.

    >>> import numpy as np
    >>> tracker = FaceTracker(MDP(np.array([[0, 0]]), initial=0, horizon=1))
    >>> tracker.act(0)
    array([[[0.5, 0.5]]])
    >>> tracker.observe(0, np.array([[[1.0, 0.0]]]))
    >>> tracker.act(1)
    array([[[0., 1.]]])
"""

from __future__ import annotations

from collections.abc import Callable

from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.tracking.selection import ClairvoyantSelector, Lexicographic, Selector, uniform_policy
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.mdp import MDP


class FaceTracker:
    """Plays on the optimal face of the last loss, at the point that its selector chooses.

    `selector` belongs to this tracker alone: it may remember losses. The tracker is `Clairvoyant`
    exactly when its selector is.
    """

    foresee: Callable[[FloatArray], None]  # of clairvoyant selectors only

    def __init__(self, mdp: MDP, selector: Selector | None = None, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.mdp = mdp
        self.selector: Selector = Lexicographic() if selector is None else selector
        self.ties = ties
        self.face: Face | None = None
        self._play = read_only(uniform_policy(mdp))
        self._moved = False  # the face is newer than the play
        if isinstance(self.selector, ClairvoyantSelector):
            self.foresee = self.selector.foresee

    def act(self, round: int) -> FloatArray:
        """The policy [H, S, A] for the coming round: uniform before any loss was seen.

        The selector is asked once a round, so a random one does not change its mind within it.
        """
        if self._moved and self.face is not None:
            self._play = read_only(self.selector.select(self.face, self._play))
            self._moved = False
        return self._play

    def observe(self, round: int, loss: FloatArray) -> None:
        """Move to the optimal face of the loss just seen."""
        self.face = optimal_face(self.mdp, loss, ties=self.ties)
        self.selector.observe(loss)
        self._moved = True
