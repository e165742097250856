"""How far each loss is from the one before it: L1, L2 and L∞ over every (h, s, a), reachable or not.

Rounds are lanes, as in ``successors``: each is summed in the same order whatever block it arrives in. Every
loss is read, which makes this the place where one that is not finite cannot hide.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros
from normalfan._kernels.compiling import kernel
from normalfan._kernels.lanes import absolute, at_most, bits_of, fma, lane_count, lanes_of, maximum
from normalfan._kernels.memory import load, store
from normalfan._kernels.successors import LANES, WORD, read_losses

SMALL, LARGE = 2.0**-480, 2.0**480  # squares of what lies between neither underflow nor overflow


@kernel
def variation_kernel(address, strides, rounds, shape, now, before, norms):
    """Fill ``norms`` [N, 3]; returns whether every loss is finite. ``now``, ``before``: scratch."""
    steps, states, actions = shape
    zero = lanes_of(WORD(0))
    count = lane_count(zero)
    finite = True
    norms[0] = 0.0
    for first in range(1, rounds, count):
        last = min(count, rounds - first) - 1
        l1 = l2 = linf = sound = zero
        for h in range(steps):
            for s in range(states):
                place = address + first * strides[0] + h * strides[1] + s * strides[2]
                read_losses(place, strides[0], strides[3], last, actions, now, zero)
                read_losses(place - strides[0], strides[0], strides[3], last, actions, before, zero)
                for a in range(actions):
                    d = absolute(load(now, a * count, zero) - load(before, a * count, zero))
                    l1 = l1 + d
                    l2 = fma(d, d, l2)
                    linf = maximum(d, linf)
                    sound = fma(d, zero, sound)
        finite &= bits_of(at_most(sound, zero)) == (1 << count) - 1
        store(now, 0, l1)
        norms[first : first + last + 1, 0] = now[: last + 1]
        store(now, 0, l2)
        norms[first : first + last + 1, 1] = now[: last + 1]
        store(now, 0, linf)
        norms[first : first + last + 1, 2] = now[: last + 1]
    norms[:, 1] = np.sqrt(norms[:, 1])
    return finite


def _scaled_l2(moved: np.ndarray) -> float:
    """The L2 norm of numbers whose squares leave the range of floats."""
    largest = np.abs(moved).max()
    return float(largest * np.sqrt(((moved / largest) ** 2).sum()))


def variations(losses: np.ndarray) -> tuple[np.ndarray, bool]:
    """The norms [N, 3] of the moves of ``losses`` [N,H,S,A], and whether all losses are finite."""
    rounds, *shape = losses.shape
    norms = np.zeros((rounds, 3))
    if rounds == 1:
        return norms, bool(np.isfinite(losses).all())
    scratch = [aligned_zeros(shape[2] * LANES) for _ in range(2)]
    finite = variation_kernel(losses.ctypes.data, losses.strides, rounds, tuple(shape), *scratch, norms)
    largest = norms[:, 2]
    extreme = (largest > LARGE) | ((largest > 0) & (largest < SMALL))
    for t in np.flatnonzero(extreme & np.isfinite(largest)):
        norms[t, 1] = _scaled_l2(losses[t] - losses[t - 1])
    return norms, finite and bool(np.isfinite(norms).all())
