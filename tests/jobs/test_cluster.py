"""A real Dask cluster, of processes on this machine, whose parts are killed one after the other."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import KilledWorker
from jobs_support import (
    SOURCES,
    SUPPORT,
    check_complete,
    copy_library,
    draws,
    eventually,
    gated_draws,
    write_fleet,
)
from sentences import check_refusal
from soaking import SOAK

from normalfan.errors import InputError, WorkStopped
from normalfan.jobs import Cell, Cluster, Members, Serial, Store, cluster, fleet, run_cells
from normalfan.jobs.cells import Report
from normalfan.jobs.fleet import FleetCells
from normalfan.sources import library_version

LIMITS = (5, 20, 40, 50)
"""Of the cells behind one gate after the other: whatever is killed, some cells still wait for their gate."""

CLIENT = f"""
import sys
from pathlib import Path
from jobs_support import gated_draws
from normalfan.errors import WorkStopped
from normalfan.jobs import Cluster, Store, run, run_cells

address, gates, folder = sys.argv[1:]
run.MOST_CELLS = 2


def cells():
    print("connected", flush=True)
    yield from gated_draws(Path(gates), *{LIMITS})


try:
    outcome = run_cells(cells(), Store(folder), Cluster(address))
except WorkStopped as stopped:
    sys.exit(f"normalfan: {{stopped}}")
print(outcome.finished, outcome.reused, outcome.failed)
"""

KILLS = 30

SOAKED = """
import sys
from jobs_support import draws
from normalfan.jobs import Cluster, Store, run_cells

run_cells(draws(600, seconds=0.2), Store(sys.argv[2]), Cluster(sys.argv[1]))
"""

OTHER_READER = """
def open_losses(source, *arguments, **options):
    import numpy
    from normalfan.problem.losses import ArrayLosses

    return ArrayLosses(2 * numpy.load(source))
