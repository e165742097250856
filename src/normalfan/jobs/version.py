"""Which code a result was computed by: the version of the package, and a digest of the task's code."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from normalfan.errors import InputError
from normalfan.sources import digest_of_code, digest_of_files


def code_version(task: str) -> str:
    """The version of the package, and a digest of the task's module with all that it imports of ours."""
    module = task.partition(":")[0]
    try:
        return f"{_release()}+{digest_of_code(module)[:16]}"
    except ModuleNotFoundError:
        raise InputError(
            f"task module {module!r} was not found, but every process must import it by that name: "
            f"install its package, or put its folder on PYTHONPATH."
        ) from None


@cache
def package_version() -> str:
    """The version of the package, and a digest of all of its sources: what every process must share."""
    package = Path(__file__).parents[1]
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return f"{_release()}+{digest_of_files(files)[:16]}"


def _release() -> str:
    # The package is loaded, since we are; importing it by name would turn the layers upside down.
    version: str = sys.modules["normalfan"].__version__
    return version
