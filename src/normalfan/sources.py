"""Which code computes a result: digests of source files.

A kept result (a compiled kernel, a finished cell) may be used again only if the same code would compute it.
The code of a module is its own source and, of its own package and of this library, all that it imports by
name, directly or through others. Sources are read, never run, to find out. Not followed: other packages,
modules whose name is computed, and the `__init__` of a package that nobody names (`import a.b` runs it, too).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from normalfan._version import __version__
from normalfan.errors import InputError

LIBRARY = "normalfan"


def digest_of_files(files: Mapping[str, Path]) -> str:
    """A digest of some files, by the names they are given: where they are does not count."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def digest_of_code(module: str) -> str:
    """A digest of a module and of all that it imports of its own package and of the library."""
    return digest_of_files(files_of_code(module))


@cache
def library_version() -> str:
    """The version of the library with a digest of all its sources: what all machines must share."""
    folder = Path(__file__).parent
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    return f"{__version__}+{digest_of_files(files)[:16]}"


def files_of_code(module: str) -> dict[str, Path]:
    """The files of a module and of the modules of its package and of the library that it imports, by name."""
    packages = (LIBRARY, module.partition(".")[0])
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        spec = None if name in found else _spec_of(name)
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            found[name] = Path(spec.origin)
            waiting += (other for other in _imported(spec) if other.partition(".")[0] in packages)
    if module not in found:
        raise InputError(
            f"the module {module!r} was not found, but every process must import it by that name: install "
            f"its package, or put its folder on PYTHONPATH."
        )
    return found


def _imported(spec: ModuleSpec) -> Iterator[str]:
    """Every name that a source imports, inside functions too; some are names within a module."""
    path = Path(spec.origin or "")
    if path.suffix != ".py":
        return  # compiled: its bytes count, what it imports cannot be read
    package = spec.name if spec.submodule_search_locations is not None else spec.parent
    stub = path.with_suffix(".pyi")  # it names what a lazy package imports when it is asked
    sources = [source.read_bytes() for source in (path, stub) if source.is_file()]
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _spec_of(name: str) -> ModuleSpec | None:
    """Where a module is, found without importing it or a package around it; None if it is no module."""
    package = name.rpartition(".")[0]
    if package:
        around = _spec_of(package)
        places = None if around is None else around.submodule_search_locations
        return None if places is None else PathFinder.find_spec(name, places)
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # a program's `__main__`: no other process can import it
        return None
