"""What a worker does: compute some cells, one after the other, and write each result itself.

Only counts and messages travel back. A cell that raises becomes a message; trouble with the store or with the
code is trouble for every cell, and raises `WorkStopped`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from normalfan.errors import InputError, WorkStopped
from normalfan.jobs.cell import Cell
from normalfan.jobs.store import Store

writing = threading.Lock()  # a worker that is told to end waits for it


@dataclass(frozen=True, slots=True)
class Batch:
    """Cells that travel together."""

    cells: tuple[tuple[Cell, str], ...]  # each with the key that the client has for it
    deaths: int = 0  # workers that died while they had these cells
    alone: bool = False  # to be run with nothing else in flight


@dataclass(slots=True)
class Report:
    """How a batch went."""

    finished: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # number in the batch, why
    timings: list[tuple[str, float]] = field(default_factory=list)  # task, wall-clock seconds of a cell
    deaths: int = 0  # workers that died over the batch; the client says so in their place


def run_batch(store: Store, batch: Batch) -> Report:
    report = Report()
    for i, (cell, key) in enumerate(batch.cells):
        started = time.perf_counter()
        try:
            _check_code(cell, key)
            if key in store:  # a batch that was interrupted comes again whole
                report.finished += 1
                continue
            _compute(store, cell, key)
            report.finished += 1
        except WorkStopped:
            raise
        except Exception as error:  # noqa: BLE001  one failing cell must not end the run
            plain = isinstance(error, InputError)
            report.failures.append((i, str(error) if plain else f"{type(error).__name__}: {error}"))
        report.timings.append((cell.task, time.perf_counter() - started))
    return report


def _check_code(cell: Cell, key: str) -> None:
    """A worker names the cell by its own code: another name than the client's means other code."""
    try:
        same = cell.key == key
    except InputError as error:
        raise WorkStopped(f"The run stopped: a worker cannot go on, because {error}") from None
    if not same:
        raise WorkStopped(
            "The run stopped: a worker runs other code than this process; install the same version of "
            "normalfan, and of the tasks, everywhere, restart the workers, and run the same command again."
        )


def _compute(store: Store, cell: Cell, key: str) -> None:
    started = time.thread_time()
    result = cell.compute()
    seconds = time.thread_time() - started
    try:
        with writing:
            store._write(key, result, seconds)
    except OSError as error:
        raise WorkStopped(
            f"The run stopped: a result could not be written to {store.folder} ({error.strerror or error}); "
            f"make room there or change its permissions, and run the same command again: finished cells stay."
        ) from None
