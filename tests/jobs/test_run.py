"""Runs: the same results by every engine, none lost, none computed twice."""

from __future__ import annotations

import tracemalloc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jobs_support import check_complete, draws

from normalfan.jobs import Cell, Processes, Serial, Store, run_cells
from normalfan.jobs.cells import Batch, Report
from normalfan.jobs.run import Engine

ENGINES = (Serial(), pytest.param(Processes(2), marks=pytest.mark.processes))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_computes_every_cell_once(engine: Engine, tmp_path: Path) -> None:
    cells, store = draws(30), Store(tmp_path / "new" / "store")
    outcome = run_cells(iter(cells), store, engine)
    assert (outcome.finished, outcome.reused, outcome.failed) == (30, 0, 0)
    check_complete(cells, store)
    Path(store._file(cells[7].key)).unlink()
    outcome = run_cells(cells, store, engine)
    assert (outcome.finished, outcome.reused, outcome.failed) == (1, 29, 0)
    check_complete(cells, store)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_cell_is_listed_and_ends_nothing(engine: Engine, tmp_path: Path) -> None:
    cells = [Cell("job_tasks:refuse_odd", {"seed": seed}) for seed in range(9)]
    cells.append(Cell("job_tasks:return_a_number", {"seed": 9}))
    outcome = run_cells(cells, Store(tmp_path), engine)
    assert (outcome.finished, outcome.failed) == (5, 5)
    messages = {cell.settings["seed"]: message for cell, message in outcome.failures}
    assert messages.pop(9).startswith("job_tasks:return_a_number returned int, but")
    assert messages == dict.fromkeys((1, 3, 5, 7), "ArithmeticError: odd seed")
    assert repr(outcome) == "Outcome(finished=5, reused=0, failed=5)"


class Pretended:
    """An engine that computes nothing, and remembers the sizes of batches."""

    room = 4

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.batches: list[Batch] = []
        self.sizes: list[int] = []

    @contextmanager
    def _open(self, store: Store) -> Iterator[Pretended]:
        yield self

    def submit(self, batch: Batch) -> int:
        self.batches.append(batch)
        assert len(self.batches) - len(self.sizes) <= self.room
        return len(self.batches) - 1

    def wait(self, futures: Collection[int]) -> list[tuple[int, Report]]:
        first = min(futures)
        cells, self.batches[first] = self.batches[first].cells, Batch(())
        self.sizes.append(len(cells))
        timings = [(cell.task, self.seconds) for cell, _ in cells]
        return [(first, Report(finished=len(cells), timings=timings))]


def test_batches_take_about_a_second(tmp_path: Path) -> None:
    for seconds, expected in ((5.0, 1), (0.3, 4), (0.01, 100)):
        engine = Pretended(seconds)
        assert run_cells(draws(1000), Store(tmp_path), engine).finished == 1000
        assert engine.sizes[0] == 1
        assert max(engine.sizes) in (expected, expected + 1)
        assert sum(engine.sizes) == 1000


@pytest.mark.slow
def test_the_memory_of_the_client_does_not_grow_with_the_run(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        cells = (Cell("job_tasks:draw", {"seed": seed}) for seed in range(count))
        tracemalloc.start()
        assert run_cells(cells, Store(tmp_path), Pretended(0.01)).finished == count
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(20_000) < 1.3 * peak(2000)
