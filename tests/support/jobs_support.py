"""Cells to compute, and what must be true of a store afterwards."""

from __future__ import annotations

import shutil
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars

import normalfan as nf
from normalfan.jobs import Cell, Store

SOURCES = Path(nf.__file__).parents[1]
SUPPORT = Path(__file__).parent
"""Where processes of their own find the library, and the tasks of the tests."""


def draws(count: int, **settings: Any) -> list[Cell]:
    return [Cell("job_tasks:draw", {"seed": seed, **settings}) for seed in range(count)]


def gated_draws(gates: Path, *limits: int, task: str = "draw", **settings: Any) -> list[Cell]:
    """Cells with seeds below the last limit; those below the i-th wait for a file `i` among the gates."""

    def gate(seed: int) -> str:
        return str(gates / str(bisect_right(limits, seed)))

    return [
        Cell(f"job_tasks:{task}", {"seed": seed, "gate": gate(seed), **settings})
        for seed in range(limits[-1])
    ]


def check_complete(cells: list[Cell], store: Store) -> None:
    """Every cell is there, once, with what computing it here gives, and nothing else is."""
    for cell in cells:
        assert store.read(cell).equals(cell.compute())
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert sorted(files) == sorted({Path(store._file(cell.key)) for cell in cells})


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether a condition is met; the time is only there to end a test that would never end."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def copy_library(folder: Path) -> Path:
    """A copy of the library that a test may edit."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(SOURCES / "normalfan", folder / "normalfan", ignore=ignored))


def write_fleet(folder: Path, count: int) -> Path:
    """The table of a fleet whose members have one state, two actions and losses of their own."""
    nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), initial=0, horizon=1), folder / "model.npz")
    rows = []
    for i in range(count):
        np.save(folder / f"m{i}.npy", np.reshape([0.0, 1.0, 2.0 + i, 1.0, 0.0, 1.0], (3, 1, 1, 2)))
        rows.append({"member": f"m{i}", "model": "model.npz", "losses": f"m{i}.npy"})
    table = folder / "fleet.parquet"
    polars.DataFrame(rows).write_parquet(table)
    return table
