"""Sweeps: the same results by every engine, none lost, none computed twice, whatever dies on the way."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars
import pytest
from sentences import check_refusal
from sweeping import SUPPORT, check_complete, draws, eventually

import normalfan
from normalfan.errors import WorkStopped
from normalfan.jobs import Cell, Processes, Serial, Store, run_sweep
from normalfan.jobs import store as store_module
from normalfan.jobs.batch import Batch, Report
from normalfan.jobs.engines import Engine

ENGINES = (Serial(), Processes(2))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_computes_every_cell_once(engine: Engine, tmp_path: Path) -> None:
    cells, store = draws(30), Store(tmp_path / "new" / "store")
    outcome = run_sweep(iter(cells), store, engine)
    assert (outcome.finished, outcome.reused, outcome.failed) == (30, 0, 0)
    check_complete(cells, store)
    store.path(cells[7]).unlink()
    outcome = run_sweep(cells, store, engine)
    assert (outcome.finished, outcome.reused, outcome.failed) == (1, 29, 0)
    check_complete(cells, store)


def test_seconds_are_those_of_the_processor(tmp_path: Path) -> None:
    (cell,), store = draws(1, seconds=0.2), Store(tmp_path)
    run_sweep([cell], store, Serial())
    assert 0 < store.seconds(cell) < 0.1  # asleep is not at work


def test_a_key_is_the_content() -> None:
    cell = Cell("sweep_tasks:draw", {"a": 1, "b": [1, 2]}, {"data": "1f"})
    assert cell.key == Cell("sweep_tasks:draw", {"b": [1, 2], "a": 1}, {"data": "1f"}).key
    others = [
        Cell("sweep_tasks:die", cell.settings, cell.inputs),
        Cell(cell.task, {"a": 1, "b": [2, 1]}, cell.inputs),
        Cell(cell.task, {"a": 1.5, "b": [1, 2]}, cell.inputs),
        Cell(cell.task, cell.settings, {"data": "1e"}),
        Cell(cell.task, cell.settings),
    ]
    assert len({cell, *others}) == 6


def test_editing_a_kernel_makes_results_stale_and_editing_the_commands_does_not(tmp_path: Path) -> None:
    package = tmp_path / "normalfan"
    shutil.copytree(Path(normalfan.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "task.py").write_text("one = 1\n")

    def key() -> str:
        code = "from normalfan.jobs.cell import Cell; print(Cell('task:one', {}).key)"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
        return done.stdout

    keys = [key()]
    for edited in ("cli/app.py", "_kernels/walks.py", "problem/mdp.py", "../task.py"):
        with (package / edited).open("a") as file:
            file.write("# edited\n")
        keys.append(key())
    assert keys[0] == keys[1]
    assert len(set(keys[1:])) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_cell_is_listed_and_ends_nothing(engine: Engine, tmp_path: Path) -> None:
    cells = [Cell("sweep_tasks:refuse_odd", {"seed": seed}) for seed in range(9)]
    cells.append(Cell("sweep_tasks:return_a_number", {"seed": 9}))
    outcome = run_sweep(cells, Store(tmp_path), engine)
    assert (outcome.finished, outcome.failed) == (5, 5)
    messages = {failure.cell.settings["seed"]: failure.message for failure in outcome.failures}
    assert messages.pop(9).startswith("sweep_tasks:return_a_number returned int, but")
    assert messages == dict.fromkeys((1, 3, 5, 7), "ArithmeticError: odd seed")


def test_a_cell_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    killers = [
        Cell("sweep_tasks:die", {"seed": 100}),
        Cell("sweep_tasks:die", {"seed": 101, "once": str(tmp_path / "remembered")}),
    ]
    cells, store = draws(40), Store(tmp_path / "store")
    outcome = run_sweep([*cells[:20], *killers, *cells[20:]], store, Processes(2))
    assert (outcome.finished, outcome.failed) == (41, 1)
    assert outcome.failures[0].cell == killers[0]
    assert "died" in outcome.failures[0].message
    check_complete([*cells, killers[1]], store)


def running(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_workers_go_with_their_client_and_the_next_one_goes_on(blow: int, tmp_path: Path) -> None:
    signed, store = tmp_path / "signed", Store(tmp_path / "store")
    signed.mkdir()
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(SUPPORT)!r})\n"
        "from normalfan.jobs import *\n"
        "if __name__ == '__main__':\n"
        f"    settings = {{'folder': {str(signed)!r}, 'seconds': 0.05}}\n"
        "    cells = [Cell('sweep_tasks:sign_in', {**settings, 'seed': i}) for i in range(40)]\n"
        f"    run_sweep(cells, Store({str(store.folder)!r}), Processes(2))\n"
    )
    client = subprocess.Popen([sys.executable, program], stderr=subprocess.DEVNULL)  # noqa: S603
    assert eventually(
        lambda: len(list(store.folder.glob("??/*.parquet"))) > 3 and len(list(signed.iterdir())) > 1
    )
    client.send_signal(blow)
    client.wait(timeout=10)
    workers = [int(path.name) for path in signed.iterdir()]
    assert eventually(lambda: not any(map(running, workers)))
    settings = {"folder": str(signed), "seconds": 0.05}
    cells = [Cell("sweep_tasks:sign_in", {**settings, "seed": seed}) for seed in range(40)]
    there = sum(cell in store for cell in cells)
    assert 3 < there < 40
    outcome = run_sweep(cells, store, Serial())
    assert (outcome.finished, outcome.reused) == (40 - there, there)
    check_complete(cells, store)


class Pretended:
    """An engine that computes nothing, and remembers the sizes of batches."""

    room = 4

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.batches: list[Batch] = []
        self.sizes: list[int] = []

    @contextmanager
    def open(self, store: Store) -> Iterator[Pretended]:
        yield self

    @property
    def in_flight(self) -> int:
        return len(self.batches)

    def submit(self, batch: Batch) -> None:
        assert self.in_flight < self.room
        self.batches.append(batch)

    def wait(self) -> list[tuple[Batch, Report]]:
        batch = self.batches.pop(0)
        self.sizes.append(len(batch.cells))
        timings = [(cell.task, self.seconds) for cell in batch.cells]
        return [(batch, Report(finished=len(batch.cells), timings=timings))]


def test_batches_take_about_a_second(tmp_path: Path) -> None:
    for seconds, expected in ((5.0, 1), (0.3, 4), (0.01, 100)):
        engine = Pretended(seconds)
        assert run_sweep(draws(1000), Store(tmp_path), engine).finished == 1000
        assert engine.sizes[0] == 1
        assert max(engine.sizes) in (expected, expected + 1)
        assert sum(engine.sizes) == 1000


def test_the_memory_of_the_client_does_not_grow_with_the_sweep(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        cells = (Cell("sweep_tasks:draw", {"seed": seed}) for seed in range(count))
        tracemalloc.start()
        assert run_sweep(cells, Store(tmp_path), Pretended(0.01)).finished == count
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(20_000) < 1.3 * peak(2000)


def test_a_full_disk_is_a_sentence_and_what_is_finished_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, store = draws(10), Store(tmp_path)
    run_sweep(cells[:4], store, Serial())

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "written_atomically", full)
        with pytest.raises(
            WorkStopped, match=r"No space left on device\); make room there .* finished cells stay\.$"
        ):
            run_sweep(cells, store, Serial())
    check_complete(cells[:4], store)
    assert run_sweep(cells, store, Serial()).finished == 6


def test_drafts_of_killed_runs_are_swept_away(tmp_path: Path) -> None:
    (cell,), store = draws(1), Store(tmp_path)
    run_sweep([cell], store, Serial())
    fresh, old = (store.path(cell).with_name(f".{'0' * 64}.parquet.{name}") for name in ("fresh", "old"))
    fresh.touch()
    old.touch()
    os.utime(old, (0, 0))
    run_sweep([cell], store, Serial())
    assert fresh.exists()
    assert not old.exists()


def test_bad_cells_and_stores_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_refusal(lambda: Cell("no function", {}), "'no function'")
    check_refusal(lambda: Cell("sweep_tasks:draw", {"x": float("nan")}), "plain JSON")
    check_refusal(lambda: Cell("sweep_tasks:draw", {"x": polars}), "plain JSON")
    check_refusal(lambda: Cell("no.such.module:draw", {}).key, "'no.such.module'")
    check_refusal(lambda: Processes(0), "workers is 0")
    check_refusal(lambda: run_sweep([], Store(tmp_path / "file" / "inside"), Serial()), "inside")
