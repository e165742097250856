"""A fleet as cells of a sweep: slices of members, of about a second's work each."""

from __future__ import annotations

import hashlib
import math
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from normalfan.errors import InputError
from normalfan.jobs import Cell
from normalfan.jobs.fleet.members import PATHS, Members, is_environment
from normalfan.jobs.fleet.task import files_of, read_member

TASK = "normalfan.jobs.fleet.task:price_members"

CELL_ENTRIES = 1e8
"""Entries of losses (rounds × steps × states × actions) that a core prices in about a second."""

MOST_MEMBERS = 512

FILES_AT_ONCE = 8
"""Files that the client looks at together."""


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
        # Threads, because a network's file system answers late rather than slowly.
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            while together := list(islice(members, self.size)):
                looked_up = list(pool.map(_look_up, together))
                digest = hashlib.sha256("\n".join(found for _, found in looked_up).encode()).hexdigest()
                yield Cell(TASK, {"members": [member for member, _ in looked_up]}, {"files": digest})


def _members_together(first: dict[str, Any]) -> int:
    try:
        mdp, stream = read_member(first)
    except InputError:
        return MOST_MEMBERS  # it will be in the results, with this sentence
    entries = math.prod(mdp.shape) * (stream.n_rounds or 1)
    return max(1, min(MOST_MEMBERS, int(CELL_ENTRIES / entries)))


def _look_up(member: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The member, and a digest of what its files hold.

    If one is not there, the member gets a sentence for a price. It is said here and not by the worker,
    because to a worker a file may be missing for reasons of its own.
    """
    digests = []
    for name in PATHS:
        if name not in member or is_environment(member[name]):
            continue
        digest = _digest_of_file(member[name])
        if digest is None:
            problem = f"{member[name]} does not exist, but is its {name}: check the path."
            return member | {"problem": problem}, ""
        digests.append(digest)
    return member, " ".join(digests)


def _digest_of_file(path: str) -> str | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return "+".join(_digest_of_file(str(part)) or "" for part in files_of(Path(path)))
    return _digest_of_content(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)  # members share models, features and prices
def _digest_of_content(path: str, size: int, changed: int) -> str:  # noqa: ARG001  they tell versions apart
    with Path(path).open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
