"""Cells to compute, and what must be true of a store afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from normalfan.jobs import Cell, Store

SUPPORT = Path(__file__).parent
"""Where processes of their own find the tasks of the tests."""


def draws(count: int, **settings: Any) -> list[Cell]:
    return [Cell("sweep_tasks:draw", {"seed": seed, **settings}) for seed in range(count)]


def check_complete(cells: list[Cell], store: Store) -> None:
    """Every cell is there, once, with what computing it here gives, and nothing else is."""
    for cell in cells:
        assert store.read(cell).equals(cell.compute())
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert sorted(files) == sorted({store.path(cell) for cell in cells})


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met
