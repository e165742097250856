"""The walk over the faces of dense problems: where prices are paid, how far the walls are, as in `forward`.

A mass goes to all states, so it is added along the rows that its round keeps (see `kept_rows`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import ALL
from normalfan._kernels.compiling import inner
from normalfan._kernels.forward import (
    PLANES,
    costlier,
    follow_choices,
    keep_step,
    least_paths,
    nearer,
    paying_rounds,
    start_reach,
    tell_cells,
    tell_faces,
    tell_margins,
    tell_step,
)
from normalfan._kernels.kept_rows import add_kept, keep_row
from normalfan._kernels.lanes import LANES, mask_of, shifted, zero_lanes
from normalfan._kernels.memory import gather, load, store

BLOCK = 56  # rounds: whole groups of lanes, and one bit to spare in a signed word


class Masses(NamedTuple):
    """Work space of the walk over the faces of a block."""

    here: np.ndarray  # float64 [BLOCK*S] of each round, at the step at hand
    ahead: np.ndarray  # the same, at the next
    reach: np.ndarray  # int64 [2,S] the rounds that reach a state
    found: np.ndarray  # float64 [4*BLOCK] margin, least gap, most paid at a cell, and that cell


@inner
def _visit(problem, h, t, reach, masses, walk, found, wanted, first, out):
    """Margins of LANES rounds at one step, and what those after them pay."""
    states = problem.shape[1]
    paid = zero_lanes()
    margin, smallest = load(found, t), load(found, BLOCK + t)
    most, spot = load(found, 2 * BLOCK + t), load(found, 3 * BLOCK + t)
    for j in range(problem.ptr[h], problem.ptr[h + 1]):
        s = np.int64(problem.idx[j])
        reached = reach[s] >> t
        if reached & (2 * ALL + 1) == 0:
            continue
        place = h * walk.stride + s * walk.width + t
        m = gather(masses.ctypes.data + 8 * (t * states + s), 8 * states, LANES - 1, 0.0)
        before = masses[(t - 1) * states + s] if t > 0 else walk.carry[h * states + s]
        margin, smallest = nearer(reached >> 1, m, load(walk.gap, place), margin, smallest)
        pay = load(walk.pay, place)
        part = shifted(m, before if reached & 1 else 0.0) * pay
        paid = paid + part
        most, spot = costlier(mask_of(reached), pay, part, h * states + s, most, spot)
    store(found, t, margin)
    store(found, BLOCK + t, smallest)
    store(found, 2 * BLOCK + t, most)
    store(found, 3 * BLOCK + t, spot)
    tell_step(paid, wanted >> t & ALL, first + t, h, walk, out)


@inner
def _send(problem, h, words, reach, kept, here, ahead):
    """The masses of the next step, from a few states at a time."""
    _, states, actions = problem.shape
    ahead[:] = 0.0
    listed = 0
    for j in range(problem.ptr[h], problem.ptr[h + 1]):
        s = np.int64(problem.idx[j])
        if listed + actions > kept.most:
            add_kept(problem.rows, kept, here, ahead)
            listed = 0
        listed += actions
        for a in range(actions):
            rounds = (words[(h * states + s) * actions + a] & reach[s]) >> 1
            keep_row(kept, rounds, h * problem.per_step + s * actions + a, s)
    add_kept(problem.rows, kept, here, ahead)


@inner
def weigh_dense_faces(problem, given, words, masses, kept, walk, first, rounds, freed, out):
    """`forward.weigh_faces` of a block: there masses move in lanes, here along the rows, round by round."""
    steps, states, _ = problem.shape
    here, ahead = masses.here, masses.ahead
    tally = np.zeros(2 + PLANES, np.int64)
    wanted = paying_rounds(first, rounds, out)
    start_reach(problem, masses.reach[0], rounds)
    for t in range(BLOCK):
        here[t * states : (t + 1) * states] = problem.initial
    masses.found[: 2 * BLOCK] = np.inf
    masses.found[2 * BLOCK :] = -1.0
    for h in range(steps):
        reach = masses.reach[h & 1]
        for t in range(0, rounds, LANES):
            _visit(problem, h, t, reach, here, walk, masses.found, wanted, first, out)
        walk.carry[h * states : (h + 1) * states] = here[(BLOCK - 1) * states :]
        if h + 1 < steps:
            _send(problem, h, words, reach, kept, here, ahead)
        keep_step(problem, words, h, reach, masses.reach[(h + 1) & 1], tally)
        here, ahead = ahead, here
    tell_faces(tally, first, rounds, out)
    strayed = wanted & (tally[1] | freed)
    for t in range(0, rounds, LANES):
        valid = min(LANES, rounds - t)
        most, spot = load(masses.found, 2 * BLOCK + t), load(masses.found, 3 * BLOCK + t)
        tell_cells(problem, given, words, t, wanted >> t & ALL, most, spot, first + t, walk, out)
        margin, smallest = load(masses.found, t), load(masses.found, BLOCK + t)
        tell_margins(problem, margin, smallest, first + t, valid, walk, out)
        chosen = strayed >> t & ALL
        if chosen:
            follow_choices(
                problem, problem.rows, None, None, None, given, words, walk, t, first + t, chosen, out
            )
        several = tally[1] >> (t + 1) & ((1 << valid) - 1)
        if several and not problem.certain:
            least_paths(problem, problem.rows, None, None, None, words, walk, t, first + t, several, out)
