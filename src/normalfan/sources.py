"""Which code computes a result: digests of source files.

Whatever keeps a result (compiled kernels, finished cells) may use it again only if the same code would
compute it again. The code of a module is its own source and, of the same packages, everything that it
imports, directly or through others: editing the command line or a report leaves results valid, editing a
kernel does not.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

LIBRARY = "normalfan"


def digest_of_files(files: Mapping[str, Path]) -> str:
    """A digest of some files, by the names they are given: where they lie does not count."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def digest_of_code(module: str) -> str:
    """A digest of a module and all that it imports of its own package and of the library."""
    return digest_of_files(files_of_code(module))


def files_of_code(module: str) -> dict[str, Path]:
    """The files of a module and of the modules of its package and of the library that it imports, by name.

    `ModuleNotFoundError`: there is no such module.
    """
    packages = (LIBRARY, module.partition(".")[0])
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _file_of(name)
        if path is not None:
            found[name] = path
            waiting += (other for other in _imported(path) if other.partition(".")[0] in packages)
    if module not in found:
        raise ModuleNotFoundError(module)
    return found


def _imported(path: Path) -> Iterator[str]:
    """Every name that a source imports, inside functions too; some name things within a module."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(name: str) -> Path | None:
    """The source of a module, or of a package's own `__init__`; None for a name within a module."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return None
    return Path(spec.origin)
