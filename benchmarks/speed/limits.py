"""What the machine allows: the rate at which one core reads memory, and multiplies matrices."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def seconds(
    work: Callable[[], object], repetitions: int, clock: Callable[[], float] = time.process_time
) -> float:
    """The best of several runs: what disturbs a run only ever makes it slower.

    Work on one thread is timed by what the processor spends on it: others may use the machine meanwhile.
    """
    best = np.inf
    for _ in range(repetitions):
        start = clock()
        work()
        best = min(best, clock() - start)
    return float(best)


def memory_rate() -> float:
    """Bytes per second that one core reads from main memory, in order."""
    return _summing_rate(2**28, 5)


def cache_rate() -> float:
    """Bytes per second that one core reads from the last cache (an array of 4 MiB), in order."""
    return _summing_rate(2**22, 50)


def _summing_rate(size: int, repetitions: int) -> float:
    numbers = np.ones(size // 8)
    return float(numbers.nbytes / seconds(numbers.sum, repetitions))


def product_rate() -> float:
    """Floating-point operations per second of NumPy's matrix product, on as many threads as it may."""
    size = 1200
    matrix = np.ones((size, size))
    return float(2 * size**3 / seconds(lambda: matrix @ matrix, 5))
