"""How rarely can a policy of a face reach a state, if it reaches it at all?

    r* = min { r(π) : π a deterministic policy of F, r(π) > 0 },      r(π) = Pr(π is at the target (h*, s*))

Lower bounds come from pairs of numbers: `sure`, a bound for every policy, and `some`, one for every policy
whose probability is positive. docs/details/margins.md has their equations and proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.geometry.face import Face
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray

ROUNDING = 1e-12  # two computations of one reach probability agree to this relative accuracy
BACKUPS = 256  # targets that are examined one by one; for the rest the bound that costs nothing must do


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """The kept pairs (s, a) of one step, in the order of s, and where they lead."""

    states: IntArray  # [n] the s of each pair
    first: IntArray  # [m] where the pairs of each reached state begin
    kernel: Any  # csr_array [n, S], no explicit zeros, no empty row

    @property
    def reached(self) -> IntArray:
        return self.states[self.first]

    def bounds_ahead(self, sure: FloatArray, some: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each pair, [n], E sure and the bracket of the equation of `some`."""
        avoiding: FloatArray = self.kernel @ sure
        extras = self.kernel.data * (some - sure)[self.kernel.indices]
        return avoiding, avoiding + np.minimum.reduceat(extras, self.kernel.indptr[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Lower bounds on a probability: for every policy, and for every policy where it is positive."""

    sure: FloatArray  # [H, S]; [h*+1, S] of a target at step h*
    some: FloatArray  # the same shape, ∞ where there is no way


def kept_rows(face: Face) -> tuple[KeptRows, ...]:
    """The rows of the kernel that policies of the face use, step by step."""
    kernels, steps = face.mdp.transitions.all_csr(), []
    for h, mask in enumerate(face.mask):
        pairs = np.flatnonzero(mask)
        states = pairs // face.mdp.n_actions
        first = np.flatnonzero(np.diff(states, prepend=-1))
        steps.append(KeptRows(states, first, kernels[h % len(kernels)][pairs]))
    return tuple(steps)


def forward_pair(face: Face, rows: Sequence[KeptRows]) -> Pair:
    """Bounds on the probability of being in each state, [H, S]."""
    n_states = face.mdp.n_states
    sure = np.zeros(face.mask.shape[:2])
    some = np.full(face.mask.shape[:2], np.inf)
    sure[0] = face.mdp.initial
    some[0] = np.where(sure[0] > 0, sure[0], np.inf)
    for h, kept in enumerate(rows[:-1]):
        source, kernel = np.repeat(kept.states, np.diff(kept.kernel.indptr)), kept.kernel  # of each entry
        moves = source * n_states + kernel.indices
        cells, cell, entries = np.unique(moves, return_inverse=True, return_counts=True)
        start, end = np.divmod(cells, n_states)
        least = np.full(len(cells), np.inf)  # κ(s, s')
        np.minimum.at(least, cell, kernel.data)
        choices = np.bincount(kept.states, minlength=n_states)
        least[entries < choices[start]] = 0.0  # some action of s does not lead to s'
        passed = sure[h, start] * least
        sure[h + 1] = np.bincount(end, weights=passed, minlength=n_states)
        extras = some[h, source] * kernel.data - passed[cell]
        np.minimum.at(some[h + 1], kernel.indices, extras)
        some[h + 1] += sure[h + 1]
    return Pair(sure, some)


def backward_pair(face: Face, rows: Sequence[KeptRows], step: int, state: int) -> Pair:
    """Bounds on the probability of going from each state to a target, [step+1, S]."""
    sure = np.zeros((step + 1, face.mdp.n_states))
    some = np.full((step + 1, face.mdp.n_states), np.inf)
    sure[step, state] = some[step, state] = 1.0
    for h in range(step - 1, -1, -1):
        avoiding, entering = rows[h].bounds_ahead(sure[h + 1], some[h + 1])
        sure[h, rows[h].reached] = np.minimum.reduceat(avoiding, rows[h].first)
        some[h, rows[h].reached] = np.minimum.reduceat(entering, rows[h].first)
    return Pair(sure, some)


def reach_bound(forward: Pair, to_target: Pair) -> float:
    """The best lower bound on r* over all steps at which forward and backward can be joined."""
    steps = len(to_target.sure)
    there, onward = forward.some[:steps], to_target.some
    sure = forward.sure[:steps] * to_target.sure
    extras = np.full(sure.shape, np.inf)
    on_path = np.isfinite(there) & np.isfinite(onward)
    extras[on_path] = there[on_path] * onward[on_path] - sure[on_path]
    return float((sure.sum(axis=1) + extras.min(axis=1)).max())


def attained_reach(face: Face, rows: Sequence[KeptRows], to_target: Pair, state: int) -> float:
    """r(π) > 0 of the policy that the backward pair suggests: it avoids all paths to the target but one."""
    sure, some = to_target.sure, to_target.some
    mass = face.mdp.initial
    start = np.flatnonzero(mass)
    on_path = int(start[(mass[start] * (some[0] - sure[0])[start]).argmin()])
    for h in range(len(sure) - 1):
        kept = rows[h]
        avoiding, entering = kept.bounds_ahead(sure[h + 1], some[h + 1])
        taken = np.lexsort((avoiding, kept.states))[kept.first]
        own = np.flatnonzero(kept.states == on_path)
        pair = int(own[entering[own].argmin()])
        taken[kept.reached == on_path] = pair
        mass = kept.kernel[taken].T @ mass[kept.reached]
        # On to the successor from which reaching the target adds least.
        entries = slice(kept.kernel.indptr[pair], kept.kernel.indptr[pair + 1])
        successors = kept.kernel.indices[entries]
        extras = kept.kernel.data[entries] * (some[h + 1] - sure[h + 1])[successors]
        on_path = int(successors[extras.argmin()])
    return float(mass[state])


def least_gap_bound(
    face: Face, gaps: FloatArray, counted: BoolArray, floor: float
) -> tuple[float, tuple[int, int], bool]:
    """A lower bound on min of gap · r*, where it is, and whether some policy attains it."""
    # The forward bound, one pass for all targets, gives the order of visits and says when to stop.
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


def listed_reach(face: Face, limit: int) -> FloatArray:
    """[H, S]: r* itself from the list of all policies, ∞ where the face never is."""
    least = np.full(face.mask.shape[:2], np.inf)
    for visits in face.vertices(limit):
        reach = visits.sum(axis=2)
        np.minimum(least, reach, out=least, where=reach > 0)
    return least


def reach_ceiling(face: Face) -> FloatArray:
    """[H, S]: no policy of the face is there more probably than this; exact on a vertex."""
    ceiling = np.empty(face.mask.shape[:2])
    arriving = face.mdp.initial
    for h, mask in enumerate(face.mask):
        ceiling[h] = np.minimum(arriving, 1.0)
        arriving = face.mdp.transitions.push(h, ceiling[h][:, None] * mask)
    return ceiling


def is_unbranched(face: Face) -> bool:
    """Whether chance plays no part on the face: one start, one successor of every kept pair."""
    return face.mdp.has_certain_start and all(kept.kernel.nnz == len(kept.states) for kept in kept_rows(face))
