"""One state, one step: the bandit, where a round is a row of numbers and no dynamics are left.

    V = min_a loss[t,a],   A = loss[t] - V,   tied: A = 0,   price = min of A over the arms tied in round t-1

Here the lanes are arms, not rounds. The dimension is the number of tied arms less one, and the margin the
smallest advantage of the others, exactly. A loss of inf says that an arm is not allowed; where none of those
tied in round t-1 is, the best one may be taken: the price is 0.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import LANES, Problem, Swept, allocate, frozen
from normalfan._kernels.compiling import inner, kernel
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
    # Arrays are taken out of ``out`` once: in the loop, each would be counted as held and let go again.
    values, prices, crossed, vertex = out.values, out.prices, out.crossed, out.vertex
    dimensions, near, finite, closed = out.dimensions, out.near, out.finite, out.closed
    for t in range(len(values)):
        round_ = _price_round(losses, t, arms, rule, before, before, None)
        values[t], prices[t], crossed[t], dimensions[t], near[t], finite[t], closed[t] = round_[:7]
        vertex[t] = dimensions[t] == 0


@kernel
def detail_kernel(losses, arms, rule, before, lengths, out):
    """The same with detail."""
    values, prices, crossed, vertex = out.values, out.prices, out.crossed, out.vertex
    dimensions, near, finite, closed = out.dimensions, out.near, out.finite, out.closed
    by_step, cells, cell_prices, variations = out.by_step, out.cells, out.cell_prices, out.variations
    margins, margin_exact, gaps = out.margins, out.margin_exact, out.advantage_gaps
    older = before.copy()
    width = len(before) * LANES
    for t in range(len(values)):
        before, older = older, before
        round_ = _price_round(losses, t, arms, rule, older, before, variations)
        values[t], prices[t], crossed[t], dimensions[t], near[t], finite[t], closed[t] = round_[:7]
        vertex[t] = dimensions[t] == 0
        v, price, left_out = round_[0], round_[1], round_[7]
        by_step[t, 0] = cell_prices[t] = price
        # After a round that allows nothing only the padding is tied; such a stream is refused.
        if price > 0.0 and round_[5] and not closed[max(t - 1, 0)]:
            held = _first_of(losses, t * width, v, price, older)
            best = _first_of(losses, t * width, v, 0.0, before)
            cells[t, 0] = cells[t, 1] = 0
            cells[t, 2] = _shortest_named(losses, t * width, held, lengths)
            # A single best arm has no other name.
            alone = round_[3] == 0
            cells[t, 3] = best if alone else _shortest_named(losses, t * width, best, lengths)
        margins[t] = gaps[t] = left_out
        margin_exact[t] = True


@inner
def _price_round(losses, t, arms, rule, before, now_tied, norms):
    """One round; fills ``now_tied`` and norms.

    Returns its value, price, whether the face changed, its dimension, whether a tie is near, all is finite,
    nothing is allowed, and with norms the least advantage of an arm left out.
    """
    zero = zero_lanes()
    infinite = broadcast(np.inf)
    floor, slope, _ = rule
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
    price, left_out = least(held), np.inf
    if norms is not None:
        norms[t, 0], norms[t, 1], norms[t, 2] = total(l1), total(l2), -least(zero - linf)
        if tied_arms < arms:
            left_out = least(gap)
    near, finite, closed = False, True, False
    if any_bit(evidence):
        near, sound, closed, beyond, left_out = _examine(losses, start, arms, v, floor + slope * abs(v))
        finite = sound and not (beyond and price == np.inf)
        if price == np.inf:
            price = 0.0
    return v, price, changed != 0, tied_arms - 1, near, finite, closed, left_out


def sweep(problem: Problem, losses: np.ndarray, rule: tuple[float, float, float], *, detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,1,1,K] (float64, any strides); no move leads anywhere else."""
    rounds, *_, arms = losses.shape
    rows, missing = losses.reshape(rounds, arms), -arms % LANES
    everything = np.full((arms + missing) // LANES, ALL, np.uint8)
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.finfo(np.float64).max)
        everything[-1] >>= missing
    out, _ = allocate(rounds, problem.shape, LANES, np.uint16, walks=detail, moves=detail)
    flat = frozen(rows, np.float64)
    if detail:
        detail_kernel(flat, arms, rule, everything, problem.lengths, out)
    else:
        price_kernel(flat, arms, rule, everything, out)
    return out  # type: ignore[no-any-return]
