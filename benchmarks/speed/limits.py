"""What the machine allows: the rates at which it reads memory, adds up numbers, and multiplies matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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


def reading_rate(threads: int) -> float:
    """Bytes per second that so many threads together read from main memory, each a part of its own in order.

    By the product of numbers with themselves: BLAS works on one thread here, and outruns memory.
    """
    numbers = np.ones(2**28 // 8)
    parts = np.array_split(numbers, threads)
    with ThreadPoolExecutor(threads) as pool:
        taken = seconds(lambda: list(pool.map(np.dot, parts, parts)), 9, time.perf_counter)
    return float(numbers.nbytes / taken)


def memory_sum_rate() -> float:
    """Bytes per second that NumPy's sum reads from main memory, in order."""
    return _summing_rate(2**28, 5)


def cache_sum_rate() -> float:
    """Bytes per second that NumPy's sum reads from the last cache (an array of 4 MiB), in order."""
    return _summing_rate(2**22, 50)


def _summing_rate(size: int, repetitions: int) -> float:
    numbers = np.ones(size // 8)
    return float(numbers.nbytes / seconds(numbers.sum, repetitions))


def product_rate() -> float:
    """Floating-point operations per second of NumPy's matrix product, on as many threads as it may."""
    size = 1200
    matrix = np.ones((size, size))
    return float(2 * size**3 / seconds(lambda: matrix @ matrix, 5))
