"""One loss read at every state in plain floats: enough where no tie can be read in two ways.

The rule is that of the sweeps: an advantage up to the bound of `near_ties` is a tie if it is exactly zero and
alone, or beside actions of the same loss and successors; else it is in doubt.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import kernel


@kernel
def settle(loss, states, per_step, indptr, indices, weights, twins, rule, advantage, value):
    """Fill advantage [H, S, A]; value [2, S]: room. Returns (no doubt at `states`, the sum of max |V|)."""
    steps, n_states, actions = loss.shape
    floor, slope, rounding = rule
    clear, scale, met, before = True, 0.0, 0.0, 0.0
    value[:] = 0.0
    for h in range(steps - 1, -1, -1):
        here, ahead = value[h & 1], value[(h + 1) & 1]
        largest = 0.0
        for s in range(n_states):
            row = h * per_step + s * actions
            best = np.inf
            for a in range(actions):
                q = loss[h, s, a]
                if h + 1 < steps and q < np.inf:
                    for p in range(indptr[row + a], indptr[row + a + 1]):
                        q += weights[p] * ahead[indices[p]]
                advantage[h, s, a] = q
                best = min(best, q)
            here[s] = 0.0
            if best == np.inf:  # then no policy is here
                continue
            here[s] = best
            largest = max(largest, abs(best))
            upper = floor + slope * (abs(best) + met) + rounding * (abs(best) + scale)
            first = -1
            for a in range(actions):
                d = advantage[h, s, a] - best
                advantage[h, s, a] = d
                if d <= upper and states[h, s]:
                    if first < 0:
                        first = a
                    same = twins[row + a] == twins[row + first] and loss[h, s, a] == loss[h, s, first]
                    clear = clear and d == 0.0 and same
        scale, met, before = scale + largest, max(met, largest + before), largest
    return clear, scale
