"""Compiled kernels: plain arrays in, plain arrays out. numba is imported here and nowhere else.

Machine code is kept on disk, so a machine compiles each kernel once. While it does, the first call says
so on standard error instead of seeming to hang.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event


class _Announcer(event.Listener):
    """Says once that compilation has begun; loading from the cache is silent."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"].py_func
        if not self.said and kernel.__module__.startswith("normalfan"):  # the companion's kernels too
            self.said = True
            sys.stderr.write(
                "normalfan: compiling its kernels for this machine, once; this takes some seconds, "
                "later runs load them from the cache.\n"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
