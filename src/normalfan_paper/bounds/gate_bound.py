"""Proposition "Effect of the penalty": a regret bound, and a claim about speed.

*The bound.* A learner plays on F_{t−1} by a predictive or Bregman selector, with predictions m_t of
value error ε̄_t. Call a round resolved if 2ε̄_t is below the cone margin Δ_t. Then

    DReg_T ≤ r_0 + Σ Γ_t + B · #unresolved + Σ_resolved (diam(F_{t−1}) δ_t + λ R_t).

B is the range of the objective over the polytope. It depends on the round; the paper writes it without
an index, and the inequality is then true with the *maximum* over rounds, as here. The penalty itself
plays no part in this bound.

*The speed.* On one state-step, with per-layer margin β, the on-policy gap of a suboptimal action at
layer h (from 1) is g = β/(H−h+1). Its odds shrink by e^{−ηg} a round, with a penalty λ by e^{−η(g+λ)},
and the sums of the two geometric series have the ratio

    (1 − e^{−η(g+λ)}) / (1 − e^{−ηg}),        claimed to be Ω(1 + λ(H−h+1)/β) = Ω((g+λ)/g).

Since (1 − e^{−x})/x falls from 1 and is 1 − 1/e at x = 1, the ratio never exceeds (g+λ)/g, and is at
least 1 − 1/e of it whenever η(g+λ) ≤ 1. The paper's condition ηg ≲ 1 is not enough: the ratio never
exceeds 1/(1 − e^{−ηg}) either, however large λ is.

    >>> brisk = suppression(beta=0.2, penalty=0.7, horizon=20, layer=1, eta=0.6)
    >>> round(brisk.claimed, 1), round(brisk.measured, 1), brisk.holds
    (71.0, 58.0, True)
    >>> suppression(beta=0.2, penalty=1000.0, horizon=20, layer=1, eta=0.6).holds
    False
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.cone import detect
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.motion import NORMS
from normalfan.problem.arrays import BoolArray, FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan.regret import RunLog, loss_distances
from normalfan_paper.bounds.diameter import Norm, diameter
from normalfan_paper.bounds.selection_bounds import DUAL_PAIRS, forgiven

CONSTANT = 1.0 - 1.0 / math.e
"""The constant in Ω when η(g+λ) ≤ 1."""


@dataclass(frozen=True, slots=True, eq=False)
class GateBound:
    """DReg ≤ first regret + prices + B · #unresolved + selection terms of resolved rounds."""

    left: float  # the dynamic regret of the run
    first_regret: float
    price: float  # Σ Γ
    objective_range: float  # B, the maximum over rounds
    resolved: BoolArray  # [T]  2ε̄ < Δ; true in round 0, which has its own term
    selection: FloatArray  # [T]  diam · δ + λR of each round, 0 in round 0
    rounding: float  # what `holds` forgives

    @property
    def right(self) -> float:
        unresolved = int(np.count_nonzero(~self.resolved))
        blind = self.objective_range * unresolved
        return self.first_regret + self.price + blind + math.fsum(self.selection[self.resolved])

    @property
    def holds(self) -> bool:
        return self.left <= self.right + self.rounding


def objective_range(mdp: MDP, loss: npt.ArrayLike) -> float:
    """max_π J(π) − min_π J(π), the difference between the worst and the best policy under a loss [H, S, A].

    >>> objective_range(MDP([[0, 0]], initial=0, horizon=3), [[[1.0, 2.5]]] * 3)
    4.5
    """
    # Like a price it is a sum of advantages, all non-negative: subtracting the extremes would lose digits.
    advantages = optimal_backup(mdp, as_loss(mdp, loss)).advantages
    return abs(optimal_backup(mdp, -advantages).value(mdp))


def gate_bound(
    mdp: MDP,
    losses: Iterable[npt.ArrayLike],
    models: Iterable[npt.ArrayLike],
    log: RunLog,
    *,
    weight: float = 0.0,
    spreads: FloatArray | None = None,
    norm: Norm = "l1",
    ties: TieRule = DEFAULT_TIES,
) -> GateBound:
    """The bound for a run `log` of a tracker that predicted `models[t]` for `losses[t]`, [T, H, S, A].

    models[0] is not used: in round 0 there is no face to select from. `weight` and `spreads` [T] are
    the λ and the R_t of a sticky selector (see `spread`); without them it is predictive.
    """
    rounds = [as_loss(mdp, loss, f"losses[{t}]") for t, loss in enumerate(losses)]
    predictions = [as_loss(mdp, model, f"models[{t}]") for t, model in enumerate(models)]
    if not len(rounds) == len(predictions) == log.n_rounds:
        raise InputError(
            f"there are {len(rounds)} losses, {len(predictions)} models and a log of {log.n_rounds} rounds, "
            f"but each round needs one of each: pass those of the run."
        )
    if weight and spreads is None:
        raise InputError("weight is given without spreads, but λR needs both: pass the R of every round.")
    resolved = np.ones(len(rounds), dtype=bool)
    selection = np.zeros(len(rounds))
    dual = NORMS.index(dict(DUAL_PAIRS)[norm])
    for t in range(1, len(rounds)):
        resolved[t] = detect(mdp, rounds[t], predictions[t], ties=ties).guaranteed
        size = diameter(optimal_face(mdp, rounds[t - 1], ties=ties), norm).value
        selection[t] = size * loss_distances(predictions[t], rounds[t])[dual]
        if weight and spreads is not None:
            selection[t] += weight * spreads[t]
    return GateBound(
        left=log.total_regret,
        first_regret=float(log.regrets[0]),
        price=math.fsum(log.prices),
        objective_range=max(objective_range(mdp, loss) for loss in rounds),
        resolved=read_only(resolved),
        selection=read_only(selection),
        rounding=math.fsum(forgiven(mdp, loss) for loss in rounds),
    )


@dataclass(frozen=True, slots=True)
class Suppression:
    """How much faster a penalty starves a suboptimal action than plain mirror descent does."""

    gap: float  # g = β/(H−h+1)
    claimed: float  # 1 + λ(H−h+1)/β
    measured: float  # ratio of the two geometric sums
    ceiling: float  # 1/(1 − e^{−ηg}), which no penalty exceeds
    step: float  # η(g+λ), which has to be at most about 1

    @property
    def left(self) -> float:
        """What Ω promises, with its constant."""
        return CONSTANT * self.claimed

    @property
    def right(self) -> float:
        return self.measured

    @property
    def holds(self) -> bool:
        return self.left <= self.right


def suppression(*, beta: float, penalty: float, horizon: int, layer: int, eta: float) -> Suppression:
    """The claimed factor and the measured one; `layer` counts from 1."""
    if not (beta > 0 and penalty >= 0 and eta > 0 and 1 <= layer <= horizon):
        raise InputError(
            f"beta={beta}, penalty={penalty}, eta={eta}, layer={layer} of {horizon} is out of range: "
            f"beta and eta must be positive, the penalty not negative, the layer between 1 and the horizon."
        )
    gap = beta / (horizon - layer + 1)
    step = eta * (gap + penalty)
    plain = -math.expm1(-eta * gap)
    return Suppression(
        gap=gap,
        claimed=1.0 + penalty / gap,
        measured=-math.expm1(-step) / plain,
        ceiling=1.0 / plain,
        step=step,
    )
