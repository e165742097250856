"""Which versions ran an experiment."""

from __future__ import annotations

import importlib.metadata
import platform

LIBRARIES = ("numpy", "scipy", "numba", "polars", "matplotlib")


def versions() -> dict[str, str]:
    """What ran: this package, Python, and the libraries that decide digits."""
    from normalfan import __version__

    found = {"normalfan": __version__, "Python": platform.python_version()}
    for library in LIBRARIES:
        found[library] = importlib.metadata.version(library)
    return found
