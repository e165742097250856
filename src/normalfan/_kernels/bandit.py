"""One state, one step: the bandit, where a round is a row of numbers and no dynamics are left.

    V = min_a loss[t,a],   A = loss[t] - V,   tied: A = 0,   price = min of A over the arms tied in round t-1

Here the lanes are arms, not rounds. The dimension is the number of tied arms less one, and the margin the
smallest advantage of the others, exactly.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.bitsets import size
from normalfan._kernels.buffers import Swept, allocate, swept
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.lanes import (
    any_bit,
    at_most,
    bits_of,
    broadcast,
    lanes_of,
    least,
    mask_of,
    minimum,
    overlay,
    select,
)
from normalfan._kernels.memory import load

LANES = 8
ALL = (1 << LANES) - 1


@inner
def _examine(losses, start, arms, v, upper):
    """What the evidence in a round shows: (a doubtful arm, all losses finite)."""
    near, finite = False, True
    for x in losses[start : start + arms]:
        near |= 0.0 < x - v <= upper
        finite &= abs(x) < np.inf
    return near, finite


@kernel
def bandit_kernel(losses, arms, rule, before, out, detail):
    """`losses` [N, padded arms], flat, padded by the largest float64; `before`: bits of the arms tied."""
    value, price, crossed, vertex, dimension, near, finite, _ = out
    zero = lanes_of(np.uint16(0))
    infinite = broadcast(np.inf, zero)
    floor, slope = rule
    width = len(before) * LANES
    for t in range(len(value)):
        start = t * width
        smallest = infinite
        for k in range(0, width, LANES):
            smallest = minimum(load(losses, start + k, zero), smallest)
        v = least(smallest)
        base, upper = broadcast(v, zero), broadcast(floor + slope * abs(v), zero)
        held, gap = infinite, infinite
        evidence = lanes_of(np.uint8(0))
        tied_arms, changed = np.int64(0), np.int64(0)
        for k in range(0, width, LANES):
            d = load(losses, start + k, zero) - base
            close = at_most(d, upper)
            now, old = bits_of(close), np.int64(before[k // LANES])
            held = minimum(select(mask_of(old, zero), d, infinite), held)
            if detail is not None:
                gap = minimum(select(close, infinite, d), gap)
            # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
            evidence = overlay(evidence, select(close, d, d * zero))
            tied_arms += size(np.uint64(now))
            changed |= now ^ old
            before[k // LANES] = now
        value[t], price[t] = v, least(held)
        crossed[t], vertex[t], dimension[t] = changed != 0, tied_arms == 1, tied_arms - 1
        near[t], finite[t] = False, True
        if any_bit(evidence):
            near[t], finite[t] = _examine(losses, start, arms, v, floor + slope * abs(v))
        finite[t] &= price[t] < np.inf
        if detail is not None:
            left_out = np.inf if tied_arms == arms else least(gap)
            detail.by_step[t, 0] = price[t]
            detail.margin[t], detail.advantage_gap[t] = left_out, left_out
            detail.margin_exact[t] = True


def sweep(losses: np.ndarray, rule: tuple[float, float], detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,1,1,K] (float64, any strides), one after another."""
    rounds, *_, arms = losses.shape
    rows = _padded_rows(losses.reshape(rounds, arms))
    out, _, more = allocate(rounds, 1, 1, LANES, detail)
    everything = np.full(rows.shape[1] // LANES, ALL, np.uint8)
    if arms % LANES:
        everything[-1] = (1 << arms % LANES) - 1
    bandit_kernel(rows.reshape(-1), arms, tuple(rule), everything, out, more)
    return swept(out, more)


def _padded_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of whole lanes, read-only; copied only where that is needed."""
    missing = -rows.shape[1] % LANES
    if missing:
        largest = np.finfo(np.float64).max
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=largest)
    view = np.ascontiguousarray(rows).view()
    view.flags.writeable = False
    return view
