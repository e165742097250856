"""Where cells are computed: here, or by processes of this machine.

An engine opens a crew of workers for one run. The workers end when the run is done, when it is interrupted,
and when the process that started them is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

from normalfan.errors import InputError
from normalfan.jobs.batch import Batch, Report, run_batch, writing
from normalfan.jobs.store import Store

BATCHES_AHEAD = 2  # in flight for each worker: one that it computes, one that it finds when it is done

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
ONE_THREAD["POLARS_MAX_THREADS"] = "1"


class Crew(Protocol):
    """The workers of one run."""

    @property
    def room(self) -> int: ...  # how many batches to keep in flight

    def submit(self, batch: Batch) -> None: ...

    def wait(self) -> list[tuple[Batch, Report]]: ...  # until a batch has ended; those that have


class Engine(Protocol):
    """Where cells are computed: `Serial`, `Processes` or `Cluster`."""

    def _open(self, store: Store) -> AbstractContextManager[Crew]: ...  # for one run


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
        if self.workers is not None and self.workers < 1:
            raise InputError(
                f"workers is {self.workers}, but must be at least 1: leave it out for one for each core."
            )

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
        if any(isinstance(future.exception(), BrokenProcessPool) for future in ended):
            # One process died, and the pool ends with it.
            ended, _ = wait_for(self.batches)
            self.close()
            self._start()
        return [(self.batches.pop(future), _report(future)) for future in ended]

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


def _report(future: Future[Report]) -> Report:
    try:
        return future.result()
    except BrokenProcessPool:
        return Report(deaths=1)


def _begin_work(lifeline: Connection) -> None:
    """Leave interrupts to the client, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_client, args=(lifeline,), daemon=True).start()


def _end_with_the_client(lifeline: Connection) -> None:
    # Only the client holds the other end, and never writes: what ends the wait is its closing.
    lifeline.poll(None)
    with writing:
        os._exit(1)


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
