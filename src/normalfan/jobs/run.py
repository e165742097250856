"""Hand out batches of cells, a bounded number at a time, to the workers of an engine; count what comes back.

A batch is to take about a second, as measured during the run: shorter ones would be all bookkeeping, longer
ones would leave workers idle at the end. The cells of a batch whose worker died are handed out again one by
one; a cell that is lost once more is run with nothing else in flight. If workers die even then, the cell is
the cause, and is given up.

An engine opens a crew of workers for one run. They end when the run is done, when it is interrupted, and when
the process that started them is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from normalfan.cores import usable_cores
from normalfan.errors import InputError, check_whole
from normalfan.jobs.cells import Batch, Cell, Report, Store, run_batch, writing
from normalfan.progress import progress_bar

BATCH_SECONDS = 1.0
MOST_CELLS = 1000
FADING = 0.98  # what a measurement weighs after the next one: the last fifty cells of a task count most
SUSPICIOUS, FATAL = 2, 4  # cells that so many workers died with are run alone, and given up
LISTED = 1000  # failures that are kept: nobody would read a list of a million
BATCHES_AHEAD = 2  # in flight for each worker: one that it computes, one that it finds when it is done

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
ONE_THREAD["POLARS_MAX_THREADS"] = "1"


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
        work, in_flight = _Work(cells, store, advance), dict[Any, Batch]()
        while True:
            while len(in_flight) < crew.room and (batch := work.next_batch(idle=not in_flight)):
                in_flight[crew.submit(batch)] = batch
                if batch.deaths >= SUSPICIOUS:
                    break
            if not in_flight:
                return Outcome(work.finished, work.reused, work.failed, tuple(work.failures), work.damaged)
            for future, report in crew.wait(in_flight):
                work.take(in_flight.pop(future), report)


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


class Crew(Protocol):
    """The workers of one run."""

    @property
    def room(self) -> int: ...  # how many batches to keep in flight

    def submit(self, batch: Batch) -> Any: ...  # its future

    def wait(self, futures: Collection[Any]) -> list[tuple[Any, Report]]: ...  # those that have ended


class Engine(Protocol):
    """Where cells are computed: `Serial`, `Processes` or `Cluster`."""

    def _open(self, store: Store) -> AbstractContextManager[Crew]: ...  # for one run


@dataclass(frozen=True, slots=True)
class Serial:
    """One cell after the other, in this process.

    Examples
    --------
    >>> Serial()
    Serial()
    """

    @contextmanager
    def _open(self, store: Store) -> Iterator[Crew]:
        yield _Alone(store)


class _Alone:
    room = 1

    def __init__(self, store: Store) -> None:
        self.store = store

    def submit(self, batch: Batch) -> Future[Report]:
        future: Future[Report] = Future()
        future.set_result(run_batch(self.store, batch))
        return future

    def wait(self, futures: Collection[Future[Report]]) -> list[tuple[Future[Report], Report]]:
        return [(one, one.result()) for one in futures]


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of this machine, each computing on one thread.

    A program that uses it starts its work under ``if __name__ == "__main__":``, because every worker imports
    the program.

    Parameters
    ----------
    workers : int, optional
        How many, at least 1; by default one for each core that this process may use.

    Examples
    --------
    >>> Processes(8)
    Processes(workers=8)
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_whole("workers", self.workers, "leave it out for one for each core")

    @contextmanager
    def _open(self, store: Store) -> Iterator[Crew]:
        crew = _LocalCrew(store, self.workers or usable_cores())
        try:
            yield crew
        finally:
            crew.close()


class _LocalCrew:
    def __init__(self, store: Store, workers: int) -> None:
        self.store, self.workers = store, workers
        self.room = BATCHES_AHEAD * workers
        self._start()

    def submit(self, batch: Batch) -> Future[Report]:
        try:
            with _one_thread_each():  # processes are started when there is work for them
                return self.pool.submit(run_batch, self.store, batch)
        except BrokenProcessPool as error:
            broken: Future[Report] = Future()
            broken.set_exception(error)
            return broken

    def wait(self, futures: Collection[Future[Report]]) -> list[tuple[Future[Report], Report]]:
        ended: set[Future[Report]] = set()
        while not ended:  # not in one go: with polars loaded, an interrupt does not wake a thread that waits
            ended, _ = wait_for(futures, timeout=0.5, return_when=FIRST_COMPLETED)
        if any(map(_died, ended)):
            # One process died, and the pool ends with it.
            ended, _ = wait_for(futures)
            self.close()
            self._start()
        return [(one, Report(deaths=1) if _died(one) else one.result()) for one in ended]

    def close(self) -> None:
        self.lifeline.close()
        self.pool.shutdown(cancel_futures=True)
        self.handle.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
        self.handle, self.lifeline = context.Pipe(duplex=False)
        self.pool = ProcessPoolExecutor(self.workers, context, _begin_work, (self.handle,))
        try:
            with _one_thread_each():
                self.pool.submit(os.getpid).result()
        except BrokenProcessPool:
            raise InputError(
                "worker processes end before they begin, but each must be able to import the program that "
                'starts them: put the call under `if __name__ == "__main__":`.'
            ) from None


def _died(future: Future[Report]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _begin_work(lifeline: Connection) -> None:
    """Leave interrupts to the client, and end when it is gone."""

    def end_with_the_client() -> None:
        # Only the client holds the other end, and never writes: what ends the wait is its closing.
        lifeline.poll(None)
        with writing:
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_the_client, daemon=True).start()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started in here compute on one thread each: the cores are taken by processes."""
    before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)
