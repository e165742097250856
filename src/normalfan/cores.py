"""How many cores this process may use, and how many threads one call."""

from __future__ import annotations

import os


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """A thread for each core, or fewer if OMP_NUM_THREADS says so, as it does to linear algebra."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(usable_cores(), max(1, int(limit))) if limit.isdecimal() else usable_cores()
