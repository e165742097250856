"""Where cells are computed, and what a worker does with those it is given.

An engine opens a crew of workers for one run. They end when the run is done, when it is interrupted, and when
the process that started them is killed. A worker computes a batch of cells and writes each result itself;
only counts and messages travel back. A cell that raises becomes a message; trouble with the store or with the
code is trouble for every cell, and raises `WorkStopped`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Protocol

from normalfan.cores import usable_cores
from normalfan.errors import InputError, WorkStopped, check_whole
from normalfan.jobs.cells import Cell, Store

BATCHES_AHEAD = 2  # in flight for each worker: one that it computes, one that it finds when it is done

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
ONE_THREAD["POLARS_MAX_THREADS"] = "1"

writing = threading.Lock()  # a worker that is told to end waits for it


@dataclass(frozen=True, slots=True)
class Batch:
    """Cells that travel together."""

    cells: tuple[tuple[Cell, str], ...]  # each with the key that the client has for it
    deaths: int = 0  # workers that died while they had these cells


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


class Crew(Protocol):
    """The workers of one run."""

    @property
    def room(self) -> int: ...  # how many batches to keep in flight

    def submit(self, batch: Batch) -> None: ...

    def wait(self) -> list[tuple[Batch, Report]]: ...  # until a batch has ended; those that have


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

    def submit(self, batch: Batch) -> None:
        self.batch = batch

    def wait(self) -> list[tuple[Batch, Report]]:
        return [(self.batch, run_batch(self.store, self.batch))]


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
        self.batches: dict[Future[Report], Batch] = {}
        self._start()

    def submit(self, batch: Batch) -> None:
        future: Future[Report]
        try:
            with _one_thread_each():  # processes are started when there is work for them
                future = self.pool.submit(run_batch, self.store, batch)
        except BrokenProcessPool as error:
            future = Future()
            future.set_exception(error)
        self.batches[future] = batch

    def wait(self) -> list[tuple[Batch, Report]]:
        ended: set[Future[Report]] = set()
        while not ended:  # not in one go: with polars loaded, an interrupt does not wake a thread that waits
            ended, _ = wait_for(self.batches, timeout=0.5, return_when=FIRST_COMPLETED)
        if any(map(_died, ended)):
            # One process died, and the pool ends with it.
            ended, _ = wait_for(self.batches)
            self.close()
            self._start()
        return [(self.batches.pop(one), Report(deaths=1) if _died(one) else one.result()) for one in ended]

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