"""


class Parts:
    """A scheduler and workers that can be started, and killed without warning."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def scheduler(self) -> subprocess.Popen[bytes]:
        process = self._dask("scheduler", "--host", self.address, "--no-dashboard")
        assert eventually(self._answers)
        return process

    def _answers(self) -> bool:
        host, port = self.address.removeprefix("tcp://").split(":")
        with socket.socket() as asking:
            return asking.connect_ex((host, int(port))) == 0

    def worker(self, sources: Path = SOURCES) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10")
        return self._dask("worker", self.address, *options, sources=sources)

    def _dask(self, *arguments: str, sources: Path = SOURCES) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{SUPPORT}"}
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "dask", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        return process

    def stop(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    own = Parts(tmp_path)
    try:
        yield own
    finally:
        own.stop()


def kill(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.processes
def test_whatever_is_killed_the_same_command_ends_with_every_cell(parts: Parts, tmp_path: Path) -> None:
    cells, store = gated_draws(tmp_path, *LIMITS), Store(tmp_path / "store")
    program = tmp_path / "client.py"
    program.write_text(CLIENT)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{SUPPORT}"}
    command = [sys.executable, str(program), parts.address, str(tmp_path), str(store.folder)]

    def client() -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def open_gate(number: int) -> None:
        (tmp_path / str(number)).touch()

    def there() -> int:
        return sum(cell in store for cell in cells)

    scheduler, workers = parts.scheduler(), [parts.worker(), parts.worker()]
    first = client()
    open_gate(0)
    assert eventually(lambda: there() > 2)
    kill(workers[0])
    open_gate(1)
    assert eventually(lambda: there() > LIMITS[0])  # the other worker goes on
    kill(first)
    workers.append(parts.worker())
    second = client()
    assert second.stdout is not None
    assert second.stdout.readline() == "connected\n"
    open_gate(2)
    assert eventually(lambda: there() > LIMITS[1])
    kill(scheduler)
    told = second.communicate(timeout=120)[1].strip()
    assert second.returncode == 1
    assert told == (
        f"normalfan: The run stopped: the scheduler at {parts.address} is gone; start it again, with "
        f"workers, and run the same command again: finished cells stay."
    )
    for worker in workers:
        kill(worker)
    before = there()
    assert LIMITS[1] < before <= LIMITS[2]
    open_gate(3)
    parts.scheduler()
    parts.worker()
    last = client()
    out, told = last.communicate(timeout=120)
    assert last.returncode == 0, told
    assert told == ""
    finished, reused, failed = map(int, out.removeprefix("connected\n").split())
    assert (finished, reused, failed) == (LIMITS[3] - before, before, 0)
    drafts = list(store.folder.glob("??/.*"))  # of workers that were killed while writing
    for draft in drafts:
        draft.unlink()
    assert len(drafts) <= len(workers)
    check_complete(cells, store)


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.skipif(not SOAK, reason="minutes long: set SOAK=1")
def test_after_thirty_kills_nothing_is_lost_or_doubled(
    parts: Parts, tmp_path: Path, rng: np.random.Generator
) -> None:
    cells, store = draws(600, seconds=0.2), Store(tmp_path / "store")
    program = tmp_path / "client.py"
    program.write_text(SOAKED)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{SUPPORT}"}
    command = [sys.executable, str(program), parts.address, str(store.folder)]

    def start_client() -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, env=environment, **quiet)  # type: ignore[call-overload]  # noqa: S603
        parts.started.append(process)
        return process

    starts = {"scheduler": parts.scheduler, "one": parts.worker, "two": parts.worker, "client": start_client}
    running = {name: start() for name, start in starts.items()}
    deaths = dict.fromkeys(running, 0)
    while sum(deaths.values()) < KILLS:
        there = sum(cell in store for cell in cells)
        assert there < len(cells), f"all done after {deaths}"
        eventually(lambda: sum(cell in store for cell in cells) > there, 10.0)  # noqa: B023
        victim = str(rng.choice(["one", "two", "one", "two", "client", "scheduler"]))
        kill(running[victim])
        deaths[victim] += 1
        print(deaths, there, flush=True)  # shown by -s
        for name, process in running.items():  # those that ended with the victim, too
            if process.poll() is not None:
                running[name] = starts[name]()
    assert min(deaths.values()) > 0
    kill(running["client"])
    outcome = run_cells(cells, store, Cluster(parts.address))
    assert (outcome.finished + outcome.reused, outcome.failed, outcome.damaged) == (len(cells), 0, 0)
    for draft in store.folder.glob("??/.*"):
        draft.unlink()
    for waited, quick in zip(cells, draws(600), strict=True):
        assert store.read(waited).equals(quick.compute())
    assert len(list(store.folder.rglob("*.parquet"))) == len(cells)


@pytest.mark.slow
@pytest.mark.processes
def test_a_frozen_scheduler_is_given_up(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECTING_SECONDS", 1.0)
    scheduler, store = parts.scheduler(), Store(tmp_path / "store")
    parts.worker()
    run_cells(draws(9)[8:], store, Cluster(parts.address))  # once the worker has joined, however slowly

    def cells() -> Iterator[Cell]:
        yield draws(9)[0]
        assert eventually(lambda: draws(9)[0] in store)
        scheduler.send_signal(signal.SIGSTOP)
        yield from draws(9)[1:]

    with pytest.raises(WorkStopped, match=r"scheduler at .* has not answered for 2 s; start it again, "):
        run_cells(cells(), store, Cluster(parts.address, patience=2.0))
    with pytest.raises(InputError, match="no Dask scheduler answered"):
        run_cells(draws(9), store, Cluster(parts.address, patience=2.0))
    scheduler.send_signal(signal.SIGCONT)
    monkeypatch.undo()
    assert run_cells(draws(9), store, Cluster(parts.address)).failed == 0
    check_complete(draws(9), store)


@pytest.mark.slow
@pytest.mark.processes
def test_a_worker_with_other_readers_is_refused_before_anything_runs(parts: Parts, tmp_path: Path) -> None:
    with (copy_library(tmp_path / "other") / "io" / "__init__.py").open("a") as file:
        file.write(OTHER_READER)
    parts.scheduler()
    worker = parts.worker(sources=tmp_path / "other")
    store = Store(tmp_path / "store")
    check_refusal(lambda: run_cells(draws(3), store, Cluster(parts.address)), "worker tcp://")
    assert not list(store.folder.iterdir())
    kill(worker)
    parts.worker()
    outcome = run_cells(
        [*draws(40), Cell("job_tasks:refuse_odd", {"seed": 1})], store, Cluster(parts.address)
    )
    assert (outcome.finished, outcome.failed) == (40, 1)
    assert outcome.failures[0][1] == "ArithmeticError: odd seed"
    check_complete(draws(40), store)


@pytest.mark.slow
@pytest.mark.processes
def test_a_worker_with_other_readers_that_joins_later_computes_nothing(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (copy_library(tmp_path / "other") / "io" / "__init__.py").open("a") as file:
        file.write(OTHER_READER)
    monkeypatch.setattr(fleet, "MOST_MEMBERS", 1)
    members = Members.of_table(write_fleet(tmp_path, 4))
    store = Store(tmp_path / "store")
    parts.scheduler()
    worker = parts.worker()

    def cells() -> Iterator[Cell]:
        for number, cell in enumerate(FleetCells(members)):
            if number == 1:
                kill(worker)
                parts.worker(sources=tmp_path / "other")
            yield cell

    with pytest.raises(WorkStopped, match="a worker runs other code than this process"):
        run_cells(cells(), store, Cluster(parts.address))
    found = sum(cell in store for cell in FleetCells(members))
    assert found <= 1  # that of the right worker, if it was quick enough
    assert run_cells(FleetCells(members), store, Serial()).reused == found
    check_complete(list(FleetCells(members)), store)


def test_nobody_at_the_address_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECTING_SECONDS", 0.5)
    check_refusal(
        lambda: run_cells(draws(1), Store(tmp_path), Cluster("tcp://127.0.0.1:9")), "tcp://127.0.0.1:9"
    )
    check_refusal(lambda: run_cells(draws(1), Store(tmp_path), Cluster("nonsense:")), "nonsense:")


def test_no_patience_is_refused() -> None:
    check_refusal(lambda: Cluster("tcp://127.0.0.1:9", patience=0), "patience is 0")


def test_a_missing_package_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    check_refusal(lambda: run_cells(draws(1), Store(tmp_path), Cluster("tcp://127.0.0.1:9")), "distributed")


def test_what_workers_say_about_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def answer(said: object) -> Callable[[], None]:
        return lambda: cluster._check_answer("worker w", said, store)

    answer((library_version(), True))()
    check_refusal(answer(ModuleNotFoundError("No module named 'normalfan'")), "worker w cannot run")
    check_refusal(answer(("0.0.1+00", True)), "worker w runs normalfan 0.0.1+00")
    check_refusal(answer((library_version(), False)), f"worker w does not see {tmp_path} or cannot write")
    token = tmp_path / "token"
    assert cluster._introduce(token) == (library_version(), False)
    token.touch()
    assert cluster._introduce(token) == (library_version(), True)


class Ended:
    """A future that ended badly."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, timeout: float) -> Report:
        raise self.error


def test_deaths_are_counted_and_the_rest_stops_the_run() -> None:
    killed = KilledWorker("task", None, 3)  # type: ignore[arg-type]
    assert cluster._report(Ended(killed), 1.0).deaths == 4  # type: ignore[arg-type]
    with pytest.raises(WorkStopped, match="cannot run its tasks"):
        cluster._report(Ended(RuntimeError("no environment")), 1.0)  # type: ignore[arg-type]
    assert not issubclass(WorkStopped, InputError)
