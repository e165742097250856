"""The client's loop: hand out batches, a bounded number at a time, and count what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized

from normalfan.errors import WorkStopped
from normalfan.jobs.batch import Batch, Report
from normalfan.jobs.cell import Cell
from normalfan.jobs.engines import Crew, Engine
from normalfan.jobs.outcome import LISTED, Failure, Outcome
from normalfan.jobs.plan import Plan
from normalfan.jobs.store import Store
from normalfan.progress import progress_bar


def run_sweep(
    cells: Iterable[Cell], store: Store, engine: Engine, *, progress: bool = True, label: str = ""
) -> Outcome:
    """Compute every cell that the store does not hold yet.

    `cells` may be a generator: it is read only as far as workers have room. A cell that raises is listed in
    the outcome and does not end the sweep. `WorkStopped` is raised when no cell could go on: the disk is
    full, the scheduler is gone.
    """
    store.prepare()
    total = len(cells) if isinstance(cells, Sized) else None
    with progress_bar(label or "cells", total, progress) as advance:
        tally = _Tally(advance)
        plan = Plan(cells, store, tally.reuse)
        with engine.open(store) as crew:
            _drive(crew, plan, tally)
    return Outcome(tally.finished, tally.reused, tally.failed, tuple(tally.failures))


def _drive(crew: Crew, plan: Plan, tally: _Tally) -> None:
    while True:
        while crew.in_flight < crew.room and (batch := plan.next_batch(idle=not crew.in_flight)):
            crew.submit(batch)
            if batch.alone:
                break
        if not crew.in_flight:
            return
        for batch, report in crew.wait():
            if report.deaths:
                report = plan.hand_out_again(batch, report.deaths)
            if report.trouble:
                raise WorkStopped(f"The sweep stopped: {report.trouble}")
            plan.learn(report)
            tally.count(batch, report)


class _Tally:
    """Counts, and the progress bar."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self.advance = advance
        self.finished = self.reused = self.failed = 0
        self.failures: list[Failure] = []

    def reuse(self) -> None:
        self.reused += 1
        self.advance(1)

    def count(self, batch: Batch, report: Report) -> None:
        self.finished += report.finished
        self.failed += len(report.failures)
        self.advance(report.finished + len(report.failures))
        for i, message in report.failures[: LISTED - len(self.failures)]:
            self.failures.append(Failure(batch.cells[i], message))
