"""Cells, named by their content, and their results on disk: whole or not at all, and nothing left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from jobs_support import check_complete, copy_library, draws
from sentences import check_refusal

from normalfan.errors import WorkStopped
from normalfan.jobs import Cell, Serial, Store, run_cells
from normalfan.jobs import cells as cells_module


def test_a_key_is_the_content() -> None:
    cell = Cell("job_tasks:draw", {"a": 1, "b": [1, 2]}, {"data": "1f"})
    assert cell.key == Cell("job_tasks:draw", {"b": [1, 2], "a": 1}, {"data": "1f"}).key
    others = [
        Cell("job_tasks:die", cell.settings, cell.inputs),
        Cell(cell.task, {"a": 1, "b": [2, 1]}, cell.inputs),
        Cell(cell.task, {"a": 1.5, "b": [1, 2]}, cell.inputs),
        Cell(cell.task, cell.settings, {"data": "1e"}),
        Cell(cell.task, cell.settings),
    ]
    assert len({cell, *others}) == 6


@pytest.mark.slow
@pytest.mark.processes
def test_editing_a_kernel_makes_results_stale_and_editing_the_commands_does_not(tmp_path: Path) -> None:
    library = copy_library(tmp_path)
    (tmp_path / "task.py").write_text("import normalfan as nf\n")

    def key() -> str:
        code = "from normalfan.jobs.cells import Cell; print(Cell('task:one', {}).key)"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
        return done.stdout

    keys = [key()]
    for edited in ("cli/app.py", "_kernels/dense.py", "problem/mdp.py", "../task.py"):
        with (library / edited).open("a") as file:
            file.write("# edited\n")
        keys.append(key())
    assert keys[0] == keys[1]
    assert len(set(keys[1:])) == 4


def test_a_long_cell_has_a_short_repr() -> None:
    cell = Cell("job_tasks:draw", {"members": [{"member": f"m{i}"} for i in range(1000)]})
    assert len(repr(cell)) < 300
    assert "m999" in str(cell)


def test_bad_cells_are_refused() -> None:
    check_refusal(lambda: Cell("no function", {}), "'no function'")
    check_refusal(lambda: Cell("job_tasks:draw", {"x": float("nan")}), "plain JSON")
    check_refusal(lambda: Cell("job_tasks:draw", {"x": polars}), "plain JSON")
    check_refusal(lambda: Cell("no.such.module:draw", {}).key, "'no.such.module'")
    check_refusal(
        Cell("job_tasks:return_a_number", {"seed": 9}).compute, "job_tasks:return_a_number returned"
    )


def test_seconds_are_those_of_the_processor(tmp_path: Path) -> None:
    (cell,), store = draws(1, seconds=0.5), Store(tmp_path)
    run_cells([cell], store, Serial())
    assert 0 < store.seconds(cell) < 0.5  # asleep is not at work


def test_a_full_disk_is_a_sentence_and_what_is_finished_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, store = draws(10), Store(tmp_path)
    run_cells(cells[:4], store, Serial())

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(cells_module, "written_atomically", full)
        with pytest.raises(
            WorkStopped,
            match=r"The run stopped: .*No space left on device\); make room .* finished cells stay\.$",
        ):
            run_cells(cells, store, Serial())
    check_complete(cells[:4], store)
    assert run_cells(cells, store, Serial()).finished == 6


def test_drafts_of_killed_runs_are_removed(tmp_path: Path) -> None:
    (cell,), store = draws(1), Store(tmp_path)
    run_cells([cell], store, Serial())
    fresh, old = (
        Path(store._file(cell.key)).with_name(f".{'0' * 64}.parquet.{name}") for name in ("fresh", "old")
    )
    fresh.touch()
    old.touch()
    os.utime(old, (0, 0))
    run_cells([cell], store, Serial())
    assert fresh.exists()
    assert not old.exists()


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_refusal(lambda: run_cells([], Store(tmp_path / "file" / "inside"), Serial()), "inside")


def flip(content: bytes, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    (cell,), store = draws(1), Store(tmp_path)
    run_cells([cell], store, Serial())
    path = Path(store._file(cell.key))
    content = path.read_bytes()
    assert cell in store
    for damaged in (
        *(flip(content, bit) for bit in range(0, 8 * len(content), 7)),
        *(content[:size] for size in range(0, len(content), 13)),
        content + b"\0",
    ):
        path.write_bytes(damaged)
        assert cell not in store
    check_refusal(lambda: store.read(cell), path.name)


def test_damaged_swapped_and_empty_results_are_computed_again_and_counted(tmp_path: Path) -> None:
    cells, store = draws(6), Store(tmp_path)
    run_cells(cells, store, Serial())
    one, two, flipped, empty, pipe = (Path(store._file(cell.key)) for cell in cells[:5])
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    flipped.write_bytes(flip(flipped.read_bytes(), 99))
    empty.write_bytes(b"")
    pipe.unlink()
    os.mkfifo(pipe)
    outcome = run_cells(cells, store, Serial())
    assert (outcome.finished, outcome.reused, outcome.damaged) == (5, 1, 5)
    check_complete(cells, store)
    assert run_cells(cells, store, Serial()).damaged == 0
