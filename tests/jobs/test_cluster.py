"""A real Dask cluster, of processes on this machine, whose parts are killed one after the other."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import KilledWorker
from sentences import check_refusal
from sweeping import SUPPORT, check_complete, draws, eventually

import normalfan
from normalfan.errors import InputError, WorkStopped
from normalfan.jobs import Cell, Cluster, Store, cluster, run_sweep
from normalfan.jobs.batch import Report
from normalfan.jobs.version import package_version

SOURCES = Path(normalfan.__file__).parents[1]

CLIENT = """
import sys
from normalfan.errors import WorkStopped
from normalfan.jobs import *

address, folder, count, seconds = sys.argv[1:]


def cells():
    print("connected", flush=True)
    for i in range(int(count)):
        yield Cell("sweep_tasks:draw", {"seed": i, "seconds": float(seconds)})


try:
    outcome = run_sweep(cells(), Store(folder), Cluster(address))
except WorkStopped as stopped:
    sys.exit(f"normalfan: {stopped}")
print(outcome.finished, outcome.reused, outcome.failed)
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
        assert eventually(self._answers, 60)
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


def test_whatever_is_killed_the_same_command_ends_with_every_cell(parts: Parts, tmp_path: Path) -> None:
    cells, store = draws(80, seconds=0.15), Store(tmp_path / "store")
    program = tmp_path / "client.py"
    program.write_text(CLIENT)
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{SUPPORT}"}
    command = [sys.executable, str(program), parts.address, str(store.folder), "80", "0.15"]

    def client() -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def there() -> int:
        return sum(cell in store for cell in cells)

    def more_than(count: int) -> Callable[[], bool]:
        return lambda: there() > count

    scheduler, worker = parts.scheduler(), parts.worker()
    parts.worker()
    first = client()
    assert eventually(more_than(2), 60)
    kill(worker)
    assert eventually(more_than(12), 60)  # the other worker goes on
    kill(first)
    parts.worker()
    before = there()
    assert before < 80
    second = client()
    assert second.stdout is not None
    assert second.stdout.readline() == "connected\n"  # cells of the first may still be on their way
    assert eventually(more_than(there()), 60)
    kill(scheduler)
    told = second.communicate(timeout=60)[1].strip()
    assert second.returncode == 1
    assert told == (
        f"normalfan: The sweep stopped: the scheduler at {parts.address} is gone; start it again, with "
        f"workers, and run the same command again: finished cells stay."
    )
    before = there()
    assert before < 80
    parts.scheduler()
    parts.worker()
    last = client()
    out, told = last.communicate(timeout=60)
    assert last.returncode == 0, told
    assert told == ""
    finished, reused, failed = map(int, out.removeprefix("connected\n").split())
    assert (finished + reused, failed) == (80, 0)
    assert reused >= before
    drafts = list(store.folder.glob("??/.*"))  # of the worker that was killed while writing
    for draft in drafts:
        draft.unlink()
    assert len(drafts) <= 1
    check_complete(cells, store)


def test_a_worker_with_other_code_is_refused_before_anything_runs(parts: Parts, tmp_path: Path) -> None:
    shutil.copytree(SOURCES / "normalfan", tmp_path / "old" / "normalfan")
    with (tmp_path / "old" / "normalfan" / "_kernels" / "walks.py").open("a") as file:
        file.write("# another version\n")
    parts.scheduler()
    worker = parts.worker(sources=tmp_path / "old")
    store = Store(tmp_path / "store")
    check_refusal(lambda: run_sweep(draws(3), store, Cluster(parts.address)), "worker tcp://")
    assert not list(store.folder.iterdir())
    kill(worker)
    parts.worker()
    outcome = run_sweep(
        [*draws(40), Cell("sweep_tasks:refuse_odd", {"seed": 1})], store, Cluster(parts.address)
    )
    assert (outcome.finished, outcome.failed) == (40, 1)
    assert outcome.failures[0].message == "ArithmeticError: odd seed"
    check_complete(draws(40), store)


def test_nobody_at_the_address_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECTING_SECONDS", 0.5)
    check_refusal(
        lambda: run_sweep(draws(1), Store(tmp_path), Cluster("tcp://127.0.0.1:9")), "tcp://127.0.0.1:9"
    )
    check_refusal(lambda: run_sweep(draws(1), Store(tmp_path), Cluster("nonsense:")), "nonsense:")


def test_a_missing_package_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    check_refusal(lambda: run_sweep(draws(1), Store(tmp_path), Cluster("tcp://127.0.0.1:9")), "distributed")


def test_what_workers_say_about_themselves(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def answer(said: object) -> Callable[[], None]:
        return lambda: cluster._check_answer("worker w", said, store)

    answer((package_version(), ""))()
    check_refusal(answer(ModuleNotFoundError("No module named 'normalfan'")), "worker w cannot run")
    check_refusal(answer(("0.0.1+00", "")), "worker w runs normalfan 0.0.1+00")
    check_refusal(answer((package_version(), "does not see")), f"worker w does not see {tmp_path}")
    token = tmp_path / "token"
    assert cluster._look_around(token) == (package_version(), "does not see")
    token.touch()
    assert cluster._look_around(token) == (package_version(), "")


class Ended:
    """A future that ended badly."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self) -> Report:
        raise self.error


def test_deaths_are_counted_and_the_rest_stops_the_sweep() -> None:
    killed = KilledWorker("task", None, 3)  # type: ignore[arg-type]
    assert cluster._report(Ended(killed)).deaths == 4  # type: ignore[arg-type]
    with pytest.raises(WorkStopped, match="cannot run its tasks"):
        cluster._report(Ended(RuntimeError("no environment")))  # type: ignore[arg-type]
    assert not issubclass(WorkStopped, InputError)
