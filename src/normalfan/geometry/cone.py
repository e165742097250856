"""Where a loss sits in its cone of the fan: margins, errors, the detector, slices.

The losses that expose one face F form a cone; together the cones are the normal fan. How far a loss
ℓ is from leaving its cone is measured by the *margin*, the least that a vertex outside F loses,

    Δ = min { ⟨v, ℓ⟩ − J* : v a vertex of the occupancy polytope, v ∉ F(ℓ) }.

A vertex is a deterministic policy π, and what it loses is Σ d_h(s) A_h(s, π(s)), the advantages it
collects weighted by how probably it is there. To the first step where it leaves the face it got by
following the face; and the cheapest way to leave is to do so once and then be optimal again. Hence

    Δ = min { A_h(s,a) · r*_h(s) : s on the face at step h, a not optimal there },

where r* is the smallest positive probability with which a deterministic policy of the face reaches
(h,s). On a vertex there is one such policy, and without chance r* = 1. Otherwise r* is
combinatorial: `normalfan.geometry.reach` bounds it from below and often proves the bound, and short lists of
policies are gone through.

The detector (Proposition "Prediction error matters only near walls"). Let ε be the error of a model
m of the loss, sup_π |J_ℓ(π) − J_m(π)|. An optimum of m loses at most 2ε under ℓ, so if 2ε < Δ every
deterministic optimum of m is optimal for ℓ. A lower bound on Δ keeps that promise.

    >>> mdp = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)          # three arms
    >>> loss = np.array([[[1.0, 1.0, 1.5]]])
    >>> cone_margin(mdp, loss)
    ConeMargin(value=0.5, kind='exact', advantage_gap=0.5, where=(0, 0, 2))
    >>> detect(mdp, loss, model=np.array([[[1.0, 0.9, 1.4]]])).guaranteed
    True
    >>> fan_slice(mdp, 0 * loss, [[[1, 0, 0]]], [[[0, 1, 0]]], xs=[-1, 0, 1], ys=[0, 1]).labels
    array([[0, 1, 2],
           [0, 3, 4]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.face import Face, canonical, optimal_face
from normalfan.geometry.reach import (
    attained_reach,
    backward_pair,
    count_policies,
    forward_pair,
    is_unbranched,
    kept_rows,
    listed_reach,
    reach_bound,
    reach_ceiling,
)
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_finite,
    read_numbers,
    read_only,
)
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP

ROUNDING = 1e-12
"""Two computations of one reach probability agree to this relative accuracy."""

BACKUPS = 256
"""How many targets are examined one by one; beyond, the bound that costs nothing has to do."""

MarginKind: TypeAlias = Literal["exact", "lower bound", "floored"]


@dataclass(frozen=True, slots=True)
class ConeMargin:
    """The least suboptimality of a vertex outside the optimal face, or what is known of it.

    `value` is ∞ and `where` None when there is no such vertex: the face is the whole polytope (or,
    of a floored margin, can be left in rare states only).
    """

    value: float
    kind: MarginKind
    advantage_gap: float  # the smallest advantage that is not a tie, over the states of the face
    where: tuple[int, int, int] | None  # the departure (h, s, a) that attains `value`


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether a model's error is too small to matter."""

    error: float  # ε, see `value_error`
    margin: ConeMargin
    resolved: bool  # 2ε < margin.value

    @property
    def guaranteed(self) -> bool:
        """Whether every deterministic optimum of the model is optimal for the loss, proven.

        A floored margin proves less: on the first step where such an optimum leaves the face, if it
        does, it leaves it only in states that it visits with a probability below the floor.
        """
        return self.resolved and self.margin.kind != "floored"


def cone_margin(
    mdp: MDP,
    loss: Any,
    *,
    ties: TieRule = DEFAULT_TIES,
    floor: float = 0.0,
    enumerate_up_to: int = 4096,
) -> ConeMargin:
    """The margin Δ of a loss [H, S, A].

    It is exact on a vertex, without chance on the face, where the bound of `normalfan.geometry.reach` proves
    itself, and where the face has at most `enumerate_up_to` policies; else it is a lower bound.
    Actions that `ties` calls tied are optimal: it is the margin of the face that `ties` describes.

    With rare states Δ is tiny and the detector blind. A `floor` > 0 disregards departures in states
    that the departing policy visits more rarely. The value, then "floored", bounds from below what
    any vertex loses that, on the first step where it leaves the face, leaves it in some state which
    it visits with probability `floor` or more. It is at least floor · advantage_gap; on a vertex
    face it is the exact minimum over the states of that probability or more.
    """
    backup = optimal_backup(mdp, as_loss(mdp, loss))
    tied = backup.tied(mdp, ties)
    face = Face(mdp, canonical(mdp, tied))
    departures = np.where(face.reached[:, :, None] & ~tied, backup.advantages, np.inf)
    gaps = departures.min(axis=2)
    ceiling = reach_ceiling(face)
    counted = np.isfinite(gaps) & (ceiling >= _read_floor(floor))
    if not counted.any():
        return ConeMargin(np.inf, "floored" if floor else "exact", float(gaps.min()), None)
    if face.is_vertex or is_unbranched(face):
        (value, at), proven = _least(gaps, ceiling, counted), True
    else:
        value, at, proven = _bounded(face, gaps, counted, floor)
        if not (proven or floor) and count_policies(face) <= enumerate_up_to:
            (value, at), proven = _least(gaps, listed_reach(face, enumerate_up_to), counted), True
    kind: MarginKind = "floored" if floor else "exact" if proven else "lower bound"
    return ConeMargin(value, kind, float(gaps.min()), (*at, int(departures[at].argmin())))


