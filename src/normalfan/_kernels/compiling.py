"""How kernels are compiled, and when what was compiled may be used again.

`inner` marks a function that other kernels call (`inlined`: always in place, since lanes that cross a call
travel through memory); `kernel` marks one that Python calls, whose machine code
is kept on disk. numba throws kept code away when the file of the kernel itself changes, but a kernel is made
of functions from several files here, so the stamp that it compares is a digest of all of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numba

from normalfan.sources import digest_of_files

inner = numba.njit(nogil=True, error_model="numpy")
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


def kernel(function):
    dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    dispatcher._cache._cache_file._source_stamp = _digest_of_folder(
        Path(function.__code__.co_filename).parent
    )
    return dispatcher


@cache
def _digest_of_folder(folder: Path) -> str:
    """A digest of the kernels in a folder, and of those here, of which all others are made."""
    folders = {folder, Path(__file__).parent}
    return digest_of_files(
        {f"{one.parent.name}/{path.name}": path for one in folders for path in one.glob("*.py")}
    )
