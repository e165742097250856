"""How far losses move, L1, the square of L2, L∞, where that is not added up as states are priced.

That is where no policy comes; if these states are many, or states are not priced one by one, all losses of a
block are read before it is priced, in the order in which they lie, as fast as memory can be read. Where those
of a round lie side by side, lanes are eight numbers of a round, not eight rounds: number k of all H*S*A goes
to lane k mod LANES. In other layouts lanes are rounds, as in sweeps, but sums go the same way: to the bit.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import inner
from normalfan._kernels.lanes import LANES, absolute, fma, least, maximum, shifted, total, zero_lanes
from normalfan._kernels.losses import loss_at, one_loss
from normalfan._kernels.memory import load, store
from normalfan._kernels.tiles import add_distances

NORMS = 3 * LANES  # what is kept of a round


@inner
def read_moves(problem, given, first, rounds, everywhere, norms, out):
    """How far the losses of at most LANES rounds moved, everywhere or where no policy comes.

    ``norms`` is zero before and after.
    """
    steps, states, actions = problem.shape
    ptr = problem.ptr
    in_rows = given.strides[3] == given.size and given.strides[2] == actions * given.size
    if everywhere and in_rows and given.strides[1] == states * given.strides[2]:
        _add_rows(given, problem.shape, first, rounds, 0, 0, steps * states, norms)
    else:
        for h in range(steps):
            begin = np.int64(0)
            for j in range(ptr[h + 1] if everywhere else ptr[h], ptr[h + 1] + 1):
                end = states if j == ptr[h + 1] else np.int64(problem.idx[j])
                if begin < end and in_rows:
                    _add_rows(given, problem.shape, first, rounds, h, begin, end, norms)
                elif begin < end:
                    _add_lanes(given, problem.shape, first, rounds, h, begin, end, norms)
                begin = end + 1
        if not in_rows:
            _turn(norms)
    for i in range(rounds):
        place = i * NORMS
        out.variations[first + i, 0] = total(load(norms, place))
        out.variations[first + i, 1] = total(load(norms, place + LANES))
        out.variations[first + i, 2] = -least(zero_lanes() - load(norms, place + 2 * LANES))
    norms[:] = 0.0


@inner
def _add_rows(given, shape, first, rounds, h, begin, end, norms):
    """Add the moves in states from ``begin`` to ``end``, whose losses lie side by side."""
    _, states, actions = shape
    t0, t1, t2, _ = given.strides
    place = given.address + first * t0 + h * t1 + begin * t2
    before = place - t0 if first > 0 else place
    lane = (h * states + begin) * actions % LANES
    add_distances(before, place, t0, rounds - 1, lane, (end - begin) * actions, given.unit, norms)


@inner
def _add_lanes(given, shape, first, rounds, h, begin, end, norms):
    """The same in any layout, rounds as lanes, and what is a lane there apart."""
    _, states, actions = shape
    lane = (h * states + begin) * actions % LANES
    for s in range(begin, end):
        for a in range(actions):
            loss = one_loss(given, first, rounds - 1, h, s, a)
            d = absolute(loss - shifted(loss, loss_at(given, max(first - 1, 0), h, s, a)))
            place = lane * NORMS
            store(norms, place, load(norms, place) + d)
            store(norms, place + LANES, fma(d, d, load(norms, place + LANES)))
            store(norms, place + 2 * LANES, maximum(d, load(norms, place + 2 * LANES)))
            lane = (lane + 1) % LANES


@inner
def _turn(norms):
    """Lanes of rounds, for every LANES-th number, become lanes of numbers, for each round."""
    for i in range(LANES):
        for j in range(i):
            for k in range(0, NORMS, LANES):
                one, other = i * NORMS + k + j, j * NORMS + k + i
                norms[one], norms[other] = norms[other], norms[one]
