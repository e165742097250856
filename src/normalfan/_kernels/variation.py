"""How far each loss is from the one before it: L1, L2 and L∞ over every (h, s, a), reachable or not.

Rounds are lanes, as in ``successors``: each is summed in the same order whatever block it arrives in. Every
loss is read, which makes this the place where one that is not a number cannot hide. What is not allowed, inf,
in either of two rounds has not moved between them.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.lanes import (
    LANES,
    absolute,
    at_most,
    bits_of,
    broadcast,
    fma,
    load,
    maximum,
    select,
    store,
    zero_lanes,
)
from normalfan._kernels.successors import ALL, read_losses

SMALL, LARGE = 2.0**-480, 2.0**480  # squares of what lies between neither underflow nor overflow


@inner
def _norms(address, strides, last, shape, now, before, infinite):
    """The norms of the moves to the rounds from ``address``, and 0 in the lanes where all numbers are finite.

    Losses of inf are passed over unless ``infinite`` is None: such a look costs time.
    """
    steps, states, actions = shape
    zero = zero_lanes()
    l1 = l2 = linf = sound = zero
    for h in range(steps):
        for s in range(states):
            place = address + h * strides[1] + s * strides[2]
            read_losses(place, strides[0], strides[3], last, actions, now)
            read_losses(place - strides[0], strides[0], strides[3], last, actions, before)
            for a in range(actions):
                new, old = load(now, a * LANES), load(before, a * LANES)
                d = absolute(new - old)
                if infinite is not None:
                    forbidden, was_forbidden = at_most(infinite, new), at_most(infinite, old)
                    # Each by itself: beside an inf a NaN would be passed over with it.
                    sound = fma(select(forbidden, zero, new), zero, sound)
                    sound = fma(select(was_forbidden, zero, old), zero, sound)
                    d = select(forbidden, zero, select(was_forbidden, zero, d))
                l1 = l1 + d
                l2 = fma(d, d, l2)
                linf = maximum(d, linf)
                sound = fma(d, zero, sound)
    return l1, l2, linf, sound


@kernel
def variation_kernel(address, strides, rounds, shape, now, before, norms):
    """Fill ``norms`` [N, 3]; returns whether every loss is a number or inf. ``now``, ``before``: scratch."""
    zero = zero_lanes()
    finite = True
    norms[0] = 0.0
    for first in range(1, rounds, LANES):
        last = min(LANES, rounds - first) - 1
        place = address + first * strides[0]
        l1, l2, linf, sound = _norms(place, strides, last, shape, now, before, None)
        if bits_of(at_most(sound, zero)) != ALL:
            l1, l2, linf, sound = _norms(place, strides, last, shape, now, before, broadcast(np.inf))
        finite &= bits_of(at_most(sound, zero)) == ALL
        store(now, 0, l1)
        norms[first : first + last + 1, 0] = now[: last + 1]
        store(now, 0, l2)
        norms[first : first + last + 1, 1] = now[: last + 1]
        store(now, 0, linf)
        norms[first : first + last + 1, 2] = now[: last + 1]
    norms[:, 1] = np.sqrt(norms[:, 1])
    return finite


def variations(losses: np.ndarray) -> tuple[np.ndarray, bool]:
    """The norms [N, 3] of the moves of ``losses`` [N,H,S,A], and whether all losses are numbers or inf."""
    rounds, *shape = losses.shape
    norms = np.zeros((rounds, 3))
    if rounds == 1:
        return norms, bool((losses > -np.inf).all())
    scratch = [aligned_zeros(shape[2] * LANES) for _ in range(2)]
    finite = variation_kernel(losses.ctypes.data, losses.strides, rounds, tuple(shape), *scratch, norms)
    largest = norms[:, 2]
    extreme = (largest > LARGE) | ((largest > 0) & (largest < SMALL))
    for t in np.flatnonzero(extreme & np.isfinite(largest)):  # squares leave the range of floats
        both = (losses[t] < np.inf) & (losses[t - 1] < np.inf)
        moved = losses[t][both] - losses[t - 1][both]
        norms[t, 1] = largest[t] * np.sqrt(((moved / largest[t]) ** 2).sum())
    return norms, finite and bool(np.isfinite(norms).all())
