"""Walking one lane forward: where a price is paid, and how far the walls are.

    by_step[h] = sum_s u_h(s) A_h(s, pick),                    u the occupancy of the plan that attains W
    margin     = min over reached (h, s) of  d_h(s) * gap_h(s),    d at most the reach probability

Only states that are met are listed, step by step. Equations: docs/details/kernels.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.compiling import inner

TINIEST = 5e-324  # a rare state stays a state, though its probability is no float any more
SMALLEST_EXACT = 2.0**-1022  # products below this are rounded away; 0 is a safe bound for them


class Walk(NamedTuple):
    """Work space of the walks: what the backward sweep leaves behind, and two frontiers."""

    pick: np.ndarray  # float64 [H*S*lanes] action that attains W
    pay: np.ndarray  # float64 [H*S*lanes] its advantage
    gap: np.ndarray  # float64 [H*S*lanes] least advantage among the actions left out
    mass: np.ndarray  # float64 [2,S] weight of the states on the frontier
    front: np.ndarray  # int32 [2,S] the states on the frontier
    stamp: np.ndarray  # int64 [2,S] the visit at which a state joined the frontier


class Detail(NamedTuple):
    """Per-round outputs of the walks."""

    by_step: np.ndarray  # float64 [N,H]
    margin: np.ndarray  # float64 [N]
    margin_exact: np.ndarray  # bool [N]
    advantage_gap: np.ndarray  # float64 [N]


@inner
def _begin(walk, visit, ptr, idx, initial):
    """Put the start states on the first frontier; returns how many."""
    size = 0
    for j in range(ptr[0], ptr[1]):
        s = idx[j]
        if initial[s] > 0.0:
            walk.mass[0, s] = initial[s]
            walk.stamp[0, s] = visit
            walk.front[0, size] = s
            size += 1
    return size


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
def _add_row(masses, rows, row, mass, least):
    """A dense row at once: plain loops over all states, which the compiler turns into vectors."""
    states = len(masses)
    start = row * states
    if least:
        for s in range(states):
            path = max(mass * rows[start + s], TINIEST) if rows[start + s] > 0.0 else np.inf
            masses[s] = min(masses[s], path)
    else:
        for s in range(states):
            masses[s] += max(mass * rows[start + s], TINIEST) if rows[start + s] > 0.0 else 0.0


@inner
def _open(walk, side, least, rows):
    """Before dense rows are added to a frontier: no state on it."""
    if rows is not None:
        walk.mass[side] = np.inf if least else 0.0


@inner
def _close(walk, side, visit, size, rows):
    """After a step: list the states of a frontier in memory's order where that pays; returns its size."""
    states = walk.mass.shape[1]
    if rows is not None:
        size = 0
        for s in range(states):
            if 0.0 < walk.mass[side, s] < np.inf:
                walk.front[side, size] = s
                size += 1
    elif size * 8 > states:
        size = 0
        for s in range(states):
            if walk.stamp[side, s] == visit:
                walk.front[side, size] = s
                size += 1
    return size


@inner
def _spread(masses, stamps, front, visit, size, row, mass, least, indptr, indices, weights, rows):
    """Send the mass of one (s, a) to its successors; returns the frontier's new size."""
    if rows is not None:
        _add_row(masses, rows, row, mass, least)
        return size
    if indices is not None:
        if weights is None:
            return _move(masses, stamps, front, visit, size, indices[row], mass, least)
        for p in range(indptr[row], indptr[row + 1]):
            size = _move(masses, stamps, front, visit, size, indices[p], mass * weights[p], least)
    return size


@inner
def _follow_price(lane, count, visit, shape, per_step, tables, ptr, idx, initial, walk, by_step):
    """by_step of one lane along the actions that attain its price."""
    steps, states, actions = shape
    indptr, indices, weights, rows = tables
    size = _begin(walk, visit, ptr, idx, initial)
    for h in range(steps):
        here, ahead = h & 1, (h + 1) & 1
        masses, stamps, front = walk.mass[ahead], walk.stamp[ahead], walk.front[ahead]
        grown = 0
        paid = 0.0
        _open(walk, ahead, False, rows)
        for k in range(size):
            s = walk.front[here, k]
            mass = walk.mass[here, s]
            place = (h * states + s) * count + lane
            paid += mass * walk.pay[place]
            if h + 1 < steps:
                row = h * per_step + s * actions + np.int64(walk.pick[place])
                grown = _spread(
                    masses, stamps, front, visit + h + 1, grown, row, mass, False, indptr, indices,
                    weights, rows,
                )  # fmt: skip
        by_step[h] = paid
        size = _close(walk, ahead, visit + h + 1, grown, rows)


@inner
def _measure_margin(lane, count, visit, shape, per_step, tables, ptr, idx, initial, words, walk, least):
    """(margin, advantage gap) of one lane; ``least`` follows paths instead of masses."""
    steps, states, actions = shape
    indptr, indices, weights, rows = tables
    size = _begin(walk, visit, ptr, idx, initial)
    margin = np.inf
    smallest = np.inf
    for h in range(steps):
        here, ahead = h & 1, (h + 1) & 1
        masses, stamps, front = walk.mass[ahead], walk.stamp[ahead], walk.front[ahead]
        grown = 0
        _open(walk, ahead, least, rows)
        for k in range(size):
            s = walk.front[here, k]
            mass = walk.mass[here, s]
            gap = walk.gap[(h * states + s) * count + lane]
            smallest = min(smallest, gap)
            if gap < np.inf:
                margin = min(margin, mass * gap)
            if h + 1 == steps:
                continue
            word = (h * states + s) * actions
            row = h * per_step + s * actions
            for a in range(actions):
                if (words[word + a] >> (lane + 1)) & 1:
                    grown = _spread(
                        masses, stamps, front, visit + h + 1, grown, row + a, mass, least, indptr, indices,
                        weights, rows,
                    )  # fmt: skip
        size = _close(walk, ahead, visit + h + 1, grown, rows)
    return (0.0 if margin < SMALLEST_EXACT else margin), smallest


@inner
def walk_block(
    first,
    rounds,
    count,
    visit,
    shape,
    per_step,
    tables,
    ptr,
    idx,
    initial,
    words,
    walk,
    price,
    vertex,
    certain,
    detail,
):
    """Detail of the ``rounds`` lanes of a block; returns the next unused visit number.

    ``certain``: nothing is left to chance, neither the start nor any move.
    """
    steps = shape[0]
    for lane in range(rounds):
        t = first + lane
        if price[t] > 0.0:
            _follow_price(
                lane,
                count,
                visit,
                shape,
                per_step,
                tables,
                ptr,
                idx,
                initial,
                walk,
                detail.by_step[t],
            )
            visit += steps + 1
        else:
            detail.by_step[t] = 0.0
        alone = vertex[t]
        detail.margin[t], detail.advantage_gap[t] = _measure_margin(
            lane, count, visit, shape, per_step, tables, ptr, idx, initial, words, walk, not alone
        )
        visit += steps + 1
        detail.margin_exact[t] = (alone or certain) and detail.margin[t] > 0.0
    return visit
