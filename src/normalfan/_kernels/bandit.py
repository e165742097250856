"""One state, one step: the bandit, where a round is a row of numbers and no dynamics are left.

    V = min_a loss[t,a],   A = loss[t] - V,   tied: A = 0,   price = min of A over the arms tied in round t-1

Here the lanes are arms, not rounds. The dimension is the number of tied arms less one, and the margin the
smallest advantage of the others, exactly. A loss of inf says that an arm is not allowed; where none of those
tied in round t-1 is, the best one may be taken: the price is 0.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import LANES, Problem, Swept, frozen, nothing_told
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import (
    absolute,
    any_bit,
    at_most,
    bits_of,
    broadcast,
    count_bits,
    equal,
    fma,
    least,
    lowest_bit,
    mask_of,
    maximum,
    minimum,
    overlay,
    select,
    total,
    zero_lanes,
)
from normalfan._kernels.memory import item, load, prefetch_items

WORD = 64  # arms whose bits stand in one word
AHEAD = 512  # losses that are asked for in advance: four kilobytes


@inner
def _examine(losses, start, arms, v, upper):
    """What is known of a round in doubt: a doubtful arm, losses that are numbers or inf, no arm allowed,

    an advantage beyond all floats, and the least one that is left out.
    """
    near, sound, closed, beyond, gap = False, True, True, False, np.inf
    for x in losses[start : start + arms]:
        d = x - v
        near |= v < x <= upper
        sound &= x > -np.inf
        closed &= x == np.inf
        beyond |= x < np.inf and d == np.inf
        if upper < x:
            gap = min(gap, d)
    return near, sound, closed, beyond, gap


@inlined
def _first_arm(bits, one, other, words):
    """The first of the arms whose bits stand in both of two sets; some do."""
    for k in range(words):
        both = np.uint64(item(bits, one + k) & item(bits, other + k))
        if both:
            return k * WORD + lowest_bit(both)
    return np.int64(0)


@inner
def _shortest_named(losses, start, arm, lengths):
    """Of the arms that cost what an arm costs, the one with the shortest name."""
    found = arm
    for b in range(len(lengths)):
        shorter = lengths[b] < lengths[found] or (lengths[b] == lengths[found] and b < found)
        if shorter and losses[start + b] == losses[start + arm]:
            found = np.int64(b)
    return found


@kernel
def price_kernel(losses, arms, rule, tied, out):
    """`losses` [N, padded arms], flat, padded by the largest float64; `tied`: see `_price_round`."""
    # Arrays are taken out of ``out`` once: in the loop, each would be counted as held and let go again.
    values, prices, crossed, vertex = out.values, out.prices, out.crossed, out.vertex
    dimensions, near, finite, closed = out.dimensions, out.near, out.finite, out.closed
    width = -(-arms // LANES) * LANES
    words = len(tied) // 3
    for t in range(len(values)):
        now = (t & 1) * words
        round_ = _price_round(losses, t * width, width, arms, rule, tied, words - now, now, None, t)
        values[t], prices[t], crossed[t], dimensions[t], near[t], finite[t], closed[t] = round_[:7]
        vertex[t] = dimensions[t] == 0


@kernel
def detail_kernel(losses, arms, rule, tied, lengths, out):
    """The same with detail."""
    values, prices, crossed, vertex = out.values, out.prices, out.crossed, out.vertex
    dimensions, near, finite, closed = out.dimensions, out.near, out.finite, out.closed
    by_step, cells, cell_prices, variations = out.by_step, out.cells, out.cell_prices, out.variations
    margins, margin_exact, gaps = out.margins, out.margin_exact, out.advantage_gaps
    width = -(-arms // LANES) * LANES
    words = len(tied) // 3
    for t in range(len(values)):
        now = (t & 1) * words
        start = t * width
        round_ = _price_round(losses, start, width, arms, rule, tied, words - now, now, variations, t)
        values[t], prices[t], crossed[t], dimensions[t], near[t], finite[t], closed[t] = round_[:7]
        vertex[t] = dimensions[t] == 0
        price, left_out, alike = round_[1], round_[7], round_[8]
        by_step[t, 0] = cell_prices[t] = price
        cells[t, 0] = cells[t, 1] = cells[t, 2] = cells[t, 3] = -1
        # A stream with a round that allows nothing is refused.
        if price > 0.0 and round_[5] and not closed[max(t - 1, 0)]:
            cells[t, 0] = cells[t, 1] = 0
            held = _first_arm(tied, words - now, 2 * words, words)
            best = _first_arm(tied, now, now, words)
            # Who costs what no other does has no other name.
            cells[t, 2] = _shortest_named(losses, start, held, lengths) if alike > 1 else held
            cells[t, 3] = _shortest_named(losses, start, best, lengths) if round_[3] > 0 else best
        margins[t] = gaps[t] = left_out
        margin_exact[t] = True


@inlined
def _price_round(losses, start, width, arms, rule, tied, before, now, norms, t):
    """One round, whose losses begin at ``start``; fills its third of ``tied`` and norms.

    There bits of the arms tied in the round before and in this one stand from ``before`` and ``now`` on; and
    with norms, in the last third, those of the arms that cost the price more than the value.

    Returns its value, price, whether the face changed, its dimension, whether a tie is near, all is finite,
    nothing is allowed, and with norms the least advantage of an arm left out, and how many cost the price.
    """
    words = before + now
    zero, infinite = zero_lanes(), broadcast(np.inf)
    smallest = held = infinite
    sound = l1 = l2 = linf = zero
    earlier = max(start - width, 0)
    for first in range(0, width, WORD):
        old = np.int64(item(tied, before + first // WORD))
        for k in range(first, min(first + WORD, width), LANES):
            loss = load(losses, start + k)
            prefetch_items(losses, start + k + AHEAD)
            smallest = minimum(loss, smallest)
            held = minimum(select(mask_of(old >> (k - first)), loss, infinite), held)
            sound = overlay(loss * zero, sound)  # bits are left by what is not finite: 0 * inf is nan
            if norms is not None:
                move = absolute(loss - load(losses, earlier + k))
                l1 = l1 + move
                l2 = fma(move, move, l2)
                linf = maximum(move, linf)
    v = least(smallest)
    price = least(held) - v
    # A difference that is within the bound once it is rounded is within this.
    most = v + (rule[0] + rule[1] * abs(v)) * (1.0 + 2.0**-50)
    upper = broadcast(most)
    base, paid, gap = broadcast(v), broadcast(price), infinite
    worst = base
    tied_arms, alike, changed = np.int64(0), np.int64(0), np.int64(0)
    for first in range(0, width, WORD):
        word, same = np.int64(0), np.int64(0)
        for k in range(first, min(first + WORD, width), LANES):
            loss = load(losses, start + k)
            close = at_most(loss, upper)
            word |= bits_of(close) << (k - first)
            worst = maximum(select(close, loss, base), worst)
            if norms is not None:
                gap = minimum(select(close, infinite, loss), gap)
                same |= bits_of(equal(loss - base, paid)) << (k - first)
        if first + WORD > arms:  # losses may be as large as the padding
            word &= (1 << (arms - first)) - 1
            same &= (1 << (arms - first)) - 1
        if norms is not None:
            alike += count_bits(np.uint64(same))
            tied[np.uint64(2 * words + first // WORD)] = same
        tied_arms += count_bits(np.uint64(word))
        changed |= word ^ np.int64(item(tied, before + first // WORD))
        tied[np.uint64(now + first // WORD)] = word
    left_out = np.inf
    if norms is not None:
        norms[t, 0], norms[t, 1], norms[t, 2] = total(l1), total(l2), -least(zero - linf)
        if tied_arms < arms:
            left_out = least(gap) - v
    near, finite, closed = False, True, False
    if any_bit(absolute(sound)) or any_bit(worst - base) or price == np.inf:
        near, numbers, closed, beyond, left_out = _examine(losses, start, arms, v, most)
        finite = numbers and not (beyond and price == np.inf)
        if price == np.inf:
            price = 0.0
    return v, price, changed != 0, tied_arms - 1, near, finite, closed, left_out, alike


def sweep(problem: Problem, losses: np.ndarray, rule: tuple[float, float, float], *, detail: bool) -> Swept:
    """Price the rounds ``losses`` [N,1,1,K] (float64, any strides); no move leads anywhere else."""
    rounds, *_, arms = losses.shape
    rows, missing = losses.reshape(rounds, arms), -arms % LANES
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=np.finfo(np.float64).max)
    words = -(-arms // WORD)
    tied = np.full(3 * words, -1, np.int64)
    tied[2 * words - 1] = -1 if arms % WORD == 0 else (1 << arms % WORD) - 1
    out = nothing_told(rounds, 1, detail=detail, zeros=False)
    out.sizes[:] = 0.0  # nothing is rounded
    flat = frozen(rows, np.float64)
    if detail:
        detail_kernel(flat, arms, rule, tied, problem.lengths, out)
    else:
        price_kernel(flat, arms, rule, tied, out)
    return out  # type: ignore[no-any-return]
