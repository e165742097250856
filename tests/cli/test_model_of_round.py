"""`normalfan price --model-of-round`: the numbers of `price_stream`, what moved in words, and a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from command_line import call

import normalfan as nf
from normalfan.battery import Battery, ercot_prices

DAYS = range(12)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A battery that is derated on two of twelve days."""
    folder = tmp_path_factory.mktemp("battery")
    days, new = ercot_prices(), Battery()
    derated = replace(new, power=10.0)
    labels = new.mdp().labels
    for name, one in (("new", new), ("derated", derated)):
        nf.io.save_mdp(nf.MDP(one.mdp().transitions, 0, 24, labels=labels), folder / f"{name}.npz")
        losses = one.losses(days.prices[:12], round_names=days.dates[:12])
        nf.io.save_losses(losses, new.mdp(), folder / "prices.csv", features=folder / f"{name}.csv")
    polars.DataFrame(
        {"round": days.dates[4:6], "model": ["derated.npz"] * 2, "features": ["derated.csv"] * 2}
    ).write_csv(folder / "models.csv")
    return folder


def asked(files: Path, *more: object) -> tuple[object, ...]:
    features = ("--features", files / "new.csv", "--model-of-round", files / "models.csv")
    return "price", files / "new.npz", files / "prices.csv", *features, *more


def expected(files: Path) -> nf.PricedMotion:
    problems = [nf.io.load_mdp(files / f"{name}.npz") for name in ("new", "derated")]
    losses = [
        nf.io.open_losses(files / "prices.csv", mdp, features=files / f"{name}.csv")
        for name, mdp in zip(("new", "derated"), problems, strict=True)
    ]
    return nf.price_stream(problems, losses, dynamics_of_round=np.isin(DAYS, (4, 5)).astype(int))


def test_the_numbers_are_those_of_price_stream(files: Path) -> None:
    motion, answer = expected(files), call(*asked(files, "--json"))
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    for name in ("price", "until_surprise", "market_alone", "dynamics_alone", "interaction", "dynamics"):
        assert [row[name] for row in document["rounds"]] == motion.columns()[name].tolist()
    moved = document["summary"]["moved"]
    assert moved["rounds"] == 2
    assert moved["price"] == pytest.approx(motion.prices[[4, 6]].sum())
    assert moved["interaction"] == pytest.approx(motion.interaction[[4, 6]].sum())
    assert document["summary"]["never_changed"] is None


def test_what_moved_is_said_and_shown(files: Path, tmp_path: Path) -> None:
    answer = call(*asked(files, "--report", tmp_path / "page.html", "--unit", "$"))
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    assert "In 2 rounds the dynamics moved, too. Keeping the plan cost $" in said
    assert "market alone $" in said
    page = (tmp_path / "page.html").read_text()
    assert "The dynamics moved: market alone" in page
    assert "dynamics alone $" in page


def test_without_features_of_its_own_a_model_takes_the_losses_as_they_are(
    files: Path, tmp_path: Path
) -> None:
    table = polars.read_csv(files / "models.csv").select(
        "round", model=polars.lit(str(files / "derated.npz"))
    )
    table.write_csv(tmp_path / "models.csv")
    given = ("--features", files / "new.csv", "--model-of-round", tmp_path / "models.csv", "--json")
    answer = call("price", files / "new.npz", files / "prices.csv", *given)
    assert answer.code == 0, answer.err
    problems = [nf.io.load_mdp(files / f"{name}.npz") for name in ("new", "derated")]
    losses = nf.io.open_losses(files / "prices.csv", problems[0], features=files / "new.csv")
    motion = nf.price_stream(problems, losses, dynamics_of_round=np.isin(DAYS, (4, 5)).astype(int))
    assert [row["price"] for row in json.loads(answer.out)["rounds"]] == motion.prices.tolist()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"round": ["2021-01-03"]}, "has the columns round, but needs round, model"),
        ({"round": ["1999-01-03"], "model": ["derated.npz"]}, "line 2 names the round '1999-01-03'"),
        ({"round": ["2021-01-03"] * 2, "model": ["derated.npz"] * 2}, "2021-01-03"),
        ({"round": ["2021-01-03"], "model": ["missing.npz"]}, "missing.npz"),
    ],
)
def test_tables_that_cannot_be_meant_are_refused(
    files: Path, rows: dict[str, list[str]], sentence: str
) -> None:
    polars.DataFrame(rows).write_csv(files / "bad.csv")
    given = ("--features", files / "new.csv", "--model-of-round", files / "bad.csv")
    answer = call("price", files / "new.npz", files / "prices.csv", *given)
    assert answer.code == 2
    assert sentence in answer.err


def test_only_the_plan_of_the_round_before_is_priced(files: Path) -> None:
    answer = call(*asked(files, "--against", "first"))
    assert answer.code == 2
    assert "--against and --model-of-round are given" in answer.err


def test_replan_keeps_plans_through_the_models(files: Path) -> None:
    given = ("--features", files / "new.csv", "--model-of-round", files / "models.csv", "--cost", 500)
    answer = call("replan", files / "new.npz", files / "prices.csv", *given, "--no-detectors", "--json")
    assert answer.code == 0, answer.err
    plain = call("replan", files / "new.npz", files / "prices.csv", *given[:2], *given[4:], "--json")
    assert json.loads(answer.out) != json.loads(plain.out)
    refused = call("replan", files / "new.npz", files / "prices.csv", *given[:4], "--library", 2)
    assert refused.code == 2
    assert "--model-of-round is given, but means nothing with --library" in refused.err


def test_a_member_of_a_fleet_may_have_other_models(files: Path, tmp_path: Path) -> None:
    row = {"model": "new.npz", "losses": "prices.csv", "features": "new.csv"}
    moving, missing = (row | {"model_of_round": name} for name in ("models.csv", "missing.csv"))
    rows = [{"member": "still"} | row, {"member": "moving"} | moving, {"member": "lost"} | missing]
    polars.DataFrame(rows).write_parquet(files / "fleet.parquet")
    members = nf.jobs.Members.of_table(files / "fleet.parquet")
    result = nf.jobs.price_fleet(members, tmp_path / "priced", nf.jobs.Serial())
    priced = {row["member"]: row for row in polars.read_parquet(result.members).iter_rows(named=True)}
    assert priced["moving"]["total"] == expected(files).total
    assert priced["still"]["total"] != priced["moving"]["total"]
    assert "is its model_of_round" in priced["lost"]["problem"]

    def key_of_moving() -> str:
        (cell,) = nf.jobs.fleet.FleetCells(members)
        return cell.key

    # A model that only the table names decides whether a result is still good.
    before = key_of_moving()
    worse = nf.io.load_mdp(files / "new.npz")
    kept = (files / "derated.npz").read_bytes()
    nf.io.save_mdp(worse, files / "derated.npz")
    try:
        assert key_of_moving() != before
    finally:
        (files / "derated.npz").write_bytes(kept)
