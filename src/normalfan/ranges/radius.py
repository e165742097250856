"""How far all coefficients may move at once.

With w_k the unit in which coefficient k errs and x the exposures of plans, today's plan x₀ costs at most ε
for every error |Δ_k| ≤ τ·w_k exactly while

    max over plans x of  (x₀ − x)·θ + τ Σ_k w_k |x₀,k − x_k|  ≤  ε.

|x₀,k − x_k| is at most the sum over steps of E|x₀,k,h − Φ_k(h,s,a)|, which is linear in a plan: with it,
Newton's method in τ finds a lower bound, exact where nothing is left to chance and each feature acts at one
step. A bad direction, followed as far as the plan holds, is an upper bound. In L1 one coefficient errs alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from normalfan.errors import check_choice
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan.ranges.ranging import both_ways
from normalfan.ranges.reading import Directions, Tolerance, read_today, read_tolerance
from normalfan.ranges.today import CLOSE, Today
from normalfan.text import counted, html_table, number

Norm = Literal["linf", "l1"]

EQUAL = 1e-9  # bounds nearer than this, relatively, have met
TRIES = 20  # bad directions that are followed, one from the other


@dataclass(frozen=True, eq=False, repr=False)
class Radius:
    """How wrong all coefficients may be at once before today's plan costs too much: what `radius` returns.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]])
    >>> nf.radius(nf.MDP([[0, 0]], initial=0, horizon=1), losses, tolerance=0.4)
    Radius: 2 coefficients may be wrong by ±0.3 of themselves at once, exactly; tolerance 0.4
    """

    lower: float  # no error up to this, in the norm, costs more than the tolerance
    upper: float  # some error beyond this does
    worst: FloatArray  # [n] such an error, at the upper bound; NaN if that is infinite
    norm: Norm  # of errors: the largest, or their sum
    relative: bool  # errors are shares of the coefficients, and those at 0 stay
    tolerance: float  # in the unit of the losses
    names: tuple[str, ...]  # [n] of the coefficients

    @property
    def exact(self) -> bool:
        """Whether the bounds have met."""
        return self.lower == self.upper or self.upper - self.lower <= EQUAL * self.upper

    def __repr__(self) -> str:
        return f"Radius: {self._in_short()}"

    def _repr_html_(self) -> str:
        head = ("at least", "at most", "norm", "tolerance")
        return html_table(self._in_short(), head, [(self.lower, self.upper, self.norm, self.tolerance)])

    def _in_short(self) -> str:
        if np.isinf(self.lower):
            return f"no error of the {counted(len(self.names), 'coefficient')} costs more than the tolerance"
        amount = f"±{number(self.lower)}" + " of themselves" * self.relative
        how = "at once" if self.norm == "linf" else "in sum"
        sure = "exactly" if self.exact else f"at least (at most ±{number(self.upper)})"
        many = counted(len(self.names), "coefficient")
        return f"{many} may be wrong by {amount} {how}, {sure}; tolerance {number(self.tolerance)}"


def radius(
    mdp: MDP,
    losses: Losses,
    *,
    at: int | str | None = None,
    tolerance: Tolerance = "1%",
    norm: Norm = "linf",
    relative: bool = True,
    directions: Directions = None,
    ties: TieRule = DEFAULT_TIES,
) -> Radius:
    """Bound how wrong all coefficients may be at once before today's plan costs more than a tolerance.

    Where several plans are optimal today, the first of tied actions is the plan. With chance and a tolerance
    of 0 the lower bound is 0: rare states decide, and a small tolerance is the better question.

    Parameters
    ----------
    mdp, losses, at, tolerance, ties
        As in `ranging`.
    norm : {"linf", "l1"}, default "linf"
        Every coefficient may be wrong by so much, or all of them together.
    relative : bool, default True
        Errors are shares of the coefficients as they stand; otherwise they are in the coefficients' unit.
    directions : str, sequence of str or array_like, optional
        What may be wrong: as in `ranging`.

    Returns
    -------
    Radius

    Raises
    ------
    InputError
        If there is no such round, feature, tolerance or norm.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]])
    >>> found = nf.radius(nf.MDP([[0, 0]], initial=0, horizon=1), losses, tolerance=0, relative=False)
    >>> found.lower, found.upper, found.worst.tolist()
    (1.0, 1.0, [1.0, -1.0])
    """
    check_choice("norm", norm, get_args(Norm))
    today = read_today(mdp, losses, at, directions, ties)
    allowed = read_tolerance(today, tolerance)
    units = np.where(np.isinf(today.now), 0.0, np.abs(today.now) if relative else 1.0)
    ends = _in_sum if norm == "l1" else _at_once
    lower, upper, worst = ends(today, units, allowed)
    return Radius(lower, upper, read_only(worst), norm, relative, allowed, today.names)


def _in_sum(today: Today, units: FloatArray, tolerance: float) -> tuple[float, float, FloatArray]:
    """The nearest of the 2K ends: f is convex, and at most ε on their hull."""
    moves = both_ways(len(units)) * units
    ends = np.fmax(today.far_ends(moves, today.plan, tolerance), 0.0)
    reach = np.where(moves.any(axis=1), ends, np.inf)
    nearest = int(reach.argmin())
    worst = reach[nearest] * moves[nearest] if np.isfinite(reach[nearest]) else np.full(len(units), np.nan)
    return float(reach[nearest]), float(reach[nearest]), worst


def _at_once(today: Today, units: FloatArray, tolerance: float) -> tuple[float, float, FloatArray]:
    """Both bounds, and the error that attains the upper one."""
    lower, differences = _lower_bound(today, units, tolerance)
    upper, worst, seen = np.inf, np.full(len(units), np.nan), set[bytes]()
    for _ in range(TRIES):
        move = np.sign(differences)[None] * units
        if not move.any() or move.tobytes() in seen:
            break
        seen.add(move.tobytes())
        reach = float(np.fmax(today.far_ends(move, today.plan, tolerance)[0], 0.0))
        if not np.isfinite(reach):
            break
        if reach < upper:
            upper, worst = reach, reach * move[0]
        # The plan that takes over there knows a worse direction, if there is one.
        taken = today.backups(reach * move, move, side=-1.0).picks
        differences = _exposure_differences(today, taken)
    if upper < lower:  # by rounding
        lower = upper
    return lower, upper, worst


def _exposure_differences(today: Today, picks: FloatArray) -> FloatArray:
    """x₀ − x [K] of the plan in the first lane of picks, without differences of large numbers."""
    each = np.eye(len(today.now))
    forced = np.tile(np.repeat(picks[0, ::8], 8), (-(-len(each) // 8), 1))
    return today.backups(0.0 * each, each, base=(0.0, 0.0), plan=today.plan, forced=forced).rises


def _lower_bound(today: Today, units: FloatArray, tolerance: float) -> tuple[float, FloatArray]:
    """A τ that is safe, and x₀ − x of the plan that may be dangerous just beyond it."""
    from scipy import sparse

    visits = occupancy(today.mdp, today.policy)
    distance = _distances(today, visits, units)
    # x₀·θ − J*(θ − τ·distance) = f + τ·own: Newton from outside, as in `far_ends`.
    nearer, one = replace(today, features=sparse.csr_array(-distance.reshape(1, -1))), np.ones((1, 1))
    own, asymptote = float(np.vdot(visits, distance)), nearer.far_out(one, today.plan)
    picks, steepness = asymptote.picks, float(asymptote.gaps[0]) + own
    cap = float(nearer.caps(one, tolerance)[0])
    t = min((tolerance - float(asymptote.rises[0])) / steepness, cap) if steepness > 0 else np.inf
    while np.isfinite(t):
        swept = nearer.backups(t * one, one, plan=today.plan)
        excess, slope = float(swept.gaps[0]) + t * own - tolerance, float(swept.rises[0]) + own
        if excess <= CLOSE * (tolerance + t * own) or slope <= 0:
            t = np.inf if t == cap else t
            break
        picks = swept.picks
        if not t - excess / slope < t:
            break
        t -= excess / slope
    return max(t, 0.0), _exposure_differences(today, picks)


def _distances(today: Today, visits: FloatArray, units: FloatArray) -> FloatArray:
    """Costs [H, S, A] that, in the mean of any plan x, are at least Σ_k w_k |x₀,k − x_k|."""
    distance = np.zeros(visits.shape)
    for k in np.flatnonzero(units).tolist():
        feature = today.features[[k]].toarray().reshape(distance.shape)
        steps = feature.any(axis=(1, 2))
        mean = (visits[steps] * feature[steps]).sum(axis=(1, 2), keepdims=True)
        distance[steps] += units[k] * np.abs(mean - feature[steps])
    return distance
