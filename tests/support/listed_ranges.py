"""Ranges by enumeration: a tiny factored problem, the exposures of all its plans, and answers in fractions.

Nothing is shared with the package. Probabilities are dyadic and everything else is whole, so that floats hold
the numbers exactly and a tie is a tie. A plan is a line, or a plane, over coefficients; answers are read off
the list of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from listed_policies import Problem as Listed
from listed_policies import all_occupancies, dyadic_rows

import normalfan as nf

INF = float("inf")
Vector = tuple[Fraction, ...]
Polygon = list[tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class Factored:
    mdp: nf.MDP
    features: np.ndarray  # [K, H, S, A]
    theta: np.ndarray  # [K]
    exposures: list[Vector]  # of every deterministic policy that is allowed, each once

    @property
    def losses(self) -> nf.FactoredLosses:
        return nf.FactoredLosses(self.theta[None], self.features)

    def cost(self, x: Vector) -> Fraction:
        return sum((Fraction(t) * e for t, e in zip(self.theta.tolist(), x, strict=True)), Fraction(0))

    def optimal(self) -> list[Vector]:
        least = min(map(self.cost, self.exposures))
        return [x for x in self.exposures if self.cost(x) == least]


def factored_problem(seed: int) -> Factored:
    rng = np.random.default_rng([seed, 14])
    while True:
        H, S, A = (int(n) for n in rng.integers(1, 4, size=3))
        if A ** (H * S) <= 600:
            break
    certain = seed % 4 == 0
    kernel = dyadic_rows(rng, H * S * A, S).reshape(H, S, A, S)
    start = dyadic_rows(rng, 1, S)[0]
    if certain:
        kernel, start = np.eye(S)[kernel.argmax(axis=-1)], np.eye(S)[int(rng.integers(S))]
    count = int(rng.integers(1, 5))
    features = rng.integers(-2, 3, size=(count, H, S, A)).astype(float)
    for k in range(1, count):  # some act at one step, some have no effect, some hardly any
        if rng.random() < 0.4:
            features[k, np.arange(H) != rng.integers(H)] = 0.0
        if rng.random() < 0.15:
            features[k] = np.arange(H)[:, None, None]
    features[0] *= rng.random(features[0].shape) < 0.5
    theta = rng.integers(-2, 4, size=count).astype(float) * (rng.random(count) < 0.7)
    allowed = None
    if seed % 5 == 0:
        allowed = rng.random((H, S, A)) < 0.7
        allowed[:, :, 0] |= ~allowed.any(axis=2)
    visits = all_occupancies(Listed(kernel, start, features[0]))
    if allowed is not None:
        visits = visits[~visits[:, ~allowed].any(axis=1)]
    taken = np.unique(np.tensordot(visits, features, axes=([1, 2, 3], [1, 2, 3])), axis=0)
    transitions = kernel.argmax(axis=-1) if certain and seed % 8 == 0 else kernel
    if seed % 3 == 1 and not (certain and seed % 8 == 0):
        from scipy.sparse import csr_array

        transitions = [csr_array(one) for one in kernel.reshape(H, -1, S)]
    mdp = nf.MDP(transitions, start, allowed=allowed)
    return Factored(mdp, features, theta, [tuple(map(Fraction, row)) for row in taken.tolist()])


def end(problem: Factored, kept: Vector, k: int, sign: int, tolerance: Fraction) -> Fraction | float:
    """How far coefficient k may go before one plan costs more than the tolerance."""
    room = [
        (tolerance + problem.cost(x) - problem.cost(kept)) / (sign * (kept[k] - x[k]))
        for x in problem.exposures
        if sign * (kept[k] - x[k]) > 0
    ]
    return min(room, default=INF)


def interval(problem: Factored, k: int, tolerance: Fraction) -> tuple[float, float]:
    """Where some plan that is optimal today costs at most the tolerance."""
    plans, now = problem.optimal(), Fraction(problem.theta[k])
    down, up = (max(end(problem, x, k, sign, tolerance) for x in plans) for sign in (-1, 1))
    return float(now - down), float(now + up)


def bends(problem: Factored, k: int, low: Fraction, high: Fraction) -> list[Fraction]:
    """The moves of coefficient k at which the lower envelope of all plans bends."""
    lines = {(problem.cost(x), x[k]) for x in problem.exposures}
    found = set()
    for (c, g), (d, e) in combinations(lines, 2):
        if g != e:
            t = (c - d) / (e - g)
            if low < t < high and c + g * t == min(a + b * t for a, b in lines):
                found.add(t)
    return sorted(found)


def clipped(polygon: Polygon, gx: Fraction, gy: Fraction, most: Fraction) -> Polygon:
    over = [gx * x + gy * y - most for x, y in polygon]
    left: Polygon = []
    for i, (x, y) in enumerate(polygon):
        j = (i + 1) % len(polygon)
        if over[i] <= 0:
            left.append((x, y))
        if over[i] * over[j] < 0:
            share = over[i] / (over[i] - over[j])
            left.append((x + share * (polygon[j][0] - x), y + share * (polygon[j][1] - y)))
    return left


def area(polygon: Polygon) -> Fraction:
    around = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return sum((x * v - u * y for (x, y), (u, v) in around), Fraction(0)) / 2


def cell(problem: Factored, kept: Vector, axes: tuple[int, int], half: int, tolerance: Fraction) -> Polygon:
    """Where, in a square around now, one plan costs at most the tolerance."""
    w = Fraction(half)
    polygon: Polygon = [(-w, -w), (w, -w), (w, w), (-w, w)]
    i, j = axes
    for x in problem.exposures:
        room = tolerance + problem.cost(x) - problem.cost(kept)
        polygon = clipped(polygon, kept[i] - x[i], kept[j] - x[j], room)
        if not polygon:
            break
    return polygon
