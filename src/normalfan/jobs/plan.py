"""Which cells travel together, and what becomes of those whose worker died.

A batch is to take about a second: much shorter ones would be all bookkeeping, much longer ones would leave
workers idle at the end. The time of a cell is measured as the sweep goes, for each task.

A batch whose worker died is handed out again cell by cell; a cell that is lost once more is run with nothing
else in flight. If workers keep dying over it even then, the cell does it, and is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from normalfan.jobs.batch import Batch, Report
from normalfan.jobs.cell import Cell
from normalfan.jobs.store import Store

BATCH_SECONDS = 1.0
MOST_CELLS = 1000
FADING = 0.98
"""What a measurement still weighs after the next one: the last fifty cells of a task count most."""

SUSPICIOUS, FATAL = 2, 4
"""Cells that so many workers died with are run alone, and given up when they are alone."""


class Plan:
    """Batches of the cells that the store does not hold; `reuse` is called for each that it does."""

    def __init__(self, cells: Iterable[Cell], store: Store, reuse: Callable[[], None]) -> None:
        self.store = store
        self.fresh = self._missing(cells, reuse)
        self.again: deque[Batch] = deque()
        self.suspects: deque[Batch] = deque()
        self.measured: dict[str, tuple[float, float]] = {}  # task -> cells and seconds, faded

    def next_batch(self, *, idle: bool) -> Batch | None:
        """The next batch, if there is one that may run now; `idle`: nothing is in flight."""
        if self.suspects:
            return self.suspects.popleft() if idle else None
        if self.again:
            return self.again.popleft()
        cells, keys, expected = [], [], 0.0
        for cell, key in self.fresh:
            cells.append(cell)
            keys.append(key)
            expected += self._expected_seconds(cell.task)
            if expected >= BATCH_SECONDS or len(cells) == MOST_CELLS:
                break
        return Batch(tuple(cells), tuple(keys)) if cells else None

    def learn(self, report: Report) -> None:
        for task, seconds in report.timings:
            cells, spent = self.measured.get(task, (0.0, 0.0))
            self.measured[task] = FADING * cells + 1, FADING * spent + seconds

    def hand_out_again(self, lost: Batch, deaths: int) -> Report:
        """Plan what dead workers left undone; the report that they would have sent about the rest."""
        deaths += lost.deaths
        report = Report()
        for i, (cell, key) in enumerate(zip(lost.cells, lost.keys, strict=True)):
            if self.store.holds(key):
                report.finished += 1
            elif lost.alone and deaths >= FATAL:
                report.failures.append((i, f"the worker died, each of the last {deaths} times"))
            elif deaths >= SUSPICIOUS:
                self.suspects.append(Batch((cell,), (key,), deaths, alone=True))
            else:
                self.again.append(Batch((cell,), (key,), deaths))
        return report

    def _expected_seconds(self, task: str) -> float:
        cells, spent = self.measured.get(task, (1.0, BATCH_SECONDS))
        return spent / cells

    def _missing(self, cells: Iterable[Cell], reuse: Callable[[], None]) -> Iterator[tuple[Cell, str]]:
        for cell in cells:
            key = cell.key
            if self.store.holds(key):
                reuse()
            else:
                yield cell, key
