"""A step of exponential weights, the largest whose relative entropy stays within a radius.

The step is π_x ∝ π exp(−x·gap), gap = Q − min Q. Its divergence from π, or of π from it, increases with x: of
each state, or of all states weighted together. Arrays are flat, the entry of a row and an action at
row·A + a, a row for every step and state.
"""

from __future__ import annotations

import math

import numpy as np

from normalfan._kernels.buffers import frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.memory import item
from normalfan._kernels.playing import as_policy

ACCURACY = 1e-12  # of a binding divergence, relative to the radius (logs beyond 1e4 allow less)
MOST_TRIALS = 500


@inlined
def _charged(log, gap, x):
    """The log after the step; an infinite one costs nothing without a gap."""
    return log - x * gap if gap > 0.0 else log


@inner
def _divergence(logs, gaps, weights, first, end, actions, x, backward):
    """The weighted KL of the rows from `first` to `end`, and its derivative by x."""
    divergence = slope = 0.0
    for row in range(first, end):
        weight, cells = item(weights, row), range(row * actions, (row + 1) * actions)
        if weight == 0.0:  # never visited, it weighs nothing, however far it moves
            continue
        top = -np.inf
        for i in cells:
            top = max(top, _charged(item(logs, i), item(gaps, i), x))
        mass = 0.0
        for i in cells:
            mass += math.exp(_charged(item(logs, i), item(gaps, i), x) - top)
        # In two shifts: one at once would leave large logs a sum that is off in its digits.
        shift = math.log(mass)
        mean = spent = spread = before = 0.0
        for i in cells:
            log, gap = item(logs, i), item(gaps, i)
            moved = _charged(log, gap, x) - top - shift
            old, new = math.exp(log), math.exp(moved)
            mean += new * gap
            before += old * gap
            if backward and old > 0.0:
                spent += old * (log - moved)
            if not backward and new > 0.0:
                spent += new * (moved - log)
        if not backward:
            for i in cells:
                new = math.exp(_charged(item(logs, i), item(gaps, i), x) - top - shift)
                spread += new * (item(gaps, i) - mean) ** 2
        divergence += weight * max(spent, 0.0)
        slope += weight * (before - mean if backward else spread)
    return divergence, slope if backward or slope == 0.0 else x * slope


@inner
def _root(logs, gaps, weights, first, end, actions, eta, radius, backward):
    """The x in (0, eta) at which the divergence equals the radius."""
    # Newton's method on its square root, nearly linear in x at first, kept inside a bracket: a step that
    # would leave the bracket is replaced by bisection of log x, or by doubling while it has no upper end.
    # Divergence grows at most by the largest gap per unit of x, so this is a lower end.
    furthest = 0.0
    for row in range(first, end):
        largest = 0.0
        for i in range(row * actions, (row + 1) * actions):
            largest = max(largest, item(gaps, i))
        furthest += item(weights, row) * largest
    x = low = radius / furthest
    high = eta
    for _ in range(MOST_TRIALS):
        divergence, slope = _divergence(logs, gaps, weights, first, end, actions, x, backward)
        if abs(divergence - radius) <= ACCURACY * radius:
            return x
        if divergence <= radius:
            low = x
        else:
            high = x
        if high <= np.nextafter(low, np.inf):
            break
        root = math.sqrt(divergence)
        # Where the slope has underflowed this is no number in (low, high), which is all it is asked.
        x += 2.0 * root * (math.sqrt(radius) - root) / slope
        if not low < x < high:
            x = 2.0 * low if high == np.inf else math.sqrt(low * high)
    return low


@kernel
def _trust(logs, q, slack, weights, actions, eta, radius, per_state, backward, moved):
    rows = len(slack)
    old, gaps = np.empty(len(logs)), np.empty(len(logs))
    for row in range(rows):
        cells = range(row * actions, (row + 1) * actions)
        # The least among the actions still in play; differences of rounding are none.
        least, top, mass = np.inf, -np.inf, 0.0
        for i in cells:
            top = max(top, item(logs, i))
            least = min(least, item(q, i) if item(logs, i) > -np.inf else np.inf)
        for i in cells:
            mass += math.exp(item(logs, i) - top)
        for i in cells:
            old[i] = item(logs, i) - top - math.log(mass)
            gaps[i] = item(q, i) - least
            if gaps[i] <= item(slack, row):
                gaps[i] = 0.0
    size = 1 if per_state else rows
    for first in range(0, rows, size):
        x, end = eta, first + size
        divergence, _ = _divergence(old, gaps, weights, first, end, actions, eta, backward)
        if divergence > radius * (1.0 + ACCURACY):
            x = _root(old, gaps, weights, first, end, actions, eta, radius, backward)
        for i in range(first * actions, end * actions):
            moved[i] = _charged(old[i], gaps[i], x)


def trust_step(
    logs: np.ndarray,
    q: np.ndarray,
    slack: np.ndarray,
    weights: np.ndarray | None,
    eta: float,
    radius: float,
    floor: float,
    *,
    backward: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """From the logs [H, S, A] of weights to those after the largest step x ≤ η, and these as a policy.

    Gaps of Q up to `slack` [H, S] are none. Every state has the radius for itself, or all have it together,
    by `weights` [H, S]. ``backward`` is KL(old ‖ new).
    """
    moved = np.empty(logs.shape)
    scales = np.ones(slack.shape) if weights is None else weights
    numbers = (frozen(array, np.float64) for array in (logs, q, slack, scales))
    _trust(*numbers, logs.shape[2], eta, radius, weights is None, backward, moved.reshape(-1))
    return as_policy(moved, floor)
