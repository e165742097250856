"""Many decision problems, each with its own stream of losses: what did each day cost each member?

Members are priced in cells of about a second's work; then their rows are added up, in bounded memory.
"""

from __future__ import annotations

import hashlib
import math
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import polars

from normalfan.errors import WorkStopped
from normalfan.files import written_atomically
from normalfan.io.models import files_of_rounds
from normalfan.jobs.cells import Cell, Store
from normalfan.jobs.fleet_members import SCHEMA, Members, files_of, read_member
from normalfan.jobs.run import Engine, Outcome, run_cells
from normalfan.sources import digest_of_code

TASK = "normalfan.jobs.fleet_members:price_members"

CELL_ENTRIES = 1e8  # losses (rounds × steps × states × actions) that a core prices in about a second
MOST_MEMBERS = 512  # in a cell, if they are small
FILES_AT_ONCE = 8  # that the client looks at together
ROWS_AT_ONCE = 8192  # in a group of the members' file: polars keeps some groups in memory at a time
LISTED = 5  # members that the totals name


@dataclass(frozen=True, slots=True)
class MemberTotal:
    """What one member's stream came to."""

    member: str  # its name
    total: float  # of all its prices
    worst_round: str  # its costliest round
    worst_price: float  # of that round


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """What a fleet came to; the rounds after each member's first are free, negligible or priced."""

    members: int  # that were priced
    rounds: int  # of all these
    free: int  # rounds
    negligible: int  # rounds
    priced: int  # rounds
    total: float  # of all prices
    worst_round: MemberTotal | None  # the member that has the costliest round
    costliest: tuple[MemberTotal, ...] = field(repr=False)  # the five that cost most
    problems: int  # members that could not be priced
    problem_list: tuple[tuple[str, str], ...] = field(repr=False)  # the first five, each with the reason


@dataclass(frozen=True, slots=True)
class FleetResult:
    """What became of a fleet."""

    cells: Path  # a Parquet dataset with lists of each member's prices
    members: Path  # one Parquet file of its rows without the lists
    outcome: Outcome  # how the run went
    totals: FleetTotals  # what all members came to


def price_fleet(
    members: Members, folder: str | Path, engine: Engine, *, progress: bool = False
) -> FleetResult:
    """Price every member's stream.

    Parameters
    ----------
    members, folder : Members, str or Path
        Who is in the fleet, and where results are kept.
    engine, progress : Engine, bool
        As in `run_cells`.

    Returns
    -------
    FleetResult
        A member that cannot be priced has a sentence that says why; the others are priced.

    Raises
    ------
    InputError, WorkStopped
        As in `run_cells`; finished members stay.

    Examples
    --------
    >>> import numpy as np, polars, tempfile
    >>> import normalfan as nf
    >>> from normalfan.jobs import Serial
    >>> folder = Path(tempfile.mkdtemp())
    >>> nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), initial=0, horizon=1), folder / "model.npz")
    >>> np.save(folder / "losses.npy", np.reshape([0.0, 1.0, 2.0, 1.5, 0.0, 1.0], (3, 1, 1, 2)))
    >>> rows = [{"member": name, "model": "model.npz", "losses": "losses.npy"} for name in ("a", "b")]
    >>> polars.DataFrame(rows).write_parquet(folder / "fleet.parquet")
    >>> price_fleet(Members.of_table(folder / "fleet.parquet"), folder / "priced", Serial()).totals.total
    3.0
    """
    store = Store(Path(folder) / "cells")
    cells = FleetCells(members)
    outcome = run_cells(cells, store, engine, progress=progress)
    shared = [cell for cell, _ in outcome.failures if len(cell.settings["members"]) > 1]
    if shared:  # whichever member it was, the others are to be priced
        alone = run_cells(cells.one_by_one(shared), store, engine, progress=progress)
        kept = [failure for failure in outcome.failures if failure[0] not in shared]
        outcome = Outcome(
            outcome.finished + alone.finished,
            outcome.reused + alone.reused,
            outcome.failed - len(shared) + alone.failed,
            (*kept, *alone.failures),
            outcome.damaged + alone.damaged,
        )
    summary = store.folder.parent / "members.parquet"
    failed = [(cell.settings["members"][0]["member"], message) for cell, message in outcome.failures]
    gather_members(
        [path for path in map(Path, map(store._file, cells.keys)) if path.exists()], summary, failed
    )
    return FleetResult(store.folder, summary, outcome, total_up(summary))


