"""A fleet as cells of a sweep: slices of members, of about a second's work each."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from normalfan.errors import InputError
from normalfan.fleet.members import PATHS, Members, missing_file
from normalfan.fleet.task import files_of, read_member
from normalfan.sweep import Cell
from normalfan.sweep.version import digest_of_sources

TASK = "normalfan.fleet.task:price_members"

CELL_ENTRIES = 1e8
"""Entries of losses (rounds × steps × states × actions) that a core prices in about a second."""

MOST_MEMBERS = 512


class FleetCells:
    """The cells of a fleet, made as they are asked for.

    How many members share a cell is decided by the size of the first one's stream and by nothing else: the
    same fleet has the same cells whoever computes them.
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self.size = _members_together(next(iter(members)))

    def __len__(self) -> int:
        return math.ceil(len(self.members) / self.size)

    def __iter__(self) -> Iterator[Cell]:
        members = iter(self.members)
        while together := [_look_up(member) for member in islice(members, self.size)]:
            inputs = {"files": _digest_of_files(together), "readers": digest_of_sources("io")}
            yield Cell(TASK, {"members": together}, inputs)


def _members_together(first: dict[str, Any]) -> int:
    try:
        mdp, stream = read_member(first)
    except InputError:
        return MOST_MEMBERS  # it will be in the results, with this sentence
    entries = math.prod(mdp.shape) * (stream.n_rounds or 1)
    return max(1, min(MOST_MEMBERS, int(CELL_ENTRIES / entries)))


def _look_up(member: dict[str, Any]) -> dict[str, Any]:
    """The member, with a sentence instead of a price if one of its files is not there.

    Said here and not by the worker: to a worker a file may be missing for reasons of its own.
    """
    name = missing_file(member)
    if name is None:
        return member
    return member | {"problem": f"{member[name]} does not exist, but is its {name}: check the path."}


def _digest_of_files(members: list[dict[str, Any]]) -> str:
    digest = hashlib.sha256()
    for member in members:
        for name in PATHS:
            for path in files_of(Path(member[name])) if name in member else ():
                digest.update(_digest_of_file(path).encode() + b"\n")
    return digest.hexdigest()


def _digest_of_file(path: Path) -> str:
    if not path.exists():
        return "none"  # an environment, or a file of a member that is not priced
    status = path.stat()
    return _digest_of_content(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)  # members share models, features and prices
def _digest_of_content(path: Path, size: int, changed: int) -> str:  # noqa: ARG001  they tell versions apart
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
