"""How near the ends of ranges are.

Coefficients have units of their own, so an end is as far as the coefficient moves to it in parts of itself;
of a coefficient that stands at 0, in its unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.ranges.ranging import Ranging


class Wall(NamedTuple):
    """The nearest end of a tolerated range."""

    feature: str  # that moves to it
    now: float  # where it stands
    end: float  # beyond which the plan costs more than the tolerance
    move: float  # end − now
    share: float | None  # |move / now|, if it does not stand at 0


def nearest_wall(found: Ranging) -> Wall | None:
    """The end that is nearest; None if nothing ends.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]], feature_names=["buy", "make"])
    >>> nearest_wall(nf.ranging(nf.MDP([[0, 0]], initial=0, horizon=1), losses, tolerance=0))
    Wall(feature='make', now=5.0, end=3.0, move=-2.0, share=0.4)
    """
    away = distances(found)
    i, j = divmod(int(away.argmin()), 2)
    if np.isinf(away[i, j]):
        return None
    now, end = float(found.now[i]), float(found.within[i, j])
    return Wall(found.names[i], now, end, end - now, float(away[i, j]) if now else None)


def narrowest(found: Ranging) -> IntArray:
    """[n]: the coefficients, those with the nearest ends first."""
    return np.argsort(distances(found).min(axis=1), kind="stable")


def distances(found: Ranging) -> FloatArray:
    """[n, 2]: how far it is down and up to the ends of the tolerated ranges; ∞ where nothing ends."""
    unit = np.where(found.now == 0, 1.0, np.abs(found.now))[:, None]
    with np.errstate(invalid="ignore"):
        away = np.abs(found.within - found.now[:, None]) / unit
    return np.where(np.isfinite(away), away, np.inf)
