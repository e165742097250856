"""Faces of a whole block of rounds at once: bit i + 1 of a word for lane i, bit 0 for the round before.

    reach_0(s) = [rho(s) > 0],   kept_h(s, a) = tied_h(s, a) and reach_h(s),
    reach_{h+1}(s') = or of kept_h(s, a) over the (s, a) that can lead to s'.

``planes[p]`` holds bit p of the counters of all lanes. More: docs/details/kernels.md.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import inner

#: Planes of the bit-sliced counters; a count below 2**40 always fits.
PLANES = 40


@inner
def count_lanes(planes, word):
    """Add one to the counter of every lane whose bit is set."""
    p = 0
    while word != 0:
        overflow = planes[p] & word
        planes[p] ^= word
        word = overflow
        p += 1


@inner
def _reach_dense_row(ahead, kept, row, rows):
    states = len(ahead)
    everywhere = np.int64(-1)
    for s in range(states):
        if rows[row * states + s] > 0.0:
            ahead[s] |= kept
        everywhere &= ahead[s]
    return everywhere


@inner
def _reach_row(ahead, kept, row, indptr, indices, rows, everywhere):
    """Reach the successors of one (s, a) in the rounds ``kept``; returns those that reached every state."""
    if rows is not None:
        return _reach_dense_row(ahead, kept, row, rows)
    if indices is not None:
        if indptr is None:
            ahead[indices[row]] |= kept
        else:
            for p in range(indptr[row], indptr[row + 1]):
                ahead[indices[p]] |= kept
    return everywhere


@inner
def keep_faces(words, reach, planes, ptr, idx, initial, shape, per_step, indptr, indices, rows, every):
    """One forward pass; returns (lanes that crossed, lanes with a choice somewhere).

    ``reach`` is two rows of S words, zero on entry and zero again on exit. The first
    result is aligned with the lanes (bit i), the second with the words (bit i + 1).
    """
    steps, states, actions = shape
    changed = np.int64(0)
    choices = np.int64(0)
    planes[:] = 0
    for j in range(ptr[0], ptr[1]):
        reach[0, idx[j]] = every if initial[idx[j]] > 0.0 else 0
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
            row = h * per_step + s * actions
            for a in range(actions):
                kept = np.int64(words[word + a]) & reached
                if kept == 0:
                    continue
                changed |= kept ^ (kept >> 1)
                again = seen & kept
                seen |= kept
                if again != 0:
                    choices |= again
                    count_lanes(planes, again)
                if h + 1 < steps and kept & ~everywhere:
                    everywhere = _reach_row(ahead, kept, row + a, indptr, indices, rows, everywhere)
    return changed, choices


@inner
def face_facts(first, count, changed, choices, planes, crossed, vertex, dimension):
    """Unpack the facts of ``count`` lanes into the rounds from ``first``."""
    for i in range(count):
        crossed[first + i] = (changed >> i) & 1 == 1
        vertex[first + i] = (choices >> (i + 1)) & 1 == 0
        total = np.int64(0)
        for p in range(PLANES):
            total += ((planes[p] >> (i + 1)) & 1) << p
        dimension[first + i] = total
