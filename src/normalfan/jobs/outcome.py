"""What became of a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from normalfan.jobs.cell import Cell


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell without a result, and why."""

    cell: Cell
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of cells; `failures` lists the first of those that failed."""

    finished: int  # computed by this run
    reused: int  # found in the store
    failed: int
    failures: tuple[Failure, ...]  # at most LISTED of them


LISTED = 1000
"""How many failures are kept: a list of all of a million would be read by nobody."""
