"""How kernels are compiled, and when what was compiled may be used again.

`inner` marks a function that other kernels call (`inlined`: always in place, since lanes that cross a call
travel through memory); `kernel` marks one that Python calls, whose machine code
is kept on disk. numba throws kept code away when the file of the kernel itself changes, but a kernel is made
of functions from several files here, so the stamp that it compares is a digest of all of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba

inner = numba.njit(nogil=True, error_model="numpy")
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


def kernel(function):
    dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    dispatcher._cache._cache_file._source_stamp = _SOURCES
    return dispatcher


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest_of_sources()
