"""The cell at which a plan that is kept pays most: one crossing, from the advantages of its two losses.

The cheapest plan of the old face (old advantages 0) is found backward, and followed forward from the start.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.compiling import kernel


@kernel
def costliest_cell(old, new, initial, per_step, indptr, indices, weights, values, picks, mass):
    """(step, state, action, paid) of the first cell that pays most; values and mass [2,S], picks [H,S]."""
    steps, states, actions = new.shape
    values[steps & 1] = 0.0
    for h in range(steps - 1, -1, -1):
        ahead = values[(h + 1) & 1]
        for s in range(states):
            best, pick = np.inf, -1
            for a in range(actions):
                if old[h, s, a] == 0.0:
                    row = h * per_step + s * actions + a
                    cost = new[h, s, a]
                    for p in range(indptr[row], indptr[row + 1]):
                        cost += weights[p] * ahead[indices[p]]
                    if cost < best:
                        best, pick = cost, a
            values[h & 1, s] = best if pick >= 0 else 0.0
            picks[h, s] = pick
    cell = (0, 0, 0, 0.0)
    mass[0] = initial
    for h in range(steps):
        here, ahead = mass[h & 1], mass[(h + 1) & 1]
        ahead[:] = 0.0
        for s in range(states):
            a = picks[h, s]
            if here[s] > 0.0 and a >= 0:
                paid = here[s] * new[h, s, a]
                if paid > cell[3]:
                    cell = (h, s, a, paid)
                row = h * per_step + s * actions + a
                for p in range(indptr[row], indptr[row + 1]):
                    ahead[indices[p]] += here[s] * weights[p]
    return cell
