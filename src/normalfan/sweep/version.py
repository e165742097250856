"""Which code a result was computed by.

A result may be used again only if the same code would compute it again. What counts is the package's version,
the sources of its computing layers, and the file of the task itself: editing the command line or a report
leaves finished cells valid, editing a kernel does not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from functools import cache
from pathlib import Path

from normalfan.errors import InputError

COMPUTING_LAYERS = (
    "problem",
    "geometry",
    "exact",
    "_kernels",
    "pricing",
    "learners",
    "regret",
    "simulation",
    "environments",
)


def code_version(task: str) -> str:
    """The version of the package, and digests of its computing layers and of the task's module."""
    return f"{package_version()}+{_digest_of_module(task.partition(':')[0])}"


@cache
def package_version() -> str:
    # The package is loaded, since we are; importing it by name would turn the layers upside down.
    version = sys.modules["normalfan"].__version__
    return f"{version}+{digest_of_sources(*COMPUTING_LAYERS)}"


@cache
def digest_of_sources(*layers: str) -> str:
    """A digest of all Python sources of some of the package's folders."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for layer in layers:
        for path in sorted((package / layer).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@cache
def _digest_of_module(name: str) -> str:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(
            f"task module {name!r} was not found, but every process must import it by that name: "
            f"install its package, or put its folder on PYTHONPATH."
        )
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]
