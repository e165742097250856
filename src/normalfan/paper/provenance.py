"""Which code a cell's result comes from, and which versions ran it.

A finished cell may be used again only if the same code would compute it again. The sweep knows the library's
computing layers and the file of the task; here are the other files of this package that the task imports,
directly or through each other. How rows are judged and figures drawn does not count: a sentence or a colour
may change without a run.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "normalfan.paper"
LIBRARIES = ("numpy", "scipy", "numba", "polars", "matplotlib")


@cache
def digest_of_task(task: str) -> str:
    """A digest of all that `sources_of_task` finds."""
    digest = hashlib.sha256()
    for name, source in sorted(sources_of_task(task).items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(source).digest())
    return digest.hexdigest()[:16]


def sources_of_task(task: str) -> dict[str, bytes]:
    """The sources of the task's module and of the modules of this package that it imports, by name."""
    seen: dict[str, bytes] = {}
    waiting = [task.partition(":")[0]]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name in seen or path is None:
            continue
        seen[name] = path.read_bytes()
        waiting += _imported(seen[name])
    return seen


def _imported(source: bytes) -> Iterator[str]:
    """The modules of this package that a source names in its imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        # The package's own __init__ and those of experiments only introduce; they compute nothing.
        yield from (name for name in names if name.startswith(f"{PACKAGE}."))


def _file_of(name: str) -> Path | None:
    """The source of a module; None for a package, or for a name within a module."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return None
    return Path(spec.origin)


def versions() -> dict[str, str]:
    """What ran: this package, Python, and the libraries that decide digits."""
    from normalfan import __version__

    found = {"normalfan": __version__, "Python": platform.python_version()}
    for library in LIBRARIES:
        found[library] = importlib.metadata.version(library)
    return found
