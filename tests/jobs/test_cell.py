"""Cells: a result's name is made of all that decides it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from jobs_support import copy_library
from sentences import check_refusal

from normalfan.jobs import Cell


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
        code = "from normalfan.jobs.cell import Cell; print(Cell('task:one', {}).key)"
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
