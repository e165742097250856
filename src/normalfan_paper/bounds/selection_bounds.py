"""The paper's inequalities, each with both sides computed.

A bound is returned with its `left` and its `right` side, whether it `holds`, and everything it was made
of, so that a reader can see *how* it holds: barely, or by a factor of a thousand. Nothing here assumes
that a bound is true; a play or an ingredient that does not meet the proposition's conditions shows in
`holds`.

Selection. Let x be a point of a face F, chosen by a prediction m of the loss ℓ, and ε what x loses
against the best point of F. In any pair of dual norms, with δ = ‖m − ℓ‖_*,

    ε ≤ diam(F) · δ               if x minimises ⟨u, m⟩ over F,                    (predictive)
    ε ≤ diam(F) · δ + λ R         if x minimises ⟨u, m⟩ + λ D(u, z) over F,        (Bregman)

with R the spread of D(·, z) over F (see `spread`).

Detection. Let ε̄ = sup_π |J_ℓ(π) − J_m(π)|. Every deterministic optimum of m loses at most 2ε̄ under ℓ,
and nothing at all if 2ε̄ is below the cone margin Δ.

    >>> from normalfan.geometry.face import whole_polytope
    >>> from normalfan.problem.mdp import MDP
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> bound = predictive_bound(whole_polytope(arms), model=[[[0.0, 0.5]]], loss=[[[1.0, 0.0]]])
    >>> bound.left, [pair.right for pair in bound.pairs]
    (1.0, [2.0, 1.5811388300841898, 1.5])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normalfan.geometry.bellman import as_policy, occupancy, optimal_backup, restricted_backup
from normalfan.geometry.cone import Detection, detect
from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import price
from normalfan.pricing.motion import NORMS
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan_paper.bounds.diameter import Diameter, Norm, diameter
from normalfan_paper.bounds.splitting import loss_distances, split_regret
from normalfan_paper.bounds.spread import Spread

ROUNDING = 1e-11
"""What `holds` forgives, relative to the largest loss times the horizon: ten times the tie rule's."""

DUAL_PAIRS: tuple[tuple[Norm, str], ...] = (("l1", "linf"), ("l2", "l2"), ("linf", "l1"))
"""A norm for occupancies and its dual for losses."""


@dataclass(frozen=True, slots=True)
class NormPair:
    """One reading of diam(F) · δ (+ λR)."""

    norm: Norm  # of occupancies; δ is in the dual one
    diameter: Diameter
    distance: float  # δ
    right: float


@dataclass(frozen=True, slots=True)
class SelectionBound:
    """ε ≤ diam(F) · δ + λR, in three norm pairs."""

    left: float  # ε, the selection error of the play
    pairs: tuple[NormPair, NormPair, NormPair]
    weight: float  # λ; 0 for the predictive selector
    spread: Spread  # R; 0 for the predictive selector
    rounding: float  # what `holds` forgives

    @property
    def right(self) -> float:
        """The tightest of the three."""
        return min(pair.right for pair in self.pairs)

    @property
    def holds(self) -> bool:
        """Whether all three hold."""
        return self.left <= self.right + self.rounding


def predictive_bound(
    face: Face,
    model: npt.ArrayLike,
    loss: npt.ArrayLike,
    policy: npt.ArrayLike | None = None,
    *,
    ties: TieRule = DEFAULT_TIES,
) -> SelectionBound:
    """Proposition "Predictive selection", of `policy` or, without one, of the predictive selector's."""
    prediction = as_loss(face.mdp, model, "model")
    chosen = price(face, prediction, ties=ties).policy if policy is None else policy
    return _selection_bound(face, prediction, loss, chosen, 0.0, Spread(0.0, "exact"), ties)


def bregman_bound(
    face: Face,
    model: npt.ArrayLike,
    loss: npt.ArrayLike,
    policy: npt.ArrayLike,
    *,
    weight: float,
    spread: Spread,
    ties: TieRule = DEFAULT_TIES,
) -> SelectionBound:
    """Proposition "Bregman face selection", of the `policy` that a sticky selector chose.

    `weight` is the selector's λ and `spread` the R of its divergence and reference on this face. R is
    infinite for an entropy whose reference is on the boundary: the bound then says nothing.
    """
    return _selection_bound(face, as_loss(face.mdp, model, "model"), loss, policy, weight, spread, ties)


def _selection_bound(
    face: Face,
    model: FloatArray,
    loss: npt.ArrayLike,
    policy: npt.ArrayLike,
    weight: float,
    spread: Spread,
    ties: TieRule,
) -> SelectionBound:
    mdp = face.mdp
    truth = as_loss(mdp, loss)
    visits = occupancy(mdp, as_policy(mdp, policy))
    _, error = split_regret(face, optimal_backup(mdp, truth).settled(mdp, ties), visits)
    distances = dict(zip(NORMS, loss_distances(model, truth).tolist(), strict=True))
    extra = weight * spread.value if weight else 0.0
    sizes = {norm: diameter(face, norm) for norm, _ in DUAL_PAIRS}
    first, second, third = (
        NormPair(norm, sizes[norm], distances[dual], sizes[norm].value * distances[dual] + extra)
        for norm, dual in DUAL_PAIRS
    )
    return SelectionBound(error, (first, second, third), weight, spread, forgiven(mdp, truth))


@dataclass(frozen=True, slots=True)
class DetectorBound:
    """What an optimum of a model can lose: 2ε̄ at most, and nothing where the margin is resolved."""

    left: float  # the most that a deterministic optimum of the model loses under the loss
    detection: Detection  # ε̄, Δ, and whether 2ε̄ < Δ
    rounding: float  # what `holds` forgives

    @property
    def right(self) -> float:
        return 0.0 if self.detection.guaranteed else 2.0 * self.detection.error

    @property
    def holds(self) -> bool:
        return self.left <= self.right + self.rounding


def detector_bound(
    mdp: MDP, model: npt.ArrayLike, loss: npt.ArrayLike, *, ties: TieRule = DEFAULT_TIES
) -> DetectorBound:
    """Proposition "Prediction error matters only near walls", for the worst optimum of the model.

    Regret is linear, so its maximum over the model's optimal face is at a vertex, a deterministic
    optimum: one restricted backup finds it.
    """
    truth = as_loss(mdp, loss)
    advantages = optimal_backup(mdp, truth).settled(mdp, ties)
    values, _ = restricted_backup(mdp, optimal_face(mdp, model, ties=ties).mask, -advantages)
    worst = abs(float(mdp.initial @ values[0]))
    return DetectorBound(worst, detect(mdp, truth, model, ties=ties), forgiven(mdp, truth))


def forgiven(mdp: MDP, loss: FloatArray) -> float:
    """The rounding that a comparison of sums of this loss over a horizon must forgive."""
    return ROUNDING * mdp.horizon * float(np.abs(loss).max())
