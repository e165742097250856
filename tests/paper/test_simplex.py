"""The simplex experiment at a tiny size, and what its verdicts do when the data is doctored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import normalfan as nf
from normalfan.learners.selectors import FaceTracker
from normalfan_paper.environments.simplex_regimes import crossings
from normalfan_paper.experiment import LedgerRow, Scale, Verdict
from normalfan_paper.experiments.simplex.check import best_regrets
from normalfan_paper.experiments.simplex.run import measure, run_cell, tracker_regret
from normalfan_paper.registry import find_experiments

(EXPERIMENT,) = find_experiments(["simplex"])


@cache
def tiny() -> pl.DataFrame:
    cells = [c for c in EXPERIMENT.cells(Scale(seeds=2, quick=True)) if c["arms"] == 16]
    return pl.concat([run_cell(dict(cell, rounds=200, trials=2)) for cell in cells])


def rows(frame: pl.DataFrame) -> dict[str, LedgerRow]:
    return {row.id: row for row in EXPERIMENT.check(frame)}


def test_cells_are_plain_and_distinct_and_of_the_papers_size() -> None:
    cells = EXPERIMENT.cells(Scale())
    ours = [cell for cell in cells if cell["variant"] == "ours"]
    assert len(ours) == 4 * 32
    assert {cell["seed"] for cell in ours} == set(range(32))
    assert {(cell["rounds"], cell["trials"], len(cell["regimes"])) for cell in ours} == {(5000, 24, 4)}
    assert len({repr(sorted(cell.items())) for cell in cells}) == len(cells)


def test_a_cell_is_deterministic_and_has_the_common_schema() -> None:
    cell = dict(EXPERIMENT.cells(Scale(seeds=1, quick=True))[0], rounds=50, trials=1)
    assert run_cell(cell).equals(run_cell(cell))
    assert run_cell(cell).schema == tiny().schema


def test_the_tracker_is_the_face_tracker(rng: np.random.Generator) -> None:
    mdp, losses = crossings(60, 5, 0.25, rate=0.4, rng=rng)
    log = nf.run(mdp, FaceTracker(mdp), losses)
    np.testing.assert_allclose(tracker_regret(losses[:, 0, 0]), log.regrets, 1e-13)
    measured = measure(crossings(60, 5, 0.25, rate=0.4, rng=rng), [0.3])
    assert measured["tracker"] == pytest.approx(measured["tracker_first"] + measured["price"], abs=1e-12)


def test_verdicts_of_the_tiny_run() -> None:
    verdicts = {name: row.verdict for name, row in rows(tiny()).items()}
    assert verdicts["simplex/decomposition"] is Verdict.HOLDS
    assert verdicts["simplex/tracker-price"] is Verdict.HOLDS
    assert verdicts["simplex/within-cone-price"] is Verdict.HOLDS
    assert verdicts["simplex/tracker-variation"] is Verdict.DEPENDS
    assert verdicts["simplex/within-cone-variation"] is Verdict.DEPENDS
    assert verdicts["simplex/pooled"] is Verdict.DEPENDS


@pytest.mark.parametrize(
    ("row", "change", "verdict"),
    [
        ("simplex/decomposition", pl.lit(1e-6).alias("tracker_gap"), Verdict.FALSE),
        ("simplex/tracker-price", (-pl.col("price")).alias("price"), Verdict.FALSE),
        ("simplex/within-cone-price", (pl.col("price") + 1).alias("price"), Verdict.FALSE),
        ("simplex/within-cone-variation", pl.lit(1.0).alias("rounds"), Verdict.FALSE),
        ("simplex/tracker-variation", (-(pl.col("tracker") ** 2)).alias("tracker"), Verdict.FALSE),
    ],
)
def test_doctored_data_flips_the_verdict(row: str, change: pl.Expr, verdict: Verdict) -> None:
    frame = tiny()
    if row == "simplex/tracker-variation":  # a regret that falls with every variation
        frame = frame.with_columns(pl.col("variation_linf").alias(f"variation_{n}") for n in ("l1", "l2"))
        change = (-pl.col("variation_linf")).alias("tracker")
    assert rows(frame.with_columns(change))[row].verdict is verdict


def test_variation_that_agrees_everywhere_would_hold() -> None:
    frame = tiny()
    per_round = 2600.0 / 5000 * pl.col("rounds")
    frame = frame.with_columns(per_round.alias(f"variation_{norm}") for norm in ("l1", "l2", "linf"))
    assert rows(frame)["simplex/within-cone-variation"].verdict is Verdict.HOLDS


def test_geometry_blind_regret_is_tied_or_not() -> None:
    frame = tiny()
    runs = [name for name in frame.columns if name.split(" ")[0] in ("hedge", "optimistic", "euclidean")]
    yardsticks = ["price", "variation_l1", "variation_l2", "variation_linf"]
    place = pl.int_range(pl.len()).over("variant", "seed")
    pairs = frame.with_columns((place // 2).cast(pl.Float64).alias(name) for name in yardsticks)
    # Alternating signs within pairs of one yardstick: no correlation at all.
    untied = pairs.with_columns((1.0 - 2.0 * (place % 2)).alias(name) for name in runs)
    assert rows(untied)["simplex/geometry-blind"].verdict is Verdict.HOLDS
    tied = pairs.with_columns((place // 2).cast(pl.Float64).alias(name) for name in runs)
    assert rows(tied)["simplex/geometry-blind"].verdict is Verdict.FALSE


def test_the_best_step_size_is_chosen_by_the_mean_over_its_group() -> None:
    frame = pl.DataFrame(
        {
            "arms": [2, 2, 4, 4],
            "tracker": [0.0] * 4,
            "hedge 0.1": [1.0, 5.0, 1.0, 1.0],
            "hedge 1": [2.0, 2.0, 2.0, 2.0],
        }
    )
    frame = frame.with_columns(
        pl.col(f"hedge {e}").alias(f"{a} {e}") for a in ("optimistic", "euclidean") for e in ("0.1", "1")
    )
    assert best_regrets(frame, ["arms"])["hedge"].tolist() == [2.0, 2.0, 1.0, 1.0]
    assert best_regrets(frame, [])["hedge"].tolist() == [1.0, 5.0, 1.0, 1.0]


def test_figures(tmp_path: Path) -> None:
    names = {path.name for path in EXPERIMENT.draw(tiny(), tmp_path)}
    assert names == {"simplex.pdf", "simplex.png"}
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)


def test_every_choice_points_at_a_row() -> None:
    known = rows(tiny()).keys()
    assert all(row in known for choice in EXPERIMENT.choices for row in choice.rows)
