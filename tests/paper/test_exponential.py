"""The kernels' exponential is within two units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from normalfan._kernels.compiling import inner
from normalfan._kernels.memory import load, store
from normalfan_paper._kernels.exponential import exponential, weight


@inner
def _apply(function, x, out):
    for k in range(0, len(x), 8):
        store(out, k, function(load(x, k)))


def applied(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    padded = np.append(x, np.zeros(-len(x) % 8))
    out = np.empty_like(padded)
    _apply(function, padded, out)
    return out[: len(x)]


@pytest.mark.parametrize(
    "interval", [(-760, 720), (-1, 1), (-0.35, 0.35), (-1e-9, 1e-9), (709.7, 709.79), (-746, -699)]
)
def test_exponential_is_within_two_ulp(interval: tuple[float, float], rng: np.random.Generator) -> None:
    x = rng.uniform(*interval, 50_000)
    ours = applied(exponential, x)
    with np.errstate(over="ignore", under="ignore"):
        theirs = np.exp(x)
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(np.isinf(ours), ~finite)
    assert (np.abs(ours[finite] - theirs[finite]) <= 2 * np.spacing(theirs[finite])).all()


def test_exponential_at_the_ends() -> None:
    largest = np.log(np.finfo(float).max)
    x = np.array([0.0, -0.0, np.inf, -np.inf, 710.0, -746.0, -1e300, 1e300, largest, -745.13, np.nan])
    ours = applied(exponential, x)
    np.testing.assert_array_equal(ours[:8], [1, 1, np.inf, 0, np.inf, 0, 0, np.inf])
    assert np.isfinite(ours[8])
    assert ours[9] == 5e-324
    assert np.isnan(ours[10])


def test_weight_is_the_exponential_of_what_is_not_positive(rng: np.random.Generator) -> None:
    x = -rng.uniform(0, 699, 10_000)
    np.testing.assert_array_equal(applied(weight, x), applied(exponential, x))
    np.testing.assert_array_equal(applied(weight, np.array([0.0, -701.0, -1e300, -np.inf])), [1, 0, 0, 0])
