"""The only meaning of "equal": a modelling decision, since the price jumps at a wall of the fan.

    a is optimal at (h, s)   ⇔   Q_h(s,a) − V_h(s)  ≤  absolute + relative · max(size_h(s,a), size_h(s))

size_h(s,a) = max(|ℓ_h(s,a)|, E[size_{h+1}(s')]), that of a state is the largest of its best actions: a huge
penalty touches only the actions that lead to it. An advantage up to `band` times the threshold is *doubtful*
unless surely zero: a round whose price depends on the reading says so (`normalfan.pricing.reading`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.errors import check_number
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.problem.mdp import MDP


@dataclass(frozen=True, slots=True)
class TieRule:
    """When two actions count as equally good: advantage ≤ absolute + relative · (size of the losses ahead).

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.optimal_face(arms, [[[1.0, 1.01]]], ties=nf.TieRule(absolute=0.05)).dimension
    1
    """

    absolute: float = 0.0  # in the unit of the losses
    relative: float = 1e-12  # a share of the largest loss that the action, or the best one, meets
    band: float = 100.0  # within this factor of the threshold either reading is possible: ambiguous

    def __post_init__(self) -> None:
        for name, least in (("absolute", 0.0), ("relative", 0.0), ("band", 1.0)):
            check_number(f"TieRule.{name}", getattr(self, name), least=least)

    def thresholds(
        self, mdp: MDP, loss: FloatArray, values: FloatArray, advantages: FloatArray
    ) -> FloatArray:
        """The largest advantages that count as none, shaped like `loss`, rounding of the backup included."""
        absolute, relative, rounding = self.rule(mdp)
        # What is not allowed is no size: its advantage, infinite, is above any threshold.
        magnitudes, behind = (np.where(loss == np.inf, 0.0, part) for part in (np.abs(loss), advantages))
        best = advantages == 0.0
        sizes = np.empty(loss.shape)
        errors = rounding * (magnitudes + np.abs(values[:-1])[:, :, None] + behind)
        size = error = np.zeros(values.shape[1:])  # of the values ahead
        for h in range(mdp.horizon - 1, -1, -1):
            np.maximum(magnitudes[h], mdp.transitions.expect(h, size), out=sizes[h])
            errors[h] += mdp.transitions.expect(h, error)
            size, error = (own[h].max(axis=1, where=best[h], initial=0.0) for own in (sizes, errors))
            np.maximum(sizes[h], size[:, None], out=sizes[h])
            errors[h] += error[:, None]
        return np.asarray(absolute + relative * sizes + errors)

    def rule(self, mdp: MDP) -> tuple[float, float, float]:
        """As compiled code takes it: absolute, relative, and the share that rounding of a backup may take."""
        return self.absolute, self.relative, (2 * mdp.most_successors + 4) * 2.0**-53

    def allowance(self, values: FloatArray, reachable: BoolArray) -> FloatArray:
        """[H, S]: how far two sums of losses may be apart and count as equal, if neither need be zero."""
        magnitudes = np.abs(values[:-1])
        largest = magnitudes.max(axis=1, where=reachable, initial=0.0)
        ahead = np.append(largest[:0:-1].cumsum()[::-1], 0.0)  # of the steps after each
        return np.asarray(self.absolute + self.relative * (magnitudes + ahead[:, None]))


DEFAULT_TIES = TieRule()
