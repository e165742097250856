"""Forward passes over what a backward sweep left: faces, where a price is paid, how far the walls are.

    reach_0(s) = [rho(s) > 0],   kept_h(s, a) = tied_h(s, a) and reach_h(s),
    reach_{h+1}(s') = or of kept_h(s, a) over the (s, a) that can lead to s'
    by_step[h] = sum_s u_h(s) A_h(s, pick),                    u the occupancy of the plan that attains W
    margin     = min over reached (h, s) of  d_h(s) * gap_h(s),    d at most the reach probability

Faces are found for a whole block at once, a bit a round; masses move in lanes. Where one plan alone was
optimal yesterday, it attains W today: u is yesterday's d, and one walk serves both. States are visited in
ascending order, so a round gets the same bits in any block. More: docs/details/kernels.md.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import ASKED_AHEAD
from normalfan._kernels.compiling import inlined, inner
from normalfan._kernels.lanes import (
    LANES,
    at_most,
    broadcast,
    last_lane,
    mask_of,
    minimum,
    select,
    shifted,
    zero_lanes,
)
from normalfan._kernels.losses import shortest_named
from normalfan._kernels.memory import item, load, prefetch_items, store

PLANES = 40  # of the bit-sliced counters: planes[p] holds bit p of all; a count below 2**40 always fits
SMALLEST_EXACT = 2.0**-1022  # products below this are rounded away; 0 is a safe bound for them


@inner
def _count(planes, word):
    """Add one to the counter of every round whose bit is set."""
    p = 0
    while word != 0:
        overflow = planes[p] & word
        planes[p] ^= word
        word = overflow
        p += 1


@inner
def _reach(ahead, kept, row, rows, indptr, indices, everywhere):
    """Reach the successors of one (s, a) in the rounds ``kept``; returns those that reached every state."""
    if rows is not None:
        everywhere = np.int64(-1)
        for s in range(len(ahead)):
            if rows[row, s] > 0.0:
                ahead[s] |= kept
            everywhere &= ahead[s]
    if indptr is not None:
        for p in range(indptr[row], indptr[row + 1]):
            ahead[indices[p]] |= kept
    elif indices is not None:
        ahead[indices[row]] |= kept
    return everywhere


@inner
def start_reach(problem, reach, rounds):
    """Every round, and the one before, begins where the problem does."""
    for j in range(problem.ptr[0], problem.ptr[1]):
        s = problem.idx[j]
        reach[s] = (1 << (rounds + 1)) - 1 if problem.initial[s] > 0.0 else 0


@inner
def tell_faces(tally, first, rounds, out):
    """What the kept words of all states say of each round: where they change, offer choices, and how many."""
    changed, choices, planes = tally[0], tally[1], tally[2:]
    for t in range(rounds):
        out.crossed[first + t] = (changed >> t) & 1 == 1
        out.vertex[first + t] = (choices >> (t + 1)) & 1 == 0
        total = np.int64(0)
        for p in range(PLANES):
            total += ((planes[p] >> (t + 1)) & 1) << p
        out.dimensions[first + t] = total


@inner
def keep_step(problem, words, h, here, ahead, tally):
    """Faces at one step: words reached there become 0, those of the next are filled; ``tally`` grows."""
    steps, states, actions = problem.shape
    rows, indptr, indices = problem.rows, problem.indptr, problem.indices
    changed = choices = everywhere = np.int64(0)
    for j in range(problem.ptr[h], problem.ptr[h + 1]):
        s = np.int64(problem.idx[j])
        reached = np.int64(here[s])
        if reached == 0:
            continue
        here[s] = 0
        seen = np.int64(0)
        word = (h * states + s) * actions
        row = h * problem.per_step + s * actions
        for a in range(actions):
            kept = np.int64(words[word + a]) & reached
            if kept == 0:
                continue
            changed |= kept ^ (kept >> 1)
            again = seen & kept
            seen |= kept
            if again != 0:
                choices |= again
                _count(tally[2:], again)
            if h + 1 < steps and kept & ~everywhere:
                everywhere = _reach(ahead, kept, row + a, rows, indptr, indices, everywhere)
    tally[0] |= changed
    tally[1] |= choices


@inner
def keep_faces(problem, words, reach, first, rounds, out):
    """Faces of the rounds from ``first``; bit t + 1 of a word is round t, bit 0 the round before.

    ``reach`` is two rows of S words, zero on entry and zero again on exit.
    """
    tally = np.zeros(2 + PLANES, np.int64)
    start_reach(problem, reach[0], rounds)
    for h in range(problem.shape[0]):
        keep_step(problem, words, h, reach[h & 1], reach[(h + 1) & 1], tally)
    tell_faces(tally, first, rounds, out)


# --- masses, LANES rounds at a time ---------------------------------------------------


@inlined
def _give(mass, reach, s, kept, part, least):
    """Give state s its part of a mass: the sum of what it is given, or the least."""
    old = np.int64(item(reach, s))
    reach[np.uint64(s)] = old | kept
    if not least:
        store(mass, s * LANES, load(mass, s * LANES) + part)
    elif kept > 1:  # otherwise only the round before comes here
        store(mass, s * LANES, minimum(part, load(mass, s * LANES)) if old > 1 else part)


@inlined
def _spread(mass, reach, ahead, row, kept, m, least, rows, indptr, indices, weights):
    """Send the mass of one (s, a) on in the rounds ``kept``; ``ahead`` is where the next layer begins."""
    m = select(mask_of(kept >> 1), m, broadcast(np.inf) if least else zero_lanes())
    if rows is not None:
        for s in range(rows.shape[1]):
            if rows[row, s] > 0.0:
                _give(mass, reach, ahead + s, kept, m * broadcast(rows[row, s]), least)
    if indptr is not None:
        for p in range(item(indptr, row), item(indptr, row + 1)):
            prefetch_items(mass, (ahead + item(indices, p + ASKED_AHEAD)) * LANES)
            _give(mass, reach, ahead + item(indices, p), kept, m * broadcast(item(weights, p)), least)
    elif indices is not None:
        _give(mass, reach, ahead + item(indices, row), kept, m, least)


@inlined
def _take(mass, reach, s):
    """The mass of a state, of which nothing is left there, so that sums need not know who comes first."""
    m = load(mass, s * LANES)
    store(mass, s * LANES, zero_lanes())
    reach[np.uint64(s)] = 0
    return m


@inlined
def _begin(problem, walk, bits):
    """The masses of the start."""
    for j in range(problem.ptr[0], problem.ptr[1]):
        s = np.int64(problem.idx[j])
        if problem.initial[s] > 0.0:
            walk.reach[s] = bits
            store(walk.mass, s * LANES, broadcast(problem.initial[s]))


@inlined
def nearer(reached, m, gap, margin, smallest):
    """The margin and the least gap, with those of one state in the rounds that reach it."""
    where, infinite = mask_of(reached), broadcast(np.inf)
    # A state too rare for a float has mass 0, and so no margin; where nothing is left out there is none.
    margin = minimum(select(where, m * gap, infinite), margin)
    return margin, minimum(select(where, gap, infinite), smallest)


@inlined
def costlier(where, pay, part, cell, most, spot):
    """The larger payment and its cell: the first counts even where its part underflows, then the largest."""
    nothing = broadcast(-1.0)
    paid = select(where, select(at_most(pay, zero_lanes()), nothing, part), nothing)
    less = at_most(paid, most)
    return select(less, most, paid), select(less, spot, broadcast(float(cell)))


@inner
def paying_rounds(first, rounds, out):
    """The rounds whose price is paid somewhere, a bit each."""
    found = np.int64(0)
    for i in range(rounds):
        if out.prices[first + i] > 0.0 and out.finite[first + i]:
            found |= 1 << i
    return found


@inner
def tell_cells(problem, given, words, shift, lanes, most, spot, first, walk, out):
    """The costliest cells of the rounds ``lanes``: their step, state, action and best action."""
    _, states, actions = problem.shape
    store(walk.paid, 0, most)
    store(walk.paid, LANES, spot)
    for i in range(LANES):
        t, cell = first + i, np.int64(walk.paid[LANES + i])
        if not (lanes >> i) & 1 or cell < 0:
            continue
        h, s = cell // states, cell % states
        row = h * problem.per_step + s * actions
        held = best = np.int64(0)
        for a in range(actions - 1, -1, -1):
            if (np.int64(words[cell * actions + a]) >> (shift + i + 1)) & 1:
                best = np.int64(a)
        for a in range(actions):  # the last one that was better than those before it
            if (np.int64(walk.better[cell * actions + a]) >> (shift + i)) & 1:
                held = np.int64(a)
        twins, lengths = problem.twins, problem.lengths
        out.cell_prices[t] = walk.paid[i]
        out.cells[t, 0], out.cells[t, 1] = h, s
        out.cells[t, 2] = shortest_named(given, t, h, s, row, held, actions, twins, lengths)
        out.cells[t, 3] = shortest_named(given, t, h, s, row, best, actions, twins, lengths)


@inlined
def tell_step(paid, lanes, first, h, walk, out):
    """What the rounds ``lanes`` pay at step h."""
    store(walk.paid, 0, paid)
    for i in range(LANES):
        if (lanes >> i) & 1:
            out.by_step[first + i, h] = walk.paid[i]


@inner
def weigh_faces(problem, rows, indptr, indices, weights, given, words, walk, first, rounds, freed, out):
    """Faces, margins and where prices are paid, of the at most LANES rounds from ``first``.

    ``freed``: the rounds in which somewhere nothing is allowed that was tied before.
    """
    steps, states, actions = problem.shape
    ptr, idx = problem.ptr, problem.idx
    zero = zero_lanes()
    tally = np.zeros(2 + PLANES, np.int64)
    changed = choices = np.int64(0)
    margin = smallest = broadcast(np.inf)
    most = spot = broadcast(-1.0)
    wanted = paying_rounds(first, rounds, out)
    _begin(problem, walk, (1 << (rounds + 1)) - 1)
    for h in range(steps):
        here, ahead = (h & 1) * states, states - (h & 1) * states
        paid = zero
        for j in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, j))
            reached = np.int64(item(walk.reach, here + s))
            if reached == 0:
                continue
            m = _take(walk.mass, walk.reach, here + s)
            cell = h * states + s
            place = h * walk.stride + s * walk.width
            yesterday = shifted(m, item(walk.carry, cell) if reached & 1 else 0.0)
            walk.carry[np.uint64(cell)] = last_lane(m)
            margin, smallest = nearer(reached >> 1, m, load(walk.gap, place), margin, smallest)
            pay = load(walk.pay, place)
            part = yesterday * pay
            paid = paid + part
            most, spot = costlier(mask_of(reached), pay, part, cell, most, spot)
            seen = np.int64(0)
            for a in range(actions):
                kept = np.int64(item(words, cell * actions + a)) & reached
                if kept == 0:
                    continue
                changed |= kept ^ (kept >> 1)
                again = seen & kept
                seen |= kept
                if again != 0:
                    choices |= again
                    _count(tally[2:], again)
                if h + 1 < steps:
                    row = h * problem.per_step + s * actions + a
                    _spread(walk.mass, walk.reach, ahead, row, kept, m, False, rows, indptr, indices, weights)
        tell_step(paid, wanted, first, h, walk, out)
    tally[0], tally[1] = changed, choices
    tell_faces(tally, first, rounds, out)
    tell_cells(problem, given, words, 0, wanted, most, spot, first, walk, out)
    tell_margins(problem, margin, smallest, first, rounds, walk, out)
    # Yesterday's walk was that of the plan that attains the price only if it had no choice.
    strayed = wanted & (choices | freed)
    if strayed:
        follow_choices(problem, rows, indptr, indices, weights, given, words, walk, 0, first, strayed, out)
    several = choices >> 1 & ((1 << rounds) - 1)
    if several and not problem.certain:
        least_paths(problem, rows, indptr, indices, weights, words, walk, 0, first, several, out)


@inner
def tell_margins(problem, margin, smallest, first, rounds, walk, out):
    """The margins of single plans; in problems without chance all states are reached for sure."""
    store(walk.paid, 0, smallest if problem.certain else margin)
    store(walk.paid, LANES, smallest)
    for i in range(rounds):
        out.margins[first + i] = 0.0 if walk.paid[i] < SMALLEST_EXACT else walk.paid[i]
        out.advantage_gaps[first + i] = walk.paid[LANES + i]
        exactly = out.vertex[first + i] or problem.certain
        out.margin_exact[first + i] = exactly and out.margins[first + i] > 0.0


@inner
def follow_choices(problem, rows, indptr, indices, weights, given, words, walk, shift, first, lanes, out):
    """Where the price of the rounds ``lanes`` is paid, along the actions that attain it.

    ``shift``: of the first lane in words and records.
    """
    steps, states, actions = problem.shape
    most = spot = broadcast(-1.0)
    _begin(problem, walk, lanes << 1)
    for h in range(steps):
        here, ahead = (h & 1) * states, states - (h & 1) * states
        paid = zero_lanes()
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            reached = np.int64(item(walk.reach, here + s))
            if reached == 0:
                continue
            m = _take(walk.mass, walk.reach, here + s)
            cell = h * states + s
            pay = load(walk.pay, h * walk.stride + s * walk.width + shift)
            where = mask_of(reached >> 1)
            part = select(where, m * pay, zero_lanes())
            paid = paid + part
            most, spot = costlier(where, pay, part, cell, most, spot)
            left = reached
            for a in range(actions - 1 if h + 1 < steps else -1, -1, -1):
                # The last one that was better than those before it.
                kept = np.int64(item(walk.better, cell * actions + a)) >> shift << 1 & left
                left &= ~kept
                if kept:
                    row = h * problem.per_step + s * actions + a
                    _spread(walk.mass, walk.reach, ahead, row, kept, m, False, rows, indptr, indices, weights)
        tell_step(paid, lanes, first, h, walk, out)
    tell_cells(problem, given, words, shift, lanes, most, spot, first, walk, out)


@inner
def least_paths(problem, rows, indptr, indices, weights, words, walk, shift, first, lanes, out):
    """The margins of the rounds ``lanes``, whose faces have several plans: by the least probable path."""
    steps, states, actions = problem.shape
    margin = broadcast(np.inf)
    _begin(problem, walk, lanes << 1)
    for h in range(steps):
        here, ahead = (h & 1) * states, states - (h & 1) * states
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            reached = np.int64(item(walk.reach, here + s))
            if reached == 0:
                continue
            m = _take(walk.mass, walk.reach, here + s)
            gap = load(walk.gap, h * walk.stride + s * walk.width + shift)
            margin, _ = nearer(reached >> 1, m, gap, margin, margin)
            for a in range(actions if h + 1 < steps else 0):
                word = (h * states + s) * actions + a
                kept = np.int64(item(words, word)) >> shift & reached
                if kept:
                    row = h * problem.per_step + s * actions + a
                    _spread(walk.mass, walk.reach, ahead, row, kept, m, True, rows, indptr, indices, weights)
    store(walk.paid, 0, margin)
    for i in range(LANES):
        if (lanes >> i) & 1:
            out.margins[first + i] = 0.0 if walk.paid[i] < SMALLEST_EXACT else walk.paid[i]
            out.margin_exact[first + i] = False
