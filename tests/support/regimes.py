"""Losses in the regimes where floats are hard; what they mean exactly is up to exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from problems import random_problem

import normalfan as nf

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]

DRAWS: dict[str, Draw] = {
    "whole numbers": lambda _, x: x,
    "tenths": lambda _, x: x / 10,
    "one ulp apart": lambda rng, x: _ulps(x / 10, rng.integers(-2, 3, x.shape)),
    "1e-14 to 1e2 mixed": lambda rng, x: x * 10.0 ** rng.uniform(-14, 2, x.shape),
    "near-ties": lambda rng, x: x + 10.0 ** rng.uniform(-17, -9) * rng.integers(-1, 2, x.shape),
    "offset 1e9": lambda _, x: x / 10 + 1e9,
    "pits of 1e9": lambda rng, x: x / 10 + 1e9 * (rng.random(x.shape) < 0.2),
    "near 1e300": lambda rng, x: 1e300 * x * rng.choice([1.0, 1 / 3], x.shape),
    "near 1e-300": lambda rng, x: 1e-300 * x * rng.choice([1.0, 1 / 3], x.shape),
    "subnormal": lambda rng, x: 5e-324 * x * rng.integers(1, 9, x.shape),
}


def _ulps(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    return x + count * np.spacing(x)


def random_stream(regime: str, rng: np.random.Generator) -> tuple[nf.MDP, np.ndarray]:
    """A small random problem in any representation, and some rounds of losses [T, H, S, A]."""
    problem = random_problem(rng)
    mdp = problem.mdp(str(rng.choice(problem.kinds())))
    return mdp, np.ascontiguousarray(DRAWS[regime](rng, problem.losses.astype(float)))


def long_stream(rng: np.random.Generator, unit: int) -> tuple[nf.MDP, np.ndarray]:
    """A chain of up to 1000 steps whose losses are multiples of 1/unit, offset by up to 1e9 a step."""
    horizon = int(rng.integers(200, 1001))
    mdp = nf.MDP(rng.integers(3, size=(3, 2)), 0, horizon)
    steps = rng.integers(0, 5, size=(2, horizon, 3, 2)) / unit
    return mdp, steps + rng.choice([0.0, 1e5, 1e9])
