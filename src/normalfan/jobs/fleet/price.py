"""A fleet, priced: cells through a sweep, then totals from what the sweep wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from normalfan.jobs import Cell, Outcome, Store, run_sweep
from normalfan.jobs.engines import Engine
from normalfan.jobs.fleet.cells import FleetCells
from normalfan.jobs.fleet.members import Members
from normalfan.jobs.fleet.totals import Totals, gather_members, total_up

MEMBERS_FILE = "members.parquet"


@dataclass(frozen=True, slots=True)
class FleetResult:
    """Where the results are, how the run went, and what it came to."""

    cells: Path  # a Parquet dataset: a row for each member, with lists of prices, values and crossings
    members: Path  # one Parquet file: a row for each member, without the lists
    outcome: Outcome
    totals: Totals


def price_fleet(
    members: Members, folder: str | Path, engine: Engine, *, progress: bool = True
) -> FleetResult:
    """Price every member's stream; results that the folder already holds are used again."""
    store = Store(Path(folder) / "cells")
    cells = _Noted(FleetCells(members))
    outcome = run_sweep(cells, store, engine, progress=progress, label="cells")
    summary = store.folder.parent / MEMBERS_FILE
    gather_members([store.path_of(key) for key in cells.keys if store.holds(key)], summary)
    return FleetResult(store.folder, summary, outcome, total_up(summary))


class _Noted:
    """Cells on their way into a sweep, with a note of where each result will be."""

    def __init__(self, cells: FleetCells) -> None:
        self.cells = cells
        self.keys: list[str] = []

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Cell]:
        for cell in self.cells:
            self.keys.append(cell.key)
            yield cell
