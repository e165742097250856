"""What each member and the whole fleet came to, in memory that does not grow with the fleet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan.errors import WorkStopped
from normalfan.files import written_atomically
from normalfan.jobs.fleet.task import schema_of_rows

if TYPE_CHECKING:
    import polars

LISTS = ("price", "value", "crossed")
ROWS_AT_ONCE = 8192
"""Rows in a group of the members' file: polars holds some groups at a time."""

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Worst:
    """A member whose total stands out."""

    member: str
    total: float
    worst_round: str
    worst_price: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Over all members that could be priced; rounds after each member's first are of one of three kinds."""

    members: int
    rounds: int
    free: int
    negligible: int
    priced: int
    total: float
    worst_round: Worst | None  # the member that has the dearest round of the fleet
    dearest: tuple[Worst, ...]  # the members that cost most
    problems: int  # members that could not be priced
    problem_list: tuple[tuple[str, str], ...]  # the first of them, and why


def gather_members(cells: list[Path], target: Path) -> None:
    """The rows of all cells, without their lists of rounds, as one file."""
    import polars

    empty = polars.LazyFrame(schema=schema_of_rows())  # no cell may have been finished
    try:
        with written_atomically(target) as file:
            rows = polars.scan_parquet(cells) if cells else empty
            rows.drop(*LISTS).sink_parquet(file, row_group_size=ROWS_AT_ONCE)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise WorkStopped(
            f"The sweep is done, but {target} could not be written ({error}); make room there or see to "
            f"its permissions, and run the same command again."
        ) from None


def total_up(members: Path) -> Totals:
    import polars

    rows = polars.scan_parquet(members)
    good = rows.filter(polars.col("problem").is_null())
    bad = rows.filter(polars.col("problem").is_not_null())
    counts = ("rounds", "free", "negligible", "priced")
    sums = good.select(polars.len(), polars.col(counts).sum()).collect(engine="streaming").row(0, named=True)
    return Totals(
        members=sums.pop("len"),
        **sums,
        # Exact until the end, so that no order of adding shows.
        total=math.fsum(_each(good, "total")),
        worst_round=next(iter(_largest(good, "worst_price", 1)), None),
        dearest=_largest(good, "total", SHOWN),
        problems=bad.select(polars.len()).collect().item(),
        problem_list=tuple(bad.select("member", "problem").head(SHOWN).collect().iter_rows()),
    )


def _largest(rows: polars.LazyFrame, column: str, count: int) -> tuple[Worst, ...]:
    by_name = rows.select("member", "total", "worst_round", "worst_price")
    top = by_name.top_k(count, by=[column, "member"], reverse=[False, True])
    ordered = top.sort([column, "member"], descending=[True, False]).collect(engine="streaming")
    return tuple(Worst(**row) for row in ordered.iter_rows(named=True))


def _each(rows: polars.LazyFrame, column: str) -> Iterator[float]:
    values = rows.select(column)
    first = 0
    while len(chunk := values.slice(first, ROWS_AT_ONCE).collect()):
        yield from chunk[column]
        first += ROWS_AT_ONCE
