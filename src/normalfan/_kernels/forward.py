"""Forward passes over what a backward sweep left: faces, where a price is paid, how far the walls are.

    reach_0(s) = [rho(s) > 0],   kept_h(s, a) = tied_h(s, a) and reach_h(s),
    reach_{h+1}(s') = or of kept_h(s, a) over the (s, a) that can lead to s'
    by_step[h] = sum_s u_h(s) A_h(s, pick),                    u the occupancy of the plan that attains W
    margin     = min over reached (h, s) of  d_h(s) * gap_h(s),    d at most the reach probability

Faces are found for a whole block at once, a bit a round; the rest one round at a time, along a list of the
states that are met. numba compiles no branch on an argument that is None. More: docs/details/kernels.md.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import inner

PLANES = 40  # of the bit-sliced counters: planes[p] holds bit p of all; a count below 2**40 always fits
TINIEST = 5e-324  # a rare state stays a state, though its probability is no float any more
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
def keep_faces(problem, words, reach, first, rounds, out):
    """Faces of the rounds from ``first``; bit t + 1 of a word is round t, bit 0 the round before.

    ``reach`` is two rows of S words, zero on entry and zero again on exit.
    """
    steps, states, actions = problem.shape
    ptr, idx = problem.ptr, problem.idx
    rows, indptr, indices = problem.rows, problem.indptr, problem.indices
    changed = np.int64(0)
    choices = np.int64(0)
    planes = np.zeros(PLANES, np.int64)
    for j in range(ptr[0], ptr[1]):
        s = idx[j]
        reach[0, s] = (1 << (rounds + 1)) - 1 if problem.initial[s] > 0.0 else 0
    for h in range(steps):
        here = reach[h & 1]
        ahead = reach[(h + 1) & 1]
        everywhere = np.int64(0)
        for j in range(ptr[h], ptr[h + 1]):
            s = np.int64(idx[j])
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
                    _count(planes, again)
                if h + 1 < steps and kept & ~everywhere:
                    everywhere = _reach(ahead, kept, row + a, rows, indptr, indices, everywhere)
    for t in range(rounds):
        out.crossed[first + t] = (changed >> t) & 1 == 1
        out.vertex[first + t] = (choices >> (t + 1)) & 1 == 0
        total = np.int64(0)
        for p in range(PLANES):
            total += ((planes[p] >> (t + 1)) & 1) << p
        out.dimensions[first + t] = total


@inner
def _move(masses, stamps, front, visit, size, s, weight, least):
    """Give state s of a frontier a weight: the sum of what it is given, or the least."""
    if stamps[s] != visit:
        stamps[s] = visit
        masses[s] = weight
        front[size] = s
        return size + 1
    if not least:
        masses[s] += weight
    elif weight < masses[s]:
        masses[s] = weight
    return size


@inner
def _add_row(masses, row, mass, least):
    """A dense row at once: plain loops over all states, which the compiler turns into vectors."""
    if least:
        for s in range(len(masses)):
            path = max(mass * row[s], TINIEST) if row[s] > 0.0 else np.inf
            masses[s] = min(masses[s], path)
    else:
        for s in range(len(masses)):
            masses[s] += max(mass * row[s], TINIEST) if row[s] > 0.0 else 0.0


@inner
def _spread(masses, stamps, front, visit, size, row, mass, least, rows, indptr, indices, weights):
    """Send the mass of one (s, a) to its successors; returns the frontier's new size."""
    if rows is not None:
        _add_row(masses, rows[row], mass, least)
    if indptr is not None:
        for p in range(indptr[row], indptr[row + 1]):
            size = _move(masses, stamps, front, visit, size, indices[p], mass * weights[p], least)
    elif indices is not None:
        size = _move(masses, stamps, front, visit, size, indices[row], mass, least)
    return size


@inner
def _close(masses, stamps, front, visit, size, rows):
    """After a step: list the states of a frontier in memory's order where that pays; returns its size."""
    states = len(masses)
    if rows is not None:
        size = 0
        for s in range(states):
            if 0.0 < masses[s] < np.inf:
                front[size] = s
                size += 1
    elif size * 8 > states:
        size = 0
        for s in range(states):
            if stamps[s] == visit:
                front[size] = s
                size += 1
    return size


