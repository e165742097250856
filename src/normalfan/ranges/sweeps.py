"""Many backups of one loss, moved along its features: each is a lane of the compiled kernel.

    ℓ = u·base + Σ_k α_k Φ_k,      f = ⟨q, A_ℓ⟩ = ⟨q, ℓ⟩ − J*(ℓ)      of a plan q: convex, piecewise linear

`far_ends` finds where f reaches a tolerance: Newton's method from outside, on the line that f follows at
infinity first. Each step is exact on a linear piece, and none goes too far.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from normalfan.geometry.bellman import as_deterministic_policy, occupancy
from normalfan.geometry.ties import TieRule
from normalfan.pricing.kernels import UNIT, Tables, reachable_states
from normalfan.problem.arrays import BoolArray, FloatArray, SparseMatrix
from normalfan.problem.mdp import MDP

FARTHEST = 1e6  # losses are moved by this multiple of themselves at most: beyond, they drown in the move
CLOSE = 1e-13  # a relative excess over the tolerance that is rounding


class Plan(NamedTuple):
    """Where a plan goes, the same in all lanes, or one a lane."""

    visits: FloatArray  # [1 or blocks, H·S·A·8]
    visited: BoolArray  # [1 or blocks, H·S]


class Swept(NamedTuple):
    """What backups say of each lane."""

    values: FloatArray  # [n] J*
    slopes: FloatArray  # [n] of J*, along the lane's second loss
    gaps: FloatArray  # [n] f
    rises: FloatArray  # [n] the slope of f
    picks: FloatArray  # [blocks, H·S·8] the optimal actions


class Sweeps:
    """Backups of a loss [H, S, A] that moves along features [K, H·S·A]."""

    def __init__(self, mdp: MDP, loss: FloatArray, features: SparseMatrix, ties: TieRule) -> None:
        self.mdp, self.loss, self.features = mdp, loss, features
        rounding = (2 * mdp.most_successors + 4) * mdp.horizon * UNIT
        self.rule = (ties.absolute, ties.relative + rounding)
        self.allowed = (loss < np.inf).reshape(-1)
        self.size = float(np.abs(loss).max(where=loss < np.inf, initial=0.0))

    @cached_property
    def model(self) -> Any:
        from normalfan._kernels.buffers import frozen
        from normalfan._kernels.ranging import Model

        tables, states, by_row = Tables(self.mdp), reachable_states(self.mdp), self.features.T.tocsr()
        kinds = np.int64, np.int32, np.float64
        make: Any = Model
        return make(
            (*self.mdp.shape, self.features.shape[0]),
            tables.per_step,
            *states,
            frozen(self.mdp.initial, np.float64),
            *map(frozen, tables.rows, kinds),
            frozen(np.where(self.loss < np.inf, self.loss, 0.0), np.float64),
            *map(frozen, (by_row.indptr, by_row.indices, by_row.data), kinds),
        )

    def __call__(
        self,
        values: FloatArray,
        slopes: FloatArray,
        *,
        base: tuple[float, float] = (1.0, 0.0),
        side: float = 1.0,
        plan: Plan | None = None,
        mask: BoolArray | None = None,
        forced: FloatArray | None = None,
        active: BoolArray | None = None,
    ) -> Swept:
        """Back up u·base + values·Φ, slopes along p·base + slopes·Φ; values and slopes [n, K], base (u, p).

        Ties are broken by the largest slope of J*, with side −1 by the least. `mask` [H, S, A] leaves these
        actions only; `forced` are picks to follow; blocks without an `active` lane are left out.
        """
        from normalfan._kernels.ranging import Lane, backups

        (n, _), (H, S, _) = values.shape, self.mdp.shape
        n_blocks = -(-n // 8)
        running = np.ones(n_blocks, dtype=bool)
        if active is not None:
            running = np.logical_or.reduceat(active, np.arange(0, n, 8))
        u, p = (np.full(8 * n_blocks, factor) for factor in base)
        out, picks = np.zeros((4, 8 * n_blocks)), np.empty((n_blocks, H * S * 8))
        backups(
            self.model,
            self.allowed if mask is None else mask.reshape(-1) & self.allowed,
            Lane(u, _packed(values, n_blocks), p, _packed(slopes, n_blocks)),
            running,
            self.rule,
            side,
            *(plan or NOBODY),
            NOTHING if forced is None else forced,
            picks,
            out,
        )
        return Swept(out[0, :n], out[1, :n], out[2, :n], out[3, :n], picks)

    def follow(self, picks: FloatArray) -> Plan:
        """Where the policies of picks go."""
        from normalfan._kernels.ranging import occupancies

        visits = np.zeros((len(picks), picks.shape[1] * self.mdp.n_actions))
        occupancies(self.model, picks, visits)
        return self._plan(visits)

    def plan_of(self, policy: FloatArray) -> Plan:
        """Where a policy [H, S, A] goes."""
        return self._plan(np.repeat(occupancy(self.mdp, policy).reshape(1, -1), 8, axis=1))

    def _plan(self, visits: FloatArray) -> Plan:
        shape = len(visits), self.mdp.horizon * self.mdp.n_states, 8 * self.mdp.n_actions
        return Plan(visits, np.asarray(visits.reshape(shape).any(axis=2)))

    def policy(self, picks: FloatArray, lane: int) -> FloatArray:
        """The policy [H, S, A] of one lane; where no policy can be it plays all that is allowed alike."""
        H, S, _ = self.mdp.shape
        actions = picks[lane // 8].reshape(H, S, 8)[:, :, lane % 8]
        known = np.where(self.mdp.reachable, actions, -1.0).astype(np.int64)
        return as_deterministic_policy(self.mdp, known, self.loss < np.inf)

    def copies(self, picks: FloatArray, lane: int, n: int) -> FloatArray:
        """Picks of n lanes that all follow one."""
        own = picks[lane // 8].reshape(-1, 8)[:, lane % 8]
        return np.ascontiguousarray(np.broadcast_to(np.repeat(own, 8), (-(-n // 8), 8 * len(own))))

    def far_out(self, moves: FloatArray, plan: Plan | None = None, mask: BoolArray | None = None) -> Swept:
        """Backups of moves [n, K] alone, ties broken by the loss: f becomes rises + t·gaps for large t."""
        return self(moves, np.zeros_like(moves), base=(0.0, 1.0), side=-1.0, plan=plan, mask=mask)

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
        level = np.where(asymptote.rises <= tolerance + self.rule[1] * self.size, np.inf, np.nan)
        t = np.where(asymptote.gaps > 0, np.minimum(first, caps), level)
        active = np.isfinite(t)
        while active.any():
            at = np.where(active, t, 0.0)
            swept = self(at[:, None] * moves, moves, plan=plan, active=active)
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
        size = max(self.size, tolerance)
        most: FloatArray = np.abs(moves) @ abs(self.features).max(axis=1).toarray().reshape(-1)
        caps = np.full(len(most), np.inf)
        np.divide(FARTHEST * size, most, out=caps, where=(most > 0) & (size > 0))
        return caps


NOTHING = np.zeros((0, 0))
NOBODY = Plan(NOTHING, np.zeros((0, 0), dtype=bool))


def _packed(rows: FloatArray, n_blocks: int) -> FloatArray:
    """[n, K] as the kernel reads it: a block after the other, lanes side by side."""
    lanes = np.zeros((8 * n_blocks, rows.shape[1]))
    lanes[: len(rows)] = rows
    return lanes.reshape(n_blocks, 8, -1).transpose(0, 2, 1).reshape(-1)
