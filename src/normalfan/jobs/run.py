"""The client's side: hand out batches of cells, a bounded number at a time, and count what comes back.

A batch is to take about a second, as measured during the run: shorter ones would be all bookkeeping, longer
ones would leave workers idle at the end. The cells of a batch whose worker died are handed out again one by
one; a cell that is lost once more is run with nothing else in flight. If workers die even then, the cell is
the cause, and is given up.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field

from normalfan.jobs.cells import Cell, Store
from normalfan.jobs.engines import Batch, Engine, Report
from normalfan.progress import progress_bar

BATCH_SECONDS = 1.0
MOST_CELLS = 1000
FADING = 0.98  # what a measurement weighs after the next one: the last fifty cells of a task count most
SUSPICIOUS, FATAL = 2, 4  # cells that so many workers died with are run alone, and given up
LISTED = 1000  # failures that are kept: nobody would read a list of a million


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the cells of a run."""

    finished: int  # cells that this run computed
    reused: int  # that were in the store
    failed: int  # that have no result
    failures: tuple[tuple[Cell, str], ...] = field(repr=False)  # the first 1000 of them, with the reasons
    damaged: int = field(default=0, repr=False)  # whose file was damaged or another cell's: computed again


def run_cells(
    cells: Iterable[Cell], store: Store, engine: Engine, *, progress: bool = False, label: str = "cells"
) -> Outcome:
    """Compute every cell whose result is not in the store yet.

    Parameters
    ----------
    cells, store : iterable of Cell, Store
        What to compute, read only as far as workers have room; where each result is kept at once.
    engine : Engine
        ``Serial()``, ``Processes()`` or ``Cluster(address)``; results are equal to the bit.
    progress, label : bool, str
        Whether to show a progress bar, and its name.

    Returns
    -------
    Outcome
        A cell that raises is counted and does not end the run.

    Raises
    ------
    InputError
        If the store cannot be written to, or the engine cannot start.
    WorkStopped
        If no cell can go on: the disk is full, the scheduler is gone, a worker runs other code.

    Examples
    --------
    >>> import normalfan.jobs, tempfile
    >>> cells = [Cell("normalfan.jobs.cells:echo", {"seed": seed}) for seed in range(5)]
    >>> run_cells(cells, Store(tempfile.mkdtemp()), normalfan.jobs.Serial())
    Outcome(finished=5, reused=0, failed=0)
    """
    store._prepare()
    total = len(cells) if isinstance(cells, Sized) else None
    with progress_bar(label, total, progress) as advance, engine._open(store) as crew:
        work = _Work(cells, store, advance)
        in_flight = 0
        while True:
            while in_flight < crew.room and (batch := work.next_batch(idle=not in_flight)):
                crew.submit(batch)
                in_flight += 1
                if batch.deaths >= SUSPICIOUS:
                    break
            if not in_flight:
                return Outcome(work.finished, work.reused, work.failed, tuple(work.failures), work.damaged)
            for batch, report in crew.wait():
                in_flight -= 1
                work.take(batch, report)


class _Work:
    """What is still to do, and counts of what is done."""

    def __init__(self, cells: Iterable[Cell], store: Store, advance: Callable[[int], None]) -> None:
        self.store, self.advance = store, advance
        self.missing = self._missing(cells)
        self.again: deque[Batch] = deque()  # of cells whose worker died
        self.measured: dict[str, tuple[float, float]] = {}  # task -> cells and seconds, faded
        self.finished = self.reused = self.failed = self.damaged = 0
        self.failures: list[tuple[Cell, str]] = []

    def next_batch(self, *, idle: bool) -> Batch | None:
        """The next batch, if there is one that may run now; `idle`: nothing is in flight."""
        if self.again:
            return self.again.popleft() if idle or self.again[0].deaths < SUSPICIOUS else None
        cells, expected = [], 0.0
        for cell, key in self.missing:
            cells.append((cell, key))
            measured, seconds = self.measured.get(cell.task, (1.0, BATCH_SECONDS))
            expected += seconds / measured
            if expected >= BATCH_SECONDS or len(cells) == MOST_CELLS:
                break
        return Batch(tuple(cells)) if cells else None

    def take(self, batch: Batch, report: Report) -> None:
        """Count what a batch came to; plan again what dead workers left undone."""
        if report.deaths:
            report = self._hand_out_again(batch, batch.deaths + report.deaths)
        for task, seconds in report.timings:
            cells, spent = self.measured.get(task, (0.0, 0.0))
            self.measured[task] = FADING * cells + 1, FADING * spent + seconds
        self.finished += report.finished
        self.failed += len(report.failures)
        for i, message in report.failures[: LISTED - len(self.failures)]:
            self.failures.append((batch.cells[i][0], message))
        self.advance(report.finished + len(report.failures))

    def _hand_out_again(self, lost: Batch, deaths: int) -> Report:
        """The report that the dead workers would have sent about what need not be done again."""
        report = Report()
        for i, (cell, key) in enumerate(lost.cells):
            if key in self.store:
                report.finished += 1
            elif lost.deaths >= SUSPICIOUS and deaths >= FATAL:
                report.failures.append((i, f"the worker died, each of the last {deaths} times"))
            else:
                self.again.append(Batch(((cell, key),), deaths))
        return report

    def _missing(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, str]]:
        for cell in cells:
            key = cell.key
            if key in self.store:
                self.reused += 1
                self.advance(1)
            else:
                self.damaged += os.path.exists(self.store._file(key))  # noqa: PTH110  see there
                yield cell, key
