"""One state, one step: the bandit, where a round is a row of numbers and no dynamics are left.

    V = min_a loss[t,a],   A = loss[t] - V,   tied: A = 0,   price = min of A over the arms tied in round t-1

Here the lanes are arms, not rounds. The dimension is the number of tied arms less one, and the margin the
smallest advantage of the others, exactly. A loss of inf says that an arm is not allowed; where none of those
tied in round t-1 is, the best one may be taken: the price is 0.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import LANES, Problem, Swept, allocate, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import (
    absolute,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    count_bits,
    fma,
    item,
    least,
    load,
    lowest_bit,
    mask_of,
    maximum,
    minimum,
    overlay,
    select,
    total,
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
def _first_of(losses, start, v, price, arms):
    """The first of these arms that costs ``price`` more than v."""
    for k in range(len(arms)):
        bits = np.int64(arms[k])
        while bits:
            arm = k * LANES + lowest_bit(np.uint64(bits))
            if losses[start + arm] - v == price:
                return arm
            bits &= bits - 1
    return np.int64(-1)


@inner
def _shortest_named(losses, start, arm, lengths):
    """Of the arms that cost what an arm costs, the one with the shortest name."""
    if len(lengths) == 0:
        return arm
    loss = broadcast(losses[start + arm])
    found = arm
    for k in range(0, len(lengths), LANES):
        other = load(losses, start + k)
        same = bits_of(at_most(loss, other)) & bits_of(at_most(other, loss))
        while same:
            b = k + lowest_bit(np.uint64(same))
            if lengths[b] < lengths[found] or (lengths[b] == lengths[found] and b < found):
                found = b
            same &= same - 1
    return found


@kernel
def price_kernel(losses, arms, rule, before, out):
    """`losses` [N, padded arms], flat, padded by the largest float64; `before`: bits of the arms tied."""
    for t in range(len(out.values)):
        _price_round(losses, t, arms, rule, before, before, out, None)


@kernel
def detail_kernel(losses, arms, rule, before, lengths, out):
    """The same with detail."""
    older = before.copy()
    width = len(before) * LANES
    for t in range(len(out.values)):
        before, older = older, before
        left_out = _price_round(losses, t, arms, rule, older, before, out, out.variations)
        price, v = out.prices[t], out.values[t]
        out.by_step[t, 0] = out.cell_prices[t] = price
        if price > 0.0 and out.finite[t]:
            held = _first_of(losses, t * width, v, price, older)
            best = _first_of(losses, t * width, v, 0.0, before)
            out.cells[t, 0] = out.cells[t, 1] = 0
            out.cells[t, 2] = _shortest_named(losses, t * width, held, lengths)
            # A single best arm has no other name.
            alone = out.vertex[t]
            out.cells[t, 3] = best if alone else _shortest_named(losses, t * width, best, lengths)
        out.margins[t], out.advantage_gaps[t] = left_out, left_out
        out.margin_exact[t] = True


@inlined
def _price_round(losses, t, arms, rule, before, now_tied, out, norms):
    """One round; fills ``now_tied``, and with norms returns the least advantage of an arm left out."""
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    floor, slope = rule
    width = len(before) * LANES
    start = t * width
    smallest = infinite
    for k in range(0, width, LANES):
        smallest = minimum(load(losses, start + k), smallest)
    v = least(smallest)
    base, upper = broadcast(v), broadcast(floor + slope * abs(v))
    held, gap = infinite, infinite
    evidence = zero
    l1 = l2 = linf = zero
    tied_arms, changed = np.int64(0), np.int64(0)
    earlier = max(start - width, 0)
    for k in range(0, width, LANES):
        loss = load(losses, start + k)
        d = loss - base
        close = at_most(d, upper)
        now, old = bits_of(close), np.int64(item(before, k // LANES))
        held = minimum(select(mask_of(old), d, infinite), held)
        if norms is not None:
            gap = minimum(select(close, infinite, d), gap)
            move = absolute(loss - load(losses, earlier + k))
            l1 = l1 + move
            l2 = fma(move, move, l2)
            linf = maximum(move, linf)
        # Bits are left by what is close but not zero, and by what is not finite (0 * d is nan).
        evidence = overlay(evidence, select(close, d, d * zero))
        tied_arms += count_bits(np.uint64(now))
        changed |= now ^ old
        now_tied[np.uint64(k // LANES)] = now
    out.values[t], out.prices[t] = v, least(held)
    out.crossed[t], out.vertex[t], out.dimensions[t] = changed != 0, tied_arms == 1, tied_arms - 1
    left_out = np.inf
    if norms is not None:
        norms[t, 0], norms[t, 1], norms[t, 2] = total(l1), total(l2), -least(zero - linf)
        if tied_arms < arms:
            left_out = least(gap)
    near, finite = False, True
    if any_bit(evidence):
        near, sound, closed, beyond, left_out = _examine(losses, start, arms, v, floor + slope * abs(v))
        out.closed[t] = closed
        finite = sound and not (beyond and out.prices[t] == np.inf)
        if out.prices[t] == np.inf:
            out.prices[t] = 0.0
    out.near[t], out.finite[t] = near, finite
    return left_out


def sweep(problem: Problem, losses: np.ndarray, rule: tuple[float, float], *, detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,1,1,K] (float64, any strides); no move leads anywhere else."""
    rounds, *_, arms = losses.shape
    rows, missing = losses.reshape(rounds, arms), -arms % LANES
    everything = np.full((arms + missing) // LANES, ALL, np.uint8)
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.finfo(np.float64).max)
        everything[-1] >>= missing
    out, _ = allocate(rounds, problem.shape, LANES, np.uint16, detail=detail)
    flat = frozen(rows, np.float64)
    if detail:
        detail_kernel(flat, arms, rule, everything, problem.lengths, out)
    else:
        price_kernel(flat, arms, rule, everything, out)
    return out  # type: ignore[no-any-return]
