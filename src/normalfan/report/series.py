"""Long series, thinned so that a page stays small and no peak is lost.

A chart is about a thousand pixels wide. A series of more than `MOST_POINTS` rounds is cut into bins, and of
each bin its least and its largest entry stay: the outline is that of the whole series.

    >>> kept = outline(np.array([0.0, 5.0, 1.0, 2.0, 2.0, 9.0]), most=4)
    >>> kept
    array([0, 1, 3, 5])
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from normalfan.problem.arrays import FloatArray, IntArray

MOST_POINTS = 5000

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")


def outline(column: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """The indices to draw, ascending: all of them, or of each of most/2 bins a least and a largest entry."""
    if len(column) <= most:
        return np.arange(len(column))
    edges = np.linspace(0, len(column), most // 2 + 1).astype(np.int64)
    kept = [
        start + pick
        for start, end in pairwise(edges.tolist())
        for pick in (int(column[start:end].argmin()), int(column[start:end].argmax()))
    ]
    return np.unique(kept)


def are_dates(names: Sequence[str] | None) -> bool:
    """Whether names of rounds are ISO dates in order, so that a time axis can carry them."""
    if not names or any(not _DATE.fullmatch(name) for name in names):
        return False
    return all(earlier < later for earlier, later in pairwise(names))


def rounded(numbers: Any) -> Any:
    """Numbers as JSON says them: six digits, None for what is not finite, lists for arrays."""
    if isinstance(numbers, np.ndarray | list | tuple):
        return [rounded(number) for number in numbers]
    number = float(numbers)
    return float(f"{number:.6g}") if np.isfinite(number) else None
