"""Where a loss sits in its cone of the fan: margins, errors, the detector.

    Δ = min { ⟨v, ℓ⟩ − J* : v a vertex of the occupancy polytope, v ∉ F(ℓ) }
      = min { A_h(s,a) · r*_h(s) : s on the face at step h, a not optimal there },

with r* the least positive probability with which a deterministic policy of the face reaches (h,s). If 2ε < Δ,
ε a model's error in the loss, each deterministic optimum of the model is optimal: docs/details/margins.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_number
from normalfan.geometry.bellman import finite_backup
from normalfan.geometry.change import value_error, value_error_bound
from normalfan.geometry.face import Face
from normalfan.geometry.reach import is_unbranched, least_gap_bound, listed_reach, reach_ceiling
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan.text import html_table, number

MarginKind: TypeAlias = Literal["exact", "lower bound", "floored"]


@dataclass(frozen=True, slots=True)
class ConeMargin:
    """The least that a vertex outside the optimal face loses, or what is known of it; see `cone_margin`."""

    value: float  # Δ; ∞ if no vertex is outside the face (or, floored, only in rare states)
    kind: MarginKind  # what `value` is
    advantage_gap: float  # the smallest advantage that is not a tie, over the states of the face
    where: tuple[int, int, int] | None  # the (h, s, a) that leaves the face at this cost, if any does

    def _repr_html_(self) -> str:
        where = "nowhere" if self.where is None else ", ".join(map(str, self.where))
        row = (number(self.value), self.kind, number(self.advantage_gap), where)
        return html_table("Cone margin", ("margin", "kind", "advantage gap", "step, state, action"), [row])


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether a model's error is too small to matter; see `detect`."""

    error: float  # ε, as `value_error` measures it; with other dynamics a bound on it
    margin: ConeMargin  # Δ
    resolved: bool  # whether 2ε < Δ
    error_kind: Literal["exact", "upper bound"] = "exact"  # what `error` is

    @property
    def guaranteed(self) -> bool:
        """Whether every deterministic optimum of the model is proven optimal: never by a floored margin."""
        return self.resolved and self.margin.kind != "floored"

    def _repr_html_(self) -> str:
        margin = f"{number(self.margin.value)} ({self.margin.kind})"
        row = (f"{number(self.error)} ({self.error_kind})", margin, self.resolved, self.guaranteed)
        return html_table("Detection", ("error", "margin", "resolved", "guaranteed"), [row])


def cone_margin(
    mdp: MDP,
    loss: npt.ArrayLike,
    *,
    ties: TieRule = DEFAULT_TIES,
    floor: float = 0.0,
    enumerate_up_to: int = 4096,
) -> ConeMargin:
    """Compute how far a loss is from a wall: Δ, the least that a vertex outside its optimal face loses.

    It is exact on a vertex, without chance on the face, where the bound of `normalfan.geometry.reach` proves
    itself, and where the face has few policies; else it is a lower bound.

    Parameters
    ----------
    mdp : MDP
    loss : array_like [H, S, A]
    ties : TieRule, optional
        When two actions count as equally good; it decides what is on the face.
    floor : float, default 0
        Disregard departures in states that the departing policy visits more rarely than this, which make Δ
        tiny. The value, then "floored", bounds from below what any other departing vertex loses.
    enumerate_up_to : int, default 4096
        The largest number of policies on the face that are enumerated if the bound is not exact.

    Returns
    -------
    ConeMargin

    Raises
    ------
    InputError
        If `loss` has another shape or an entry that is no number, or `floor` is not a probability.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.cone_margin(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[1.0, 1.0, 1.5]]])
    ConeMargin(value=0.5, kind='exact', advantage_gap=0.5, where=(0, 0, 2))
    """
    backup = finite_backup(mdp, as_loss(mdp, loss))
    if check_number("floor", floor, "give a probability, or leave it out to count every state") > 1.0:
        raise InputError(
            f"floor is {floor}, but must be a probability from 0 to 1: leave it out to count every state."
        )
    tied = backup.tied(mdp, ties)
    face = Face(mdp, tied)
    departures = np.where(face.reached[:, :, None] & ~tied, backup.advantages, np.inf)
    gaps = departures.min(axis=2)
    ceiling = reach_ceiling(face)
    counted = np.isfinite(gaps) & (ceiling >= floor)
    if not counted.any():
        return ConeMargin(np.inf, "floored" if floor else "exact", float(gaps.min()), None)
    # Below this some probability of reaching a state may have underflowed: then only 0 is sure.
    sure_above = np.finfo(np.float64).tiny * max(1.0, float(gaps[counted].max()))
    if face.is_vertex or is_unbranched(face):
        (value, at), proven = _least(gaps, ceiling, counted), True
    else:
        value, at, proven = least_gap_bound(face, gaps, counted, floor)
        if not (proven or floor) and value >= sure_above and face.n_policies <= enumerate_up_to:
            (value, at), proven = _least(gaps, listed_reach(face, enumerate_up_to), counted), True
    if value < sure_above:
        value, proven = 0.0, False
    kind: MarginKind = "floored" if floor else "exact" if proven else "lower bound"
    return ConeMargin(value, kind, float(gaps.min()), (*at, int(departures[at].argmin())))


def _least(gaps: FloatArray, reach: FloatArray, counted: BoolArray) -> tuple[float, tuple[int, int]]:
    """The least gap · reach over the counted states, and where it is."""
    weighted = np.full(gaps.shape, np.inf)
    np.multiply(gaps, reach, out=weighted, where=counted)
    h, s = np.unravel_index(int(weighted.argmin()), weighted.shape)
    return float(weighted[h, s]), (int(h), int(s))


def detect(
    mdp: MDP,
    loss: npt.ArrayLike,
    model: npt.ArrayLike,
    *,
    ties: TieRule = DEFAULT_TIES,
    floor: float = 0.0,
    model_mdp: MDP | None = None,
) -> Detection:
    """Decide whether planning with `model` instead of `loss` cannot go wrong: 2ε < Δ.

    Parameters
    ----------
    mdp : MDP
    loss, model : array_like [H, S, A]
        The loss, and the model of it that a plan is made for.
    ties : TieRule, optional
        When two actions count as equally good.
    floor : float, default 0
        As in `cone_margin`; it weakens the promise, see `Detection.guaranteed`.
    model_mdp : MDP, optional
        The dynamics that the plan was made for, if they were others: the error is then bounded from above
        (`value_error_bound`), which keeps the promise.

    Returns
    -------
    Detection
        If it is not `resolved`, nothing is known: the model may still be harmless.

    Raises
    ------
    InputError
        If `loss` or `model` has another shape or an entry that is no number, or `floor` is no probability.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> nf.detect(arms, [[[1.0, 1.0, 1.5]]], model=[[[1.0, 0.9, 1.4]]]).guaranteed
    True
    """
    margin = cone_margin(mdp, loss, ties=ties, floor=floor)
    if model_mdp is None:
        error = value_error(mdp, loss, model)
        return Detection(error, margin, 2 * error < margin.value)
    error = value_error_bound(mdp, loss, model_mdp, model)
    return Detection(error, margin, 2 * error < margin.value, "upper bound")