class FleetCells:
    """The cells of a fleet, made as they are asked for."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.gym_modules = {module: digest_of_code(module) for module in sorted(members._gym_modules)}
        # Decided by the first stream alone: cells are the same everywhere.
        self.size = _members_together(_look_up(next(iter(members)))[0])
        self.keys: list[str] = []  # of the cells made so far

    def __len__(self) -> int:
        return math.ceil(len(self.members) / self.size)

    def __iter__(self) -> Iterator[Cell]:
        members = iter(self.members)
        # Threads, because a network's file system answers late rather than slowly.
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            while together := list(islice(members, self.size)):
                yield self._cell(list(pool.map(_look_up, together)))

    def one_by_one(self, cells: list[Cell]) -> Iterator[Cell]:
        """The members of some cells, each in a cell of its own."""
        return (self._cell([_look_up(member)]) for cell in cells for member in cell.settings["members"])

    def _cell(self, looked_up: list[tuple[dict[str, Any], str]]) -> Cell:
        digest = hashlib.sha256("\n".join(found for _, found in looked_up).encode()).hexdigest()
        settings: dict[str, Any] = {"members": [member for member, _ in looked_up]}
        if self.gym_modules:
            settings["gym_modules"] = self.gym_modules
        cell = Cell(TASK, settings, {"files": digest})
        self.keys.append(cell.key)
        return cell


def _members_together(first: dict[str, Any]) -> int:
    with suppress(Exception):  # whatever it is, the results will say it by the member's name
        if "problem" not in first:  # what cannot be read may be a pipe, and would be waited for
            mdp, stream = read_member(first)
            entries = math.prod(mdp.shape) * (stream.n_rounds or 1)
            return max(1, min(MOST_MEMBERS, int(CELL_ENTRIES / entries)))
    return MOST_MEMBERS


def _look_up(member: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The member, and a digest of the content of its files; or why one of them cannot be read.

    It is said here and not by the worker, to whom a file may be missing for reasons of its own.
    """
    if "problem" in member:
        return member, ""
    digests = []
    for name, path in files_of(member).items():
        try:
            files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
            for file in [*files, *(files_of_rounds(path) if name == "model_of_round" else ())]:
                status = file.stat()
                if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device has no end
                    raise ValueError("not a regular file")
                digests.append(_digest_of_file(file, status.st_size, status.st_mtime_ns))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            shown = str(path) if str(path).isprintable() else repr(str(path))
            problem = f"{shown} cannot be read ({reason}), but is its {name}: check the path."
            return member | {"problem": problem}, ""
    return member, " ".join(digests)


@lru_cache(maxsize=1024)  # members share models, features and prices
def _digest_of_file(path: Path, size: int, changed: int) -> str:  # noqa: ARG001  they tell versions apart
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def gather_members(cells: list[Path], target: Path, failed: Sequence[tuple[str, str]] = ()) -> None:
    """The rows of all cells, without their lists of rounds, and of members that failed, as one file."""
    named = [{"member": member, "problem": message} for member, message in failed]
    rows = polars.LazyFrame(named, schema=SCHEMA)
    if cells:
        rows = polars.concat([polars.scan_parquet(cells), rows]) if failed else polars.scan_parquet(cells)
    try:
        with written_atomically(target) as file:
            rows.drop("price", "value", "crossed").sink_parquet(file, row_group_size=ROWS_AT_ONCE)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise WorkStopped(
            f"All cells are done, but {target} could not be written ({error}); make room there or change its "
            f"permissions, and run the same command again."
        ) from None


def total_up(members: Path) -> FleetTotals:
    rows = polars.scan_parquet(members, glob=False)
    good = rows.filter(polars.col("problem").is_null())
    bad = rows.filter(polars.col("problem").is_not_null())
    counts = ("rounds", "free", "negligible", "priced")
    sums = good.select(polars.len(), polars.col(counts).sum()).collect(engine="streaming").row(0, named=True)
    return FleetTotals(
        members=sums.pop("len"),
        **sums,
        # Exact until the end, so that no order of adding shows.
        total=math.fsum(good.select("total").collect(engine="streaming")["total"]),
        worst_round=next(iter(_largest(good, "worst_price", 1)), None),
        costliest=_largest(good, "total", LISTED),
        problems=bad.select(polars.len()).collect().item(),
        problem_list=tuple(bad.select("member", "problem").head(LISTED).collect().iter_rows()),
    )


def _largest(rows: polars.LazyFrame, column: str, count: int) -> tuple[MemberTotal, ...]:
    by_name = rows.select("member", "total", "worst_round", "worst_price")
    top = by_name.top_k(count, by=[column, "member"], reverse=[False, True])
    ordered = top.sort([column, "member"], descending=[True, False]).collect(engine="streaming")
    return tuple(MemberTotal(**row) for row in ordered.iter_rows(named=True))