@inner
def _follow(
    shape, per_step, tables, ptr, idx, initial, words, walk, lane, block, visit, alone, by_step, cell
):
    """Walk one lane along its tied actions, or if ``words`` is None along those that attain its price.

    Returns (margin, advantage gap) in the first case, where paths are followed instead of masses unless one
    plan is ``alone`` on the face. In the second it fills ``by_step``, and ``cell`` with the step, state and
    action that pay most, the first of them; returns what they pay.
    """
    least = words is not None and not alone
    steps, states, actions = shape
    rows, indptr, indices, weights = tables
    size = 0
    for j in range(ptr[0], ptr[1]):
        if initial[idx[j]] > 0.0:
            size = _move(
                walk.mass[0], walk.stamp[0], walk.front[0], visit, size, idx[j], initial[idx[j]], least
            )
    margin = np.inf
    smallest = np.inf
    most = 0.0
    for h in range(steps):
        here, ahead = h & 1, (h + 1) & 1
        masses, stamps, front = walk.mass[ahead], walk.stamp[ahead], walk.front[ahead]
        grown = 0
        paid = 0.0
        if rows is not None:
            masses[:] = np.inf if least else 0.0
        for k in range(size):
            s = walk.front[here, k]
            mass = walk.mass[here, s]
            place = (h * states + s) * block + lane
            if words is None:
                here_paid = mass * walk.pay[place]
                paid += here_paid
                first = np.int64(walk.pick[place])
                stop = first + 1
                paying = walk.pay[place] > 0.0 and cell[0] < 0  # counts even where its part underflows
                if here_paid > most or paying or (here_paid == most > 0.0 and h == cell[0] and s < cell[1]):
                    most = here_paid
                    cell[0], cell[1], cell[2] = h, s, first
            else:
                gap = walk.gap[place]
                smallest = min(smallest, gap)
                if gap < np.inf:
                    margin = min(margin, mass * gap)
                first, stop = 0, actions
            if h + 1 == steps:
                continue
            word = (h * states + s) * actions
            row = h * per_step + s * actions
            for a in range(first, stop):
                if words is None or (words[word + a] >> (lane + 1)) & 1:
                    grown = _spread(
                        masses, stamps, front, visit + h + 1, grown, row + a, mass, least,
                        rows, indptr, indices, weights,
                    )  # fmt: skip
        if words is None:
            by_step[h] = paid
        size = _close(masses, stamps, front, visit + h + 1, grown, rows)
    if words is None:
        return most, most
    return (0.0 if margin < SMALLEST_EXACT else margin), smallest


@inner
def walk_block(problem, words, walk, first, rounds, block, out):
    """Detail of the rounds from ``first``, a block of which ``block`` would be the whole."""
    # Single arrays are cheaper to hand on than the whole problem, and this happens twice a round.
    shape, per_step = problem.shape, problem.per_step
    tables = problem.rows, problem.indptr, problem.indices, problem.weights
    ptr, idx, initial = problem.ptr, problem.idx, problem.initial
    for lane in range(rounds):
        t = first + lane
        visit = 1 + 2 * t * (shape[0] + 1)  # a number for every step of both walks
        if out.prices[t] > 0.0 and out.finite[t]:
            cell = out.cells[t]
            out.cell_prices[t], _ = _follow(
                shape, per_step, tables, ptr, idx, initial, None, walk, lane, block, visit, True,
                out.by_step[t], cell,
            )  # fmt: skip
            for best in range(shape[2] if cell[0] >= 0 else 0):
                if (words[(cell[0] * shape[1] + cell[1]) * shape[2] + best] >> (lane + 1)) & 1:
                    cell[3] = best
                    break
        visit += shape[0] + 1
        alone = out.vertex[t]
        out.margins[t], out.advantage_gaps[t] = _follow(
            shape, per_step, tables, ptr, idx, initial, words, walk, lane, block, visit, alone,
            out.by_step[t], out.cells[t],
        )  # fmt: skip
        out.margin_exact[t] = (alone or problem.certain) and out.margins[t] > 0.0
