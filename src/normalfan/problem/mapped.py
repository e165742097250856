"""Memory-mapped arrays that are read once from end to end.

Pages of a mapped file stay in the process's memory after they were read. A stream that is longer than memory
would fill it, so pages are handed back as soon as they have been priced; whoever reads them again finds them
in the system's file cache or on disk.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def release_pages(array: npt.NDArray[Any]) -> None:
    """Let go of the pages under `array` if a file backs them; otherwise do nothing."""
    mapped = _mapped_file(array)
    if mapped is None or not hasattr(mmap, "MADV_DONTNEED") or not array.size:
        return
    origin = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
    first, last = np.lib.array_utils.byte_bounds(array)
    # Only whole pages: their neighbours' edges stay.
    start = -(-(first - origin) // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (last - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < stop:
        mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _mapped_file(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The mapping that `array` is a view of, if letting go of its pages loses nothing.

    Copy-on-write mappings (mode "c") hold changes that are nowhere else: those are left alone.
    """
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.memmap) and owner.mode not in ("r", "r+"):
            return None
        if isinstance(owner, mmap.mmap):
            return owner
        owner = getattr(owner, "base", None)
    return None