def _least(gaps: FloatArray, reach: FloatArray, counted: BoolArray) -> tuple[float, tuple[int, int]]:
    """The least gap · reach over the counted states, and where it is."""
    weighted = np.full(gaps.shape, np.inf)
    np.multiply(gaps, reach, out=weighted, where=counted)
    h, s = np.unravel_index(int(weighted.argmin()), weighted.shape)
    return float(weighted[h, s]), (int(h), int(s))


def _bounded(
    face: Face, gaps: FloatArray, counted: BoolArray, floor: float
) -> tuple[float, tuple[int, int], bool]:
    """A lower bound on min of gap · r*, where it is, and whether some policy attains it.

    The forward bound costs one sweep for all targets. They are visited in its order, and the rest
    is skipped once it alone shows that they cannot be the minimum.
    """
    rows = kept_rows(face)
    forward = forward_pair(face, rows)
    targets, gap = np.argwhere(counted), gaps[counted]
    eager = gap * np.maximum(forward.some[counted], floor)
    lower, at, proven = np.inf, (-1, -1), False
    for visited, i in enumerate(np.argsort(eager)):
        if eager[i] >= lower:
            break
        h, s = (int(index) for index in targets[i])
        if visited == BACKUPS:
            return float(eager[i]), (h, s), False
        to_target = backward_pair(face, rows, h, s)
        bound = float(gap[i]) * max(reach_bound(forward, to_target), floor)
        if bound < lower:
            lower, at = bound, (h, s)
            attained = float(gap[i]) * attained_reach(face, rows, to_target, s)
            proven = attained <= lower * (1 + ROUNDING)
    return lower, at, proven


def value_error(mdp: MDP, loss: Any, model: Any) -> float:
    """ε = sup over policies of |J_loss(π) − J_model(π)|: the extremes of J under the difference."""
    difference = as_loss(mdp, loss) - as_loss(mdp, model, "model")
    least = optimal_backup(mdp, difference).value(mdp)
    most = -optimal_backup(mdp, -difference).value(mdp)
    return max(abs(least), abs(most))


def objective_range(mdp: MDP, loss: Any) -> float:
    """The difference between the largest and the smallest J of a policy.

    It is the most that a policy can collect of the optimal advantages: like a price, a sum of
    non-negative terms, where subtracting the extremes of J would lose digits to their size.
    """
    advantages = optimal_backup(mdp, as_loss(mdp, loss)).advantages
    return abs(optimal_backup(mdp, -advantages).value(mdp))


def detect(mdp: MDP, loss: Any, model: Any, *, ties: TieRule = DEFAULT_TIES, floor: float = 0.0) -> Detection:
    """Whether planning with `model` instead of `loss` cannot go wrong: 2ε < Δ.

    If it is `resolved`, every deterministic policy that is optimal for the model is optimal for the
    loss, up to what `ties` calls equal. If not, nothing is known: the model may still be harmless.
    With a `floor` the promise is weaker: see `Detection.guaranteed`.
    """
    error = value_error(mdp, loss, model)
    margin = cone_margin(mdp, loss, ties=ties, floor=floor)
    return Detection(error, margin, 2 * error < margin.value)


@dataclass(frozen=True, slots=True)
class FanSlice:
    """A plane through the space of losses, each grid point labelled by the face it exposes."""

    labels: IntArray  # [len(ys), len(xs)], numbered in the order of appearance
    faces: tuple[Face, ...]  # faces[label]


def fan_slice(
    mdp: MDP,
    origin: Any,
    along_x: Any,
    along_y: Any,
    xs: Any,
    ys: Any,
    *,
    ties: TieRule = DEFAULT_TIES,
) -> FanSlice:
    """Label the losses origin + x·along_x + y·along_y: same label ⇔ same face.

    `origin`, `along_x`, `along_y`: losses [H, S, A]. `xs`, `ys`: the grid's coordinates.
    """
    base = as_loss(mdp, origin, "origin")
    right, up = as_loss(mdp, along_x, "along_x"), as_loss(mdp, along_y, "along_y")
    columns, lines = _read_coordinates("xs", xs), _read_coordinates("ys", ys)
    seen: dict[Face, int] = {}
    labels = np.empty((len(lines), len(columns)), dtype=np.int64)
    for row, y in enumerate(lines):
        for column, x in enumerate(columns):
            face = optimal_face(mdp, base + x * right + y * up, ties=ties)
            labels[row, column] = seen.setdefault(face, len(seen))
    return FanSlice(read_only(labels), tuple(seen))


def _read_coordinates(name: str, coordinates: Any) -> FloatArray:
    numbers = read_numbers(name, coordinates)
    if numbers.ndim != 1:
        raise InputError(
            f"{name} has shape {list(numbers.shape)}, but must be a list of coordinates: "
            f"flatten it, or use np.linspace."
        )
    check_finite(name, numbers)
    return np.asarray(numbers, dtype=np.float64)


def _read_floor(floor: float) -> float:
    if not 0.0 <= floor <= 1.0:
        raise InputError(
            f"floor is {floor}, but must be a probability from 0 to 1: leave it out to count every state."
        )
    return floor
