"""How kernels are compiled, and when what was compiled may be used again.

Machine code is kept on disk, so a machine compiles each kernel once. While it does, the first call says
so on standard error instead of seeming to hang.

`inner` marks a function that other kernels call (`inlined`: always in place, since lanes that cross a call
travel through memory); `kernel` marks one that Python calls, whose machine code is kept. numba throws kept
code away when the file of the kernel itself changes, but a kernel is made of functions from several files
here, so the stamp that it compares is a digest of all of them. The files are pickles: whoever may write them
may run code, so a cache that is shared must be writable by trusted users only.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from normalfan.sources import digest_of_files

inner = numba.njit(nogil=True, error_model="numpy")
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


class Announcer(event.Listener):
    """Says once that compilation has begun; loading from the cache is silent."""

    said = False

    def on_start(self, event: Any) -> None:
        compiled = event.data["dispatcher"].py_func
        if not self.said and compiled.__module__.startswith("normalfan"):  # the companion's kernels too
            self.said = True
            sys.stderr.write(
                "normalfan: compiling its kernels for this machine, once; this takes some seconds, "
                "later runs load them from the cache.\n"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", Announcer())


def kernel(function):
    try:
        dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's home can be written
        _use_temporary_cache()
        dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    found = dispatcher._cache._cache_file
    dispatcher._cache._cache_file = KeptCode(
        found._cache_path,
        found._index_name.removesuffix(".nbi"),
        _digest_of_folder(Path(function.__code__.co_filename).parent),
    )
    return dispatcher


class KeptCode(IndexDataCacheFile):
    """Machine code on disk with a digest: a damaged file counts as missing, and is written again."""

    def save(self, key, data):
        with contextlib.suppress(OSError):  # a full disk costs the next process some seconds, no more
            super().save(key, data)

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_index(self):
        try:
            with Path(self._index_path).open("rb") as file:
                pickle.load(file)  # noqa: S301  the version
                whole = _is_whole(file.read())
            return super()._load_index() if whole else {}
        except Exception:  # noqa: BLE001  a damaged pickle, or one that names a class of earlier code
            return {}

    def _load_data(self, name):
        if not _is_whole(Path(self._data_path(name)).read_bytes()):
            raise OSError  # which numba takes for a file that is not there
        return super()._load_data(name)


def _is_whole(data: bytes) -> bool:
    return hashlib.sha256(data[:-32]).digest() == data[-32:]


@cache
def _use_temporary_cache() -> None:
    numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="normalfan-kernels-")
    sys.stderr.write(
        f"normalfan: no folder for its compiled kernels can be written, so {numba.config.CACHE_DIR} is used; "
        f"set NUMBA_CACHE_DIR to keep them.\n"
    )


@cache
def _digest_of_folder(folder: Path) -> str:
    """A digest of the kernels in a folder, and of those here, of which all others are made."""
    folders = {folder, Path(__file__).parent}
    return digest_of_files(
        {f"{one.parent.name}/{path.name}": path for one in folders for path in one.glob("*.py")}
    )
