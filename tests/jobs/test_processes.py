"""Processes of this machine: what happens when a cell kills them, and when their client is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jobs_support import SUPPORT, check_complete, draws, eventually, gated_draws
from sentences import check_refusal

from normalfan.errors import WorkStopped
from normalfan.jobs import Cell, Processes, Serial, Store, run_cells
from normalfan.jobs.cells import Batch, run_batch

CLIENT = """
import sys
from pathlib import Path
from jobs_support import gated_draws
from normalfan.jobs import Processes, Store, run_cells

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    cells = gated_draws(folder, 10, 40, task="sign_in", folder=str(folder / "signed"))
    run_cells(cells, Store(folder / "store"), Processes(2))
"""


@pytest.mark.slow
@pytest.mark.processes
def test_a_cell_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    killers = [
        Cell("job_tasks:die", {"seed": 100}),
        Cell("job_tasks:die", {"seed": 101, "once": str(tmp_path / "remembered")}),
    ]
    cells, store = draws(40), Store(tmp_path / "store")
    outcome = run_cells([*cells[:20], *killers, *cells[20:]], store, Processes(2))
    assert (outcome.finished, outcome.failed) == (41, 1)
    ((cell, message),) = outcome.failures
    assert cell == killers[0]
    assert "died" in message
    check_complete([*cells, killers[1]], store)


def running(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_client_and_the_next_one_goes_on(blow: int, tmp_path: Path) -> None:
    signed, store = tmp_path / "signed", Store(tmp_path / "store")
    signed.mkdir()
    program = tmp_path / "program.py"
    program.write_text(CLIENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}
    command = [sys.executable, str(program), str(tmp_path)]
    (tmp_path / "0").touch()  # ten cells may be computed, the others wait
    client = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        assert eventually(lambda: len(list(store.folder.glob("??/*.parquet"))) > 3)
        client.send_signal(blow)
        client.wait(timeout=60)  # though cells are under way that would wait forever
    finally:
        client.kill()
        client.wait()
    workers = [int(path.name) for path in signed.iterdir()]
    assert eventually(lambda: not any(map(running, workers)))
    cells = gated_draws(tmp_path, 10, 40, task="sign_in", folder=str(signed))
    there = sum(cell in store for cell in cells)
    assert 3 < there <= 10
    (tmp_path / "1").touch()
    outcome = run_cells(cells, store, Serial())
    assert (outcome.finished, outcome.reused) == (40 - there, there)
    check_complete(cells, store)


def test_no_workers_are_refused() -> None:
    check_refusal(lambda: Processes(0), "workers is 0")


def test_a_batch_that_comes_again_is_not_computed_again(tmp_path: Path) -> None:
    cells, store = draws(3), Store(tmp_path)
    batch = Batch(tuple((cell, cell.key) for cell in cells))
    first, second = run_batch(store, batch), run_batch(store, batch)
    assert (first.finished, second.finished) == (3, 3)
    assert (len(first.timings), len(second.timings)) == (3, 0)
    check_complete(cells, store)


def test_a_worker_whose_code_gives_another_key_computes_nothing(tmp_path: Path) -> None:
    (cell,), store = draws(1), Store(tmp_path)
    with pytest.raises(WorkStopped, match="a worker runs other code than this process"):
        run_batch(store, Batch(((cell, "0" * 64),)))
    unknown = Cell("no.such.module:draw", {})
    with pytest.raises(WorkStopped, match=r"'no\.such\.module' was not found"):
        run_batch(store, Batch(((unknown, "0" * 64),)))
    assert not list(tmp_path.iterdir())
