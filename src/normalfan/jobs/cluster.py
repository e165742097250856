"""Cells computed by a Dask cluster, given by the address of its scheduler.

Its workers need the same code as the client and must see the store under the same path: both are checked
before anything runs, and the code once more with every cell, since workers may join later. Dask hands a batch
to another worker when one dies.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import Future as MadeLater
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from normalfan.errors import InputError, WorkStopped, check_installed
from normalfan.jobs.cells import Batch, Report, Store, run_batch
from normalfan.jobs.run import BATCHES_AHEAD, Crew
from normalfan.sources import library_version

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECTING_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 5.0  # how often to ask how many workers there are


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster.

    Parameters
    ----------
    address, patience : str, float
        Of its scheduler, and the seconds after which one that is silent or has no workers is given up.

    Examples
    --------
    >>> Cluster("tcp://10.0.0.1:8786")
    Cluster(address='tcp://10.0.0.1:8786', patience=60.0)
    """

    address: str
    patience: float = 60.0

    def __post_init__(self) -> None:
        if not self.patience > 0:
            raise InputError(f"patience is {self.patience}, but it is a time to wait: pass seconds above 0.")

    @contextmanager
    def _open(self, store: Store) -> Iterator[Crew]:
        check_installed("distributed", "a cluster needs it", "cluster")
        import distributed.client  # noqa: F401  its loggers are there only once it is imported

        with _quiet():
            try:
                client = _connected(self.address)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answered at {self.address} ({str(error) or 'silence'}), but the run "
                    f"needs one: start one with `dask scheduler`, or correct the address."
                ) from None
            try:
                with self._scheduler_needed():
                    self._check_workers(client, store)
                yield _DaskCrew(client, store, self)
            finally:
                with suppress(TimeoutError):  # frozen, and given up
                    client.close(timeout=1)

    @contextmanager
    def _scheduler_needed(self) -> Iterator[None]:
        try:
            yield
        except (OSError, CancelledError) as error:
            frozen = f"has not answered for {self.patience:g} s"
            raise WorkStopped(
                f"The run stopped: the scheduler at {self.address} "
                f"{frozen if isinstance(error, TimeoutError) else 'is gone'}; start it again, with workers, "
                f"and run the same command again: finished cells stay."
            ) from None

    def _check_workers(self, client: Client, store: Store) -> None:
        """Every worker must run this code and see this store."""
        deadline = time.monotonic() + self.patience
        while not client.nthreads(callback_timeout=self.patience):
            if time.monotonic() > deadline:
                raise InputError(
                    f"the cluster at {self.address} has no workers, but the run needs at least one: "
                    f"start some with `dask worker {self.address}`."
                )
            time.sleep(0.1)
        token = store.folder / f".seen-{uuid4().hex}"
        token.touch()
        try:
            found = client.run(_introduce, token, on_error="return", callback_timeout=self.patience)
        finally:
            token.unlink()
        answers: dict[str, Any] = {f"worker {worker}": answer for worker, answer in found.items()}
        try:
            version = client.run_on_scheduler(library_version, callback_timeout=self.patience)
            answers["the scheduler"] = version, True
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it met, the sentence is the same
            answers["the scheduler"] = error
        for who, answer in answers.items():
            _check_answer(who, answer, store)


class _DaskCrew:
    def __init__(self, client: Client, store: Store, cluster: Cluster) -> None:
        self.client, self.store, self.cluster = client, store, cluster
        self.ended: SimpleQueue[Future[Report]] = SimpleQueue()
        self.threads, self.counted, self.staffed = 1, -LOOK_AGAIN_SECONDS, time.monotonic()

    @property
    def room(self) -> int:
        if time.monotonic() - self.counted > LOOK_AGAIN_SECONDS:
            self._count_workers()
        return BATCHES_AHEAD * self.threads

    def submit(self, batch: Batch) -> Future[Report]:
        with self.cluster._scheduler_needed():
            future = self.client.submit(run_batch, self.store, batch, pure=False)
        future.add_done_callback(self.ended.put)
        return future

    def wait(self, futures: Collection[Future[Report]]) -> list[tuple[Future[Report], Report]]:
        with self.cluster._scheduler_needed():
            while True:
                with suppress(Empty):
                    future = self.ended.get(timeout=1.0)
                    return [(future, _report(future, self.cluster.patience))]
                if self.client.status != "running" or any(future.cancelled() for future in futures):
                    raise CancelledError
                self._count_workers()

    def _count_workers(self) -> None:
        with self.cluster._scheduler_needed():
            threads = sum(self.client.nthreads(callback_timeout=self.cluster.patience).values())
        self.counted = time.monotonic()
        if threads:
            self.threads, self.staffed = threads, self.counted
        elif self.counted - self.staffed > self.cluster.patience:
            raise WorkStopped(
                f"The run stopped: the cluster at {self.cluster.address} has had no worker for "
                f"{self.cluster.patience:g} s; start some, and run the same command again: finished cells "
                f"stay."
            )


def _connected(address: str) -> Client:
    """A client, made in a thread of its own: `Client` waits for a frozen scheduler forever."""
    import distributed

    made: MadeLater[Client] = MadeLater()

    def make() -> None:
        try:
            options = {"timeout": CONNECTING_SECONDS, "set_as_default": False, "name": "normalfan"}
            made.set_result(distributed.Client(address, **options))
        except BaseException as error:  # noqa: BLE001  whoever waits for it gets it
            made.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return made.result(2 * CONNECTING_SECONDS)


def _report(future: Future[Report], patience: float) -> Report:
    from distributed import KilledWorker

    try:
        report: Report = future.result(patience)  # fetched by way of the scheduler
    except KilledWorker as killed:
        return Report(deaths=killed.allowed_failures + 1)
    except (OSError, CancelledError, WorkStopped):
        raise
    except Exception as error:  # noqa: BLE001  tasks catch their own: this is Dask's
        raise WorkStopped(f"The run stopped: the cluster cannot run its tasks ({error}).") from None
    return report


def _check_answer(who: str, answer: Any, store: Store) -> None:
    if isinstance(answer, BaseException):
        raise InputError(
            f"{who} cannot run this version of normalfan ({type(answer).__name__}: {answer}), but results "
            f"must come from the same code everywhere: install normalfan {library_version()} there."
        )
    version, may_write = answer
    if version != library_version():
        raise InputError(
            f"{who} runs normalfan {version}, but this process runs {library_version()} and results must "
            f"come from the same code everywhere: install one version, and restart what runs another."
        )
    if not may_write:
        raise InputError(
            f"{who} does not see {store.folder} or cannot write to it, but workers write their results "
            f"there: choose a folder on a file system that all machines share, under the same path."
        )


def _introduce(token: Path) -> tuple[str, bool]:
    """What a worker says of itself: its code, and whether it can write beside a file that the client made."""
    return library_version(), token.exists() and os.access(token.parent, os.W_OK)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Dask's log of lost connections: our own sentence says it."""
    before = {
        logger: logger.level
        for name, logger in logging.root.manager.loggerDict.items()
        if name.startswith("distributed") and isinstance(logger, logging.Logger)
    }
    for logger in before:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)
