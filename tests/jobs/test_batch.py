"""What a worker does with the cells it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs_support import check_complete, draws

from normalfan.errors import WorkStopped
from normalfan.jobs import Cell, Store
from normalfan.jobs.batch import Batch, run_batch


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
