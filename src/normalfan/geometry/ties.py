"""The only meaning of "equal".

A face is the set of optimal points, so it depends on which actions are *equally* good, and the price is
discontinuous there: as a function of the previous loss it jumps at a wall of the fan. In floating point
"equal" is therefore a modelling decision. It is made here and nowhere else:

    a is optimal at (h, s)   ⇔   Q_h(s,a) − V_h(s)  ≤  absolute + relative · (|V_h(s)| + G_{h+1})

with G_{h+1} = Σ_{h'>h} max_s |V_{h'}(s)| over reachable states. That scale bounds the rounding error of
the backup up to a factor of a few machine epsilons times the number of successors, so the default
`relative` is four orders of magnitude above the rounding error, whatever the units of the loss; and because
it is made of values, not losses, a huge penalty on an action nobody takes does not blur the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class TieRule:
    """When two actions count as equally good: advantage ≤ absolute + relative · (size of the values ahead).

    Parameters
    ----------
    absolute : float, default 0
        An advantage up to this, in the unit of the losses, is a tie.
    relative : float, default 1e-12
        And so is one up to this share of |V_h(s)| + Σ_{h'>h} max_s |V_{h'}(s)|, with V the optimal values.
    band : float, default 100
        An advantage within this factor of the threshold could be read either way: the round is ambiguous.

    Raises
    ------
    InputError
        If a number is not finite, is negative, or `band` is below 1.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.optimal_face(arms, [[[1.0, 1.01]]], ties=nf.TieRule(absolute=0.05)).dimension
    1
    """

    absolute: float = 0.0
    relative: float = 1e-12
    band: float = 100.0

    def __post_init__(self) -> None:
        for name, least in (("absolute", 0.0), ("relative", 0.0), ("band", 1.0)):
            number = getattr(self, name)
            if not (math.isfinite(number) and number >= least):
                raise InputError(
                    f"TieRule.{name} is {number}, but must be finite and at least {least:g}: "
                    f"leave it out for the default."
                )

    def thresholds(self, values: FloatArray, reachable: BoolArray) -> FloatArray:
        """Compute the largest advantage that counts as none.

        Parameters
        ----------
        values : ndarray [H+1, S]
            The optimal values.
        reachable : ndarray of bool [H, S]
            The states whose values set the scale.

        Returns
        -------
        ndarray [H, S]
            One threshold for each step and state.
        """
        magnitudes = np.abs(values[:-1])
        ahead = np.zeros(len(magnitudes) + 1)
        for h in range(len(magnitudes) - 1, -1, -1):
            ahead[h] = ahead[h + 1] + magnitudes[h].max(where=reachable[h], initial=0.0)
        return self.absolute + self.relative * (magnitudes + ahead[1:, None])

    def strict(self) -> TieRule:
        """Return the rule at the lower end of the band: it calls fewest actions equal."""
        return TieRule(self.absolute / self.band, self.relative / self.band, 1.0)

    def loose(self) -> TieRule:
        """Return the rule at the upper end of the band: it calls most actions equal."""
        return TieRule(self.absolute * self.band, self.relative * self.band, 1.0)


DEFAULT_TIES = TieRule()
