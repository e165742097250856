"""The simplex experiment at a tiny size, and what its verdicts do when the data is doctored."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import normalfan as nf
from normalfan.learners.selectors import FaceTracker
from normalfan_paper.environments.simplex_regimes import crossings
from normalfan_paper.experiment import LedgerRow, Scale, Verdict
from normalfan_paper.experiments.simplex.designs import (
    NORM_NAMES,
    PAPER,
    Design,
    all_designs,
    correlations,
    members,
    numbers_of_design,
    ours,
    ways_of,
)
from normalfan_paper.experiments.simplex.run import measure, run_cell, tracker_regret
from normalfan_paper.experiments.simplex.settings import REGIMES, ways
from normalfan_paper.judging import correlation
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
    assert json.loads(json.dumps(cells)) == cells
    for part, trials, number in (("ours", 24, 4), ("map", 4, 4 + 3 + 2 * 3 * 6)):
        some = [cell for cell in cells if cell["part"] == part]
        assert len(some) == 4 * 32
        assert {cell["seed"] for cell in some} == set(range(32))
        assert {(c["rounds"], c["trials"], len(c["ways"])) for c in some} == {(5000, trials, number)}
    assert len({repr(sorted(cell.items())) for cell in cells}) == len(cells)


def test_a_cell_is_deterministic_and_has_the_common_schema() -> None:
    for cell in EXPERIMENT.cells(Scale(seeds=1, quick=True))[::2]:
        small = dict(cell, rounds=50, trials=1)
        assert run_cell(small).equals(run_cell(small))
        assert run_cell(small).schema == tiny().schema


def test_the_tracker_is_the_face_tracker(rng: np.random.Generator) -> None:
    mdp, losses = crossings(60, 5, 0.25, rate=0.4, rng=rng)
    log = nf.run(mdp, FaceTracker(mdp), losses)
    np.testing.assert_allclose(tracker_regret(losses[:, 0, 0]), log.regrets, 1e-13)
    measured = measure(crossings(60, 5, 0.25, rate=0.4, rng=rng), [0.3])
    assert measured["tracker"] == pytest.approx(measured["tracker_first"] + measured["price"], abs=1e-12)


# --- the map -------------------------------------------------------------------------------------


def test_the_map_is_the_product_of_all_choices() -> None:
    designs = list(all_designs())
    assert len(designs) == len(set(designs)) == 4 * 3 * 3 * 6 * 3
    assert ours() == designs[:3]
    assert [design.norm for design in ours()] == list(NORM_NAMES)
    assert {ways(regime)[0] for regime in REGIMES} == {("walk", None), ("held", None), ("held", 0.5)}


def test_a_designs_numbers_are_those_of_its_rows() -> None:
    """By hand, from the frame, for one design in a corner of the map."""
    design = Design("redraw", "walk", "redrawn", 0.02, "variation_l2")
    frame = tiny().filter(pl.col("part") == "map")
    chosen = frame.filter(
        ((pl.col("regime") == "within_cone") & (pl.col("motion") == "redraw"))
        | ((pl.col("regime") == "wall") & (pl.col("motion") == "walk"))
        | ((pl.col("motion") == "redrawn") & (pl.col("rate") == 0.02))
    )
    assert len(chosen) == 2 * 2 * 4  # seeds, trials, regimes
    found = numbers_of_design(design, ways_of(frame)).found
    tracked, pooled = [], []
    for (_,), own in chosen.sort("seed").group_by("seed", maintain_order=True):
        tracked.append(correlation(own["tracker"], own["variation_l2"]))
        regrets = [own["tracker"].to_numpy()]
        for name in ("hedge", "optimistic", "euclidean"):
            columns = [column for column in frame.columns if column.startswith(f"{name} ")]
            best = {  # of one number of arms: the step size of least mean regret in each regime
                regime: min(columns, key=lambda c, some=some: some[c].cast(pl.Float64).mean())
                for (regime,), some in chosen.group_by("regime")
            }
            regrets.append(np.array([row[best[row["regime"]]] for row in own.iter_rows(named=True)]))
        pooled.append(correlation(np.concatenate(regrets), np.tile(own["price"].to_numpy(), 4)))
    assert found["tracker and V"].mean == pytest.approx(np.mean(tracked))
    assert found["pooled and Γ"].mean == pytest.approx(np.mean(pooled))
    calm = chosen.filter(pl.col("regime") == "within_cone")
    assert found["V in a cone"].mean == pytest.approx(calm["variation_l2"].mean() * 5000 / 200)  # type: ignore[operator]


def test_matches_are_counted() -> None:
    frame = tiny().filter(pl.col("part") == "map")
    numbers = numbers_of_design(next(all_designs()), ways_of(frame))
    exact = {name: type(number)(PAPER[name], 0.0) for name, number in numbers.found.items()}
    assert type(numbers)(numbers.design, exact).matches == 4
    assert type(numbers)(numbers.design, exact).distance == 0.0
    one_off = exact | {"V in a cone": type(numbers.found["V in a cone"])(9000.0, 0.0)}
    assert type(numbers)(numbers.design, one_off).matches == 3


def test_correlations_are_pearsons(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 3, 9))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(correlations(x, y), expected, 1e-12)
    assert np.isnan(correlations(np.ones((1, 4)), rng.normal(size=(1, 4)))).all()


# --- the rows --------------------------------------------------------------------------------------


def test_verdicts_of_the_tiny_run() -> None:
    verdicts = {name: row.verdict for name, row in rows(tiny()).items()}
    assert verdicts["simplex/decomposition"] is Verdict.HOLDS
    assert verdicts["simplex/within-cone-price"] is Verdict.HOLDS
    assert verdicts["simplex/tracker-variation"] is Verdict.DEPENDS
    assert verdicts["simplex/pooled"] in (Verdict.DEPENDS, Verdict.UNSEEN)
    assert verdicts["simplex/all-at-once"] is Verdict.UNSEEN
    assert all(row.seeds == "2, alternatives too" for row in rows(tiny()).values())


@pytest.mark.parametrize(
    ("row", "change", "verdict"),
    [
        ("simplex/decomposition", pl.lit(1e-6).alias("tracker_gap"), Verdict.FALSE),
        ("simplex/tracker-price", (-pl.col("price")).alias("price"), Verdict.UNSEEN),
        ("simplex/within-cone-price", (pl.col("price") + 1).alias("price"), Verdict.FALSE),
        ("simplex/within-cone-variation", pl.lit(1.0).alias("rounds"), Verdict.UNSEEN),
        ("simplex/tracker-variation", (-pl.col("variation_linf")).alias("tracker"), Verdict.UNSEEN),
    ],
)
def test_doctored_data_flips_the_verdict(row: str, change: pl.Expr, verdict: Verdict) -> None:
    frame = tiny()
    if row == "simplex/tracker-variation":  # a regret that falls with every variation
        frame = frame.with_columns(pl.col("variation_linf").alias(f"variation_{n}") for n in ("l1", "l2"))
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
    # By regime, so that every design sees the same; its two trials alternate in sign: no correlation at all.
    regime = pl.col("regime").replace_strict({name: float(i) for i, name in enumerate(REGIMES)})
    pairs = frame.with_columns(regime.alias(name) for name in yardsticks)
    untied = pairs.with_columns((1.0 - 2.0 * (pl.col("trial") % 2)).alias(name) for name in runs)
    assert rows(untied)["simplex/geometry-blind"].verdict is Verdict.HOLDS
    tied = pairs.with_columns(regime.alias(name) for name in runs)
    assert rows(tied)["simplex/geometry-blind"].verdict is Verdict.UNSEEN


def test_members_line_up() -> None:
    frame = tiny().filter(pl.col("part") == "map")
    price, variation, tracker, regrets = members(next(all_designs()), ways_of(frame))
    assert price.shape == variation.shape == tracker.shape == regrets.shape[1:] == (2, 8)
    np.testing.assert_array_equal(regrets[0], tracker)


def test_figures(tmp_path: Path) -> None:
    names = {path.name for path in EXPERIMENT.draw(tiny(), tmp_path)}
    assert names == {f"{name}.{kind}" for name in ("simplex", "simplex-map") for kind in ("pdf", "png")}
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)


def test_every_choice_points_at_a_row() -> None:
    known = rows(tiny()).keys()
    assert all(row in known for choice in EXPERIMENT.choices for row in choice.rows)
