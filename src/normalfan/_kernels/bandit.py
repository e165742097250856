"""One state, one step: the bandit, where a round is a row of numbers and no dynamics are left.

    V = min_a loss[t,a],   A = loss[t] - V,   tied: A = 0,   price = min of A over the arms tied in round t-1

Here the lanes are arms, not rounds. The dimension is the number of tied arms less one, and the margin the
smallest advantage of the others, exactly. A loss of inf says that an arm is not allowed; where none of those
tied in round t-1 is, the best one may be taken: the price is 0.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import Problem, Swept, allocate, frozen
from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.lanes import (
    LANES,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    count_bits,
    least,
    load,
    mask_of,
    minimum,
    overlay,
    select,
    zero_lanes,
)

ALL = (1 << LANES) - 1


@inner
def _examine(losses, start, arms, v, upper):
    """What the evidence in a round shows: a doubtful arm, losses that are numbers or inf, no arm allowed,

    an advantage beyond all floats, and the least one that is left out.
    """
    near, sound, closed, beyond, gap = False, True, True, False, np.inf
    for x in losses[start : start + arms]:
        d = x - v
        near |= 0.0 < d <= upper
        sound &= x > -np.inf
        closed &= x == np.inf
        beyond |= x < np.inf and d == np.inf
        if upper < d:
            gap = min(gap, d)
    return near, sound, closed, beyond, gap


@inner
def _find(losses, start, arms, v, price, before):
    """The first arm tied before that costs ``price`` more than v, and the first that costs v."""
    held, best = -1, -1
    for arm in range(arms - 1, -1, -1):
        d = losses[start + arm] - v
        if d == price and (before[arm // LANES] >> (arm % LANES)) & 1:
            held = arm
        if d == 0.0:
            best = arm
    return held, best


@kernel
def bandit_kernel(losses, arms, rule, before, out, walk):
    """`losses` [N, padded arms], flat, padded by the largest float64; `before`: bits of the arms tied."""
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    floor, slope = rule
    width = len(before) * LANES
    older = before.copy()
    for t in range(len(out.values)):
        start = t * width
        smallest = infinite
        older[:] = before
        for k in range(0, width, LANES):
            smallest = minimum(load(losses, start + k), smallest)
        v = least(smallest)
        base, upper = broadcast(v), broadcast(floor + slope * abs(v))
        held, gap = infinite, infinite
        evidence = zero
        tied_arms, changed = np.int64(0), np.int64(0)
        for k in range(0, width, LANES):
            d = load(losses, start + k) - base
            close = at_most(d, upper)
            now, old = bits_of(close), np.int64(before[k // LANES])
            held = minimum(select(mask_of(old), d, infinite), held)
            if walk is not None:
                gap = minimum(select(close, infinite, d), gap)
            # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
            evidence = overlay(evidence, select(close, d, d * zero))
            tied_arms += count_bits(np.uint64(now))
            changed |= now ^ old
            before[k // LANES] = now
        out.values[t], out.prices[t] = v, least(held)
        out.crossed[t], out.vertex[t], out.dimensions[t] = changed != 0, tied_arms == 1, tied_arms - 1
        left_out = np.inf
        if walk is not None and tied_arms < arms:
            left_out = least(gap)
        near, finite = False, True
        if any_bit(evidence):
            near, sound, closed, beyond, left_out = _examine(losses, start, arms, v, floor + slope * abs(v))
            out.closed[t] = closed
            finite = sound and not (beyond and out.prices[t] == np.inf)
            if out.prices[t] == np.inf:
                out.prices[t] = 0.0
        out.near[t], out.finite[t] = near, finite
        if walk is not None:
            out.by_step[t, 0] = out.cell_prices[t] = out.prices[t]
            if out.prices[t] > 0.0 and out.finite[t]:
                held_arm, best_arm = _find(losses, start, arms, v, out.prices[t], older)
                out.cells[t, :2], out.cells[t, 2], out.cells[t, 3] = 0, held_arm, best_arm
            out.margins[t], out.advantage_gaps[t] = left_out, left_out
            out.margin_exact[t] = True


def sweep(_problem: Problem, losses: np.ndarray, rule: tuple[float, float], detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,1,1,K] (float64, any strides); no move leads anywhere else."""
    rounds, *_, arms = losses.shape
    rows, missing = losses.reshape(rounds, arms), -arms % LANES
    everything = np.full((arms + missing) // LANES, ALL, np.uint8)
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.finfo(np.float64).max)
        everything[-1] >>= missing
    out, walk = allocate(rounds, 1, 1, LANES, detail)
    bandit_kernel(frozen(rows, np.float64), arms, rule, everything, out, walk)
    return out
