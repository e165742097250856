"""How far each loss is from the one before it, where the sweeps cannot say: L1, L2 and L∞.

Sweeps add up the moves of plain losses as they read them. What is not allowed, inf, in either of two rounds
has not moved between them, and squares may leave the range of floats: such streams are read here once more.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros, frozen
from normalfan._kernels.compiling import kernel
from normalfan._kernels.lanes import LANES, absolute, fma, maximum, zero_lanes
from normalfan._kernels.memory import load, store

SMALL, LARGE = 2.0**-480, 2.0**480  # squares of what lies between neither underflow nor overflow


@kernel
def allowed_moves(now, before):
    """L1, the square of L2, L∞ of the move between two losses [H,S,A], and whether all are sound."""
    l1 = l2 = linf = 0.0
    sound = True
    for new, old in zip(now.flat, before.flat):  # noqa: B905  numba's zip takes no option
        sound = sound and new > -np.inf and old > -np.inf
        if new < np.inf and old < np.inf:
            d = abs(new - old)
            l1 += d
            l2 += d * d
            linf = max(linf, d)
    return l1, l2, linf, sound


@kernel
def _moves(now, before, lanes):
    whole = len(now) // LANES * LANES
    sums, squares, largest = zero_lanes(), zero_lanes(), zero_lanes()
    for i in range(0, whole, LANES):
        d = absolute(load(now, i) - load(before, i))
        sums, squares, largest = sums + d, fma(d, d, squares), maximum(d, largest)
    store(lanes, 0, sums)
    store(lanes, LANES, squares)
    store(lanes, 2 * LANES, largest)
    l1, l2, linf = lanes[:LANES].sum(), lanes[LANES : 2 * LANES].sum(), lanes[2 * LANES :].max()
    for i in range(whole, len(now)):
        d = abs(now[i] - before[i])
        l1, l2, linf = l1 + d, l2 + d * d, max(linf, d)
    return l1, l2, linf


def moved_by(now: np.ndarray, before: np.ndarray) -> tuple[float, float, float]:
    """L1, L2 and L∞ of the move between two losses [H, S, A]."""
    l1, l2, linf = _moves(frozen(now, np.float64), frozen(before, np.float64), aligned_zeros(3 * LANES))
    if not np.isfinite(l1):
        l1, l2, linf, _ = allowed_moves(now, before)
    return l1, l2**0.5, linf


@kernel
def _take_roots(found):
    """Make L2 of its square; whether all that is in sight is ordinary: neither infinite nor extreme."""
    ordinary = True
    for t in range(len(found)):
        l1, largest = found[t, 0], found[t, 2]
        found[t, 1] = np.sqrt(found[t, 1])
        ordinary &= l1 < np.inf and (largest == 0.0 or SMALL <= largest <= LARGE)
    return ordinary


def settle_variations(losses: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, bool]:
    """Make norms [N, 3] of what a sweep of ``losses`` found; also whether all losses are numbers or inf."""
    sound = True
    for t in np.flatnonzero(~np.isfinite(found[:, 0])).tolist():
        now, before = (losses[k].astype(np.float64, copy=False) for k in (t, max(t - 1, 0)))
        *found[t], all_sound = allowed_moves(now, before)
        sound = sound and all_sound
    norms, largest = found, found[:, 2]
    if _take_roots(norms):
        return norms, sound
    extreme = (largest > LARGE) | ((largest > 0) & (largest < SMALL))
    for t in np.flatnonzero(extreme & np.isfinite(largest)).tolist():
        both = (losses[t] < np.inf) & (losses[t - 1] < np.inf)
        moved = losses[t][both].astype(np.float64) - losses[t - 1][both]
        norms[t, 1] = largest[t] * np.sqrt(((moved / largest[t]) ** 2).sum())
    return norms, sound and bool(np.isfinite(norms).all())
