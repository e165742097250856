"""The layered-tree experiment at a tiny size, and what its verdicts do when the data is doctored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from normalfan_paper.experiment import LedgerRow, Scale, Verdict
from normalfan_paper.experiments.tree.run import run_cell
from normalfan_paper.experiments.tree.settings import HORIZONS
from normalfan_paper.registry import find_experiments

(EXPERIMENT,) = find_experiments(["tree"])

OFF = pl.col("horizon") - pl.col("layer") + 1 + 1e-14


@cache
def tiny() -> pl.DataFrame:
    out = []
    for cell in EXPERIMENT.cells(Scale(seeds=2, quick=True)):
        if cell["variant"] == "identity":
            out.append(run_cell(dict(cell, explicit=[5], horizons=[*HORIZONS, 5])))
        elif cell["horizon"] <= 12:
            out.append(run_cell(dict(cell, rounds=400, sequences=8)))
    return pl.concat(out)


def rows(frame: pl.DataFrame) -> dict[str, LedgerRow]:
    return {row.id: row for row in EXPERIMENT.check(frame)}


def test_cells_are_of_the_papers_size() -> None:
    cells = EXPERIMENT.cells(Scale())
    ours = [cell for cell in cells if cell["variant"] == "ours"]
    assert {cell["horizon"] for cell in ours} == {8, 12, 16, 20}
    assert sorted(seed for cell in ours if cell["horizon"] == 8 for seed in cell["seeds"]) == list(range(32))
    assert {(cell["rounds"], cell["sequences"]) for cell in ours} == {(5000, 96)}


def test_a_cell_is_deterministic_and_does_not_depend_on_its_company() -> None:
    cell = next(c for c in EXPERIMENT.cells(Scale(seeds=3, quick=True)) if c["variant"] == "ours")
    cell = dict(cell, rounds=50, sequences=2)
    whole = run_cell(cell)
    assert whole.equals(run_cell(cell))
    alone = run_cell(dict(cell, seeds=[2]))
    assert whole.filter(pl.col("seed") == 2).equals(alone)
    assert whole.schema == tiny().schema


def test_verdicts_of_the_tiny_run() -> None:
    found = rows(tiny())
    assert {name: row.verdict for name, row in found.items()} == {
        "tree/identity": Verdict.HOLDS,
        "tree/identity-digits": Verdict.ASSUMES,
        "tree/early-late": Verdict.HOLDS,
        "tree/predictors": Verdict.DEPENDS,
        "tree/together": Verdict.ASSUMES,
    }
    # What the memory of mirror descent does: regular dwell times are predicted, random ones less.
    numbers = found["tree/predictors"].numbers
    assert numbers["regular dwell, Γ, within H"] > numbers["ours, Γ, within H"]


@pytest.mark.parametrize(
    ("row", "changes", "verdict"),
    [
        ("tree/identity", {"engine": pl.col("engine") * (1 + 1e-12)}, Verdict.FALSE),
        ("tree/identity", {"summed": pl.col("summed") + 1e-10}, Verdict.FALSE),
        ("tree/identity-digits", {"summed": pl.col("multiplied")}, Verdict.HOLDS),
        ("tree/identity-digits", dict.fromkeys(("multiplied", "summed", "engine"), OFF), Verdict.FALSE),
        ("tree/early-late", {"summed": pl.col("summed") + 1.0 * (pl.col("layer") == 1)}, Verdict.FALSE),
        ("tree/together", dict.fromkeys(("raw", "price", "variation_l1"), pl.col("causal")), Verdict.HOLDS),
        ("tree/together", {"raw": pl.col("sequence") % 2}, Verdict.FALSE),
    ],
)  # fmt: skip
def test_doctored_data_flips_the_verdict(row: str, changes: dict[str, pl.Expr], verdict: Verdict) -> None:
    assert rows(tiny().with_columns(**changes))[row].verdict is verdict


def test_regret_that_every_predictor_explains_would_hold_and_noise_not() -> None:
    frame = tiny()
    columns = ["price", "causal", "raw", "variation_l1", "variation_l2", "variation_linf"]
    same = frame.with_columns((1.0 * pl.col("causal")).alias(name) for name in columns)
    explained = same.with_columns(
        pl.col("causal").cast(pl.Float32).alias(f"regret {e}")
        for e in ("0.04", "0.08", "0.15", "0.3", "0.6", "1")
    )
    assert rows(explained)["tree/predictors"].verdict is Verdict.HOLDS
    parity = (pl.col("sequence") % 2).cast(pl.Float32)
    noise = frame.with_columns(
        parity.alias(f"regret {e}") for e in ("0.04", "0.08", "0.15", "0.3", "0.6", "1")
    )
    assert rows(noise)["tree/predictors"].verdict is Verdict.UNSEEN


def test_figures(tmp_path: Path) -> None:
    names = {path.name for path in EXPERIMENT.draw(tiny(), tmp_path)}
    assert names == {
        f"tree-{name}.{kind}"
        for name in ("identity", "predictors", "predictors-designs")
        for kind in ("pdf", "png")
    }


def test_every_choice_points_at_a_row() -> None:
    known = rows(tiny()).keys()
    assert all(row in known for choice in EXPERIMENT.choices for row in choice.rows)
