"""The experiment on degenerate faces at a tiny size, and what its verdicts do when the data is doctored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from normalfan_paper.experiment import LedgerRow, Scale, Verdict
from normalfan_paper.experiments.degenerate.run import run_cell
from normalfan_paper.registry import find_experiments

(EXPERIMENT,) = find_experiments(["degenerate"])

STICKY = pl.col("selector").is_in(["occupancies", "entropy", "strings"])


@cache
def tiny() -> pl.DataFrame:
    out = []
    for cell in EXPERIMENT.cells(Scale(seeds=4, quick=True)):
        small = (
            {"rounds": 30, "horizon": 3, "longest": 2, "seeds": [0]} if cell["variant"] == "explicit" else {}
        )
        out.append(run_cell({**cell, **small}))
    return pl.concat(out)


def rows(frame: pl.DataFrame) -> dict[str, LedgerRow]:
    return {row.id: row for row in EXPERIMENT.check(frame)}


def test_cells_are_of_the_papers_size() -> None:
    (ours,) = (cell for cell in EXPERIMENT.cells(Scale()) if cell["variant"] == "ours")
    assert (ours["horizon"], ours["longest"], ours["rounds"], ours["flip"]) == (20, 18, 5000, 0.025)
    assert ours["seeds"] == list(range(32))


def test_a_cell_is_deterministic_and_does_not_depend_on_its_company() -> None:
    cell = dict(EXPERIMENT.cells(Scale(seeds=2))[0], rounds=100)
    whole = run_cell(cell)
    assert whole.equals(run_cell(cell))
    assert whole.filter(pl.col("seed") == 1).equals(run_cell(dict(cell, seeds=[1])))


def test_verdicts_of_the_tiny_run() -> None:
    verdicts = {name.removeprefix("degenerate/"): row.verdict for name, row in rows(tiny()).items()}
    assert verdicts.pop("sticky-below") in (Verdict.HOLDS, Verdict.DEPENDS)
    assert verdicts == {
        "identical-price": Verdict.HOLDS,
        "oracle": Verdict.HOLDS,
        "sticky-level": Verdict.DEPENDS,
        "lexicographic-level": Verdict.DEPENDS,
        "random-level": Verdict.DEPENDS,
        "switch": Verdict.ASSUMES,
        "order": Verdict.DEPENDS,
        "random-mean": Verdict.HOLDS,
        "dimension": Verdict.HOLDS,
    }


def where(condition: pl.Expr, value: pl.Expr | float) -> pl.Expr:
    return pl.when(condition).then(value).otherwise(pl.col("selection")).alias("selection")


@pytest.mark.parametrize(
    ("row", "change", "verdict"),
    [
        ("identical-price", (pl.col("implied_price") + STICKY).alias("implied_price"), Verdict.FALSE),
        ("identical-price", pl.lit(1e-3).alias("largest_gap"), Verdict.FALSE),
        ("oracle", where(pl.col("selector") == "oracle", 1.0), Verdict.FALSE),
        ("sticky-level", where(STICKY, 0.062 * pl.col("rounds")), Verdict.HOLDS),
        ("sticky-level", where(STICKY, 0.5 * pl.col("rounds")), Verdict.UNSEEN),
        ("lexicographic-level", (0.109 * pl.col("rounds")).alias("selection"), Verdict.HOLDS),
        ("random-level", (0.2 * pl.col("rounds")).alias("selection"), Verdict.UNSEEN),
        ("switch", (0.2 * pl.col("rounds")).alias("selection"), Verdict.HOLDS),
        ("order", where(STICKY, 9.0 * pl.col("rounds")), Verdict.UNSEEN),
        ("order", where(STICKY, (1e-5 + 1e-8 * pl.col("seed")) * pl.col("rounds")), Verdict.HOLDS),
        ("random-mean", where(pl.col("selector") == "random point", 0.5 * pl.col("rounds")), Verdict.FALSE),
        ("dimension", (pl.col("rounds") / (1.0 + pl.col("free_layers"))).alias("selection"), Verdict.UNSEEN),
        ("sticky-below", where(STICKY, 9.0 * pl.col("rounds")), Verdict.UNSEEN),
        ("sticky-below", where(STICKY, 0.0), Verdict.HOLDS),
    ],
)
def test_doctored_data_flips_the_verdict(row: str, change: pl.Expr, verdict: Verdict) -> None:
    assert rows(tiny().with_columns(change))[f"degenerate/{row}"].verdict is verdict


def test_figures(tmp_path: Path) -> None:
    names = {path.name for path in EXPERIMENT.draw(tiny(), tmp_path)}
    assert names == {
        f"degenerate-{name}.{kind}" for name in ("stack", "dimension") for kind in ("pdf", "png")
    }


def test_every_choice_points_at_a_row() -> None:
    known = rows(tiny()).keys()
    assert all(row in known for choice in EXPERIMENT.choices for row in choice.rows)
