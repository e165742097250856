"""One round, its best plans, and many backups of its loss as that moves along features.

    ℓ = u·base + Σ_k α_k Φ_k,      f = ⟨q, A_ℓ⟩ = ⟨q, ℓ⟩ − J*(ℓ)      of a plan q: convex, piecewise linear

Each backup is a lane of the compiled kernel. `far_ends` finds where f reaches a tolerance: Newton's method
from outside, on the line that f follows at infinity first. Each step is exact on a linear piece, and none
goes too far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from normalfan.geometry.bellman import Backup, as_deterministic_policy, finite_backup, occupancy
from normalfan.geometry.face import Face
from normalfan.geometry.ties import TieRule
from normalfan.pricing.kernels import UNIT, Tables, reachable_problem, reachable_states
from normalfan.problem.arrays import BoolArray, FloatArray, SparseMatrix, read_only
from normalfan.problem.mdp import MDP

FARTHEST = 1e6  # losses are moved by this multiple of themselves at most: beyond, they drown in the move
CLOSE = 1e-13  # a relative excess over the tolerance that is rounding


Plan: TypeAlias = FloatArray  # [1 or blocks, H·S·A·8] where it goes, the same in all lanes, or one a lane
NOTHING = np.zeros((0, 0))  # no plan, or no picks


class Swept(NamedTuple):
    """What backups say of each lane."""

    values: FloatArray  # [n] J*
    slopes: FloatArray  # [n] of J*, along the lane's second loss
    gaps: FloatArray  # [n] f
    rises: FloatArray  # [n] the slope of f
    picks: FloatArray  # [blocks, H·S·8] the optimal actions


@dataclass(frozen=True, eq=False, kw_only=True)
class Today:
    """One round, and K ways in which it may move."""

    mdp: MDP  # the problem
    loss: FloatArray  # [H, S, A], to be minimised, whatever the user calls it
    round_name: str  # of the round, or its number; empty for a single loss
    features: SparseMatrix  # [K, H·S·A], as losses
    now: FloatArray  # [K] where their coefficients stand
    names: tuple[str, ...]  # [K] what they are called
    sign: float  # −1 if the user counts rewards
    ties: TieRule  # which plans are optimal

    @cached_property
    def _backup(self) -> Backup:
        return finite_backup(self.mdp, self.loss, "the round's loss")

    @cached_property
    def value(self) -> float:
        """J*, the least expected loss."""
        return self._backup.value(self.mdp)

    @cached_property
    def tied(self) -> BoolArray:
        """[H, S, A]: the actions that count as optimal, at every state."""
        return self._backup.tied(self.mdp, self.ties)

    @cached_property
    def dimension(self) -> int:
        """Of the face of optimal plans: 0 if there is one."""
        return Face(self.mdp, self.tied).dimension

    @cached_property
    def policy(self) -> FloatArray:
        """[H, S, A]: today's plan, the first of tied actions."""
        actions = np.where(self.tied.any(axis=2), self.tied.argmax(axis=2), -1)
        return as_deterministic_policy(self.mdp, actions, self.loss < np.inf)

    @cached_property
    def plan(self) -> Plan:
        """Where today's plan goes."""
        return self.plan_of(self.policy)

    def exposures(self, policy: FloatArray) -> FloatArray:
        """[K]: how much of each coefficient a policy [H, S, A] takes."""
        return np.asarray(self.features @ occupancy(self.mdp, policy).reshape(-1))

    def plan_of(self, policy: FloatArray) -> Plan:
        """Where a policy [H, S, A] goes."""
        return np.repeat(occupancy(self.mdp, policy).reshape(1, -1), 8, axis=1)

    def follow(self, picks: FloatArray) -> Plan:
        """Where the policies of picks go."""
        from normalfan._kernels.playing import visits_of

        problem, (H, S, A) = reachable_problem(self.mdp), self.mdp.shape
        visits = np.empty((len(picks), H, S, A, 8))
        for b, lane in np.ndindex(len(picks), 8):
            policy = picks[b, lane::8].reshape(H, S, 1) == np.arange(A)
            visits[b, ..., lane] = visits_of(problem, policy)[:, :, None] * policy
        return visits.reshape(len(picks), -1)

    def best_plans(self, moves: FloatArray) -> tuple[Plan, FloatArray]:
        """For each move [n, K] the optimal plan of today that it hurts least, and how much, [n].

        Optimal plans cost the same today, so it is the best of them however far the move goes.
        """
        swept = self.far_out(moves, mask=self.tied)
        return self.plan if self.dimension == 0 else self.follow(swept.picks), swept.values

    def policy_at(self, moves: FloatArray, beyond: FloatArray) -> FloatArray:
        """[H, S, A]: the best plan where coefficients have moved by [K]; of ties, the best of going on.

        Where no policy can be it plays all that is allowed alike.
        """
        picks = self.backups(moves[None], beyond[None], side=-1.0).picks
        actions = picks[0, ::8].reshape(self.mdp.shape[:2])
        known = np.where(self.mdp.reachable, actions, -1.0).astype(np.int64)
        return read_only(as_deterministic_policy(self.mdp, known, self.loss < np.inf))

    def part(self, chosen: slice) -> Today:
        """The same round with some of the ways to move."""
        if chosen.indices(len(self.now)) == (0, len(self.now), 1):
            return self
        return replace(self, features=self.features[chosen], now=self.now[chosen], names=self.names[chosen])

    @cached_property
    def rounding(self) -> float:
        """A share of the losses ahead that counts as none: by the rule, and because sums are rounded."""
        return self.ties.relative + (2 * self.mdp.most_successors + 4) * self.mdp.horizon * UNIT

    @cached_property
    def largest(self) -> FloatArray:
        """[K]: the largest entries of the features."""
        return np.asarray(abs(self.features).max(axis=1).toarray().reshape(-1))

    @cached_property
    def _model(self) -> Any:
        from normalfan._kernels.buffers import frozen
        from normalfan._kernels.ranging import Model

        tables, by_row = Tables(self.mdp), self.features.T.tocsr()
        kinds = np.int64, np.int32, np.float64
        make: Any = Model
        return make(
            (*self.mdp.shape, self.features.shape[0]),
            tables.per_step,
            *reachable_states(self.mdp),
            frozen(self.mdp.initial, np.float64),
            *map(frozen, tables.rows, kinds),
            frozen(np.where(self.loss < np.inf, self.loss, 0.0), np.float64),
            *map(frozen, (by_row.indptr, by_row.indices, by_row.data), kinds),
        )

    def backups(
        self,
        values: FloatArray,
        slopes: FloatArray,
        *,
        base: tuple[float, float] = (1.0, 0.0),
        side: float = 1.0,
        plan: Plan = NOTHING,
        mask: BoolArray | None = None,
        forced: FloatArray = NOTHING,
        active: BoolArray | None = None,
    ) -> Swept:
        """Back up u·base + values·Φ, slopes along p·base + slopes·Φ; values and slopes [n, K], base (u, p).

        Ties are broken by the largest slope of J*, with side −1 by the least. `mask` [H, S, A] leaves these
        actions only; `forced` are picks to follow; blocks without an `active` lane are left out.
        """
        from normalfan._kernels.ranging import backups

        n, (H, S, _) = len(values), self.mdp.shape
        n_blocks = -(-n // 8)
        running = np.ones(n_blocks, dtype=bool)
        if active is not None:
            running = np.logical_or.reduceat(active, np.arange(0, n, 8))
        allowed = self.loss < np.inf if mask is None else mask & (self.loss < np.inf)
        rule = self.ties.absolute, self.rounding
        picks, out = np.empty((n_blocks, H * S * 8)), np.zeros((4, 8 * n_blocks))
        lanes = _packed(values, n_blocks), _packed(slopes, n_blocks)
        backups(self._model, allowed.reshape(-1), base, *lanes, running, rule, side, plan, forced, picks, out)
        value, slope, gap, rise = out[:, :n]
        return Swept(value, slope, gap, rise, picks)

    def far_out(self, moves: FloatArray, plan: Plan = NOTHING, mask: BoolArray | None = None) -> Swept:
        """Backups of moves [n, K] alone, ties broken by the loss: f becomes rises + t·gaps for large t."""
        return self.backups(moves, np.zeros_like(moves), base=(0.0, 1.0), side=-1.0, plan=plan, mask=mask)

    def far_ends(
        self, moves: FloatArray, plan: Plan, tolerance: float, asymptote: Swept | None = None
    ) -> FloatArray:
        """[n]: sup {t : f(base + t·moves·Φ) ≤ tolerance}: ∞ if there is none, NaN if there is no such t.

        `asymptote` is what `far_out` says, if it is known.
        """
        asymptote = asymptote or self.far_out(moves, plan)
        caps = self.caps(moves, tolerance)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = (tolerance - asymptote.rises) / asymptote.gaps
        level = np.where(asymptote.rises <= tolerance + self.rounding * self._size, np.inf, np.nan)
        t = np.where(asymptote.gaps > 0, np.minimum(first, caps), level)
        active = np.isfinite(t)
        while active.any():
            at = np.where(active, t, 0.0)
            swept = self.backups(at[:, None] * moves, moves, plan=plan, active=active)
            fits = swept.gaps <= tolerance * (1 + CLOSE)
            t[active & fits & (t >= caps)] = np.inf
            t[active & ~fits & ~(swept.rises > 0)] = np.nan
            active &= ~fits & (swept.rises > 0)
            nearer = at - np.divide(swept.gaps - tolerance, swept.rises, out=np.zeros_like(at), where=active)
            active &= nearer < t
            t[active] = nearer[active]
        return t

    def caps(self, moves: FloatArray, tolerance: float) -> FloatArray:
        """How far each move can go without drowning the loss, if there is one."""
        size = max(self._size, tolerance)
        most: FloatArray = np.abs(moves) @ self.largest
        caps = np.full(len(most), np.inf)
        np.divide(FARTHEST * size, most, out=caps, where=(most > 0) & (size > 0))
        return caps

    @cached_property
    def _size(self) -> float:
        return float(np.abs(self.loss).max(where=self.loss < np.inf, initial=0.0))


def _packed(rows: FloatArray, n_blocks: int) -> FloatArray:
    """[n, K] as the kernel reads it: a block after the other, lanes side by side."""
    lanes = np.zeros((8 * n_blocks, rows.shape[1]))
    lanes[: len(rows)] = rows
    return lanes.reshape(n_blocks, 8, -1).transpose(0, 2, 1).reshape(-1)
