"""What the marks of two carefully read losses leave open: the faces, and the price of the crossing."""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import inner, kernel
from normalfan._kernels.reading import OUT, SURE


@kernel
def follow_marks(marks, initial, per_step, indptr, indices, reached, faces):
    """The marks of what is done by a policy: faces [H, S, A]; reached [2, S]: this layer and the next.

    SURE: led to by sure actions alone; DOUBTFUL: led to if some doubtful ones are optimal.
    """
    steps, states, actions = marks.shape
    reached[0] = OUT
    for s in range(states):
        if initial[s] > 0.0:
            reached[0, s] = SURE
    for h in range(steps):
        here, ahead = reached[h & 1], reached[(h + 1) & 1]
        ahead[:] = OUT
        for s in range(states):
            if here[s] == OUT:
                continue
            row = h * per_step + s * actions
            for a in range(actions):
                found = min(here[s], marks[h, s, a])
                faces[h, s, a] = found
                if found != OUT:
                    for p in range(indptr[row + a], indptr[row + a + 1]):
                        ahead[indices[p]] = max(ahead[indices[p]], found)


@kernel
def extreme_prices(marks, low, high, initial, per_step, indptr, indices, weights, reached, ahead):
    """The least and the largest price, in advantages from `low` to `high`.

    reached [H, S] and ahead [2, S, 2] are room.
    """
    _follow_marked(marks, initial, per_step, indptr, indices, reached)
    if _back(marks, low, high, per_step, indptr, indices, weights, reached, ahead):
        reached[:] = True
        _back(marks, low, high, per_step, indptr, indices, weights, reached, ahead)
    lowest, highest = 0.0, 0.0
    for s in range(len(initial)):
        if initial[s] > 0.0:
            lowest += initial[s] * ahead[0, s, 0]
            highest += initial[s] * ahead[0, s, 1]
    return lowest, highest


@inner
def _follow_marked(marks, initial, per_step, indptr, indices, reached):
    """The states that marked actions lead to: few, as a rule."""
    steps, states, actions = marks.shape
    reached[:] = False
    for s in range(states):
        reached[0, s] = initial[s] > 0.0
    for h in range(steps - 1):
        for s in range(states):
            if not reached[h, s]:
                continue
            row = h * per_step + s * actions
            for a in range(actions):
                if marks[h, s, a] != OUT:
                    for p in range(indptr[row + a], indptr[row + a + 1]):
                        reached[h + 1, indices[p]] = True


@inner
def _back(marks, low, high, per_step, indptr, indices, weights, reached, ahead):
    """The extremes of the states that are reached; whether these may have to leave what is marked."""
    steps, states, actions = marks.shape
    ahead[steps & 1] = 0.0
    any_lost = False
    for h in range(steps - 1, -1, -1):
        here, onward = ahead[h & 1], ahead[(h + 1) & 1]
        for s in range(states):
            if reached[h, s]:
                row = h * per_step + s * actions
                here[s, 0], here[s, 1], is_lost = _extremes(
                    h, s, row, marks, low, high, indptr, indices, weights, onward
                )
                any_lost = any_lost or is_lost
    return any_lost


@inner
def _extremes(h, s, row, marks, low, high, indptr, indices, weights, onward):
    """The least and the largest price from one state on; whether nothing marked may be allowed any more."""
    least_kept, least_sure, most_kept = np.inf, np.inf, -np.inf
    least_allowed, most_allowed = np.inf, np.inf
    any_sure, any_kept, any_closed = False, False, False
    for a in range(marks.shape[2]):
        mark, least, most = marks[h, s, a], low[h, s, a], high[h, s, a]
        if least == np.inf:  # not allowed
            any_closed = any_closed or mark != OUT
            continue
        for p in range(indptr[row + a], indptr[row + a + 1]):
            least += weights[p] * onward[indices[p], 0]
            most += weights[p] * onward[indices[p], 1]
        least_allowed, most_allowed = min(least_allowed, least), min(most_allowed, most)
        if mark != OUT:
            any_kept = True
            least_kept, most_kept = min(least_kept, least), max(most_kept, most)
        if mark == SURE:
            any_sure = True
            least_sure = min(least_sure, most)
    # In some reading nothing that was kept may be allowed any more: then all that is allowed counts.
    is_lost = (any_closed and not any_sure) or not any_kept
    if least_allowed == np.inf:  # then no policy is here
        return 0.0, 0.0, is_lost
    least = least_allowed if is_lost else least_kept
    return least, least_sure if any_sure else most_kept if any_kept else most_allowed, is_lost
