"""Who is in a fleet: tables and datasets of members, and those that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest
from jobs_support import write_fleet
from sentences import check_refusal

from normalfan.jobs import Members, fleet_members


def test_members_are_read_with_their_options_and_absolute_paths(tmp_path: Path) -> None:
    table = write_fleet(tmp_path, 2)
    rows = polars.read_parquet(table).with_columns(
        horizon=polars.Series([None, 3]), model=polars.Series(["gym:FrozenLake-v1", "model.npz"])
    )
    rows.write_parquet(table)
    members = Members.of_table(table)
    assert len(members) == 2
    assert list(members) == [
        {"member": "m0", "model": "gym:FrozenLake-v1", "losses": str(tmp_path / "m0.npy")},
        {
            "member": "m1",
            "model": str(tmp_path / "model.npz"),
            "losses": str(tmp_path / "m1.npy"),
            "horizon": 3,
        },
    ]
    assert "LazyFrame" not in repr(members)


def test_the_members_of_a_dataset_share_model_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b", "a%20b"):
        (tmp_path / "streams" / f"member={name}").mkdir(parents=True)
    shared = {"model": str(tmp_path / "m.npz"), "default": 0.5, "rewards": True}
    assert list(Members.of_dataset("m.npz", "streams", default=0.5, rewards=True)) == [
        {"member": "a b", "losses": str(tmp_path / "streams" / "member=a%20b"), **shared},
        {"member": "b", "losses": str(tmp_path / "streams" / "member=b"), **shared},
    ]


def test_names_of_many_members_are_compared_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, table = polars.read_parquet(write_fleet(tmp_path, 7)), tmp_path / "many.parquet"
    monkeypatch.setattr(fleet_members, "NAMES_AT_ONCE", 2)
    rows.write_parquet(table)
    assert len(Members.of_table(table)) == len(rows)
    for again in range(len(rows)):  # whichever part it falls in
        polars.concat([rows, rows[again : again + 1]]).write_parquet(table)
        check_refusal(lambda: Members.of_table(table), f"row 8 repeats the member of row {again + 1}")


def test_bad_fleets_are_refused(tmp_path: Path) -> None:
    fleet = write_fleet(tmp_path, 7)

    def table(frame: polars.DataFrame) -> Any:
        frame.write_parquet(tmp_path / "bad.parquet")
        return lambda: Members.of_table(tmp_path / "bad.parquet")

    rows = polars.read_parquet(fleet)
    check_refusal(table(rows.drop("model")), "add or rename model")
    check_refusal(table(rows.rename({"losses": "looses"})), "looses")
    check_refusal(table(rows.with_columns(feature=1)), "'feature'")
    check_refusal(table(rows.with_columns(model=1)), "column model of type")
    check_refusal(table(rows.head(0)), "has no rows")
    check_refusal(table(polars.concat([rows, rows[3:4]])), "row 8 repeats the member of row 4")
    holes = polars.when(polars.col("member") != "m4").then("losses")
    check_refusal(table(rows.with_columns(losses=holes)), "row 5 has no losses")
    check_refusal(lambda: Members.of_table(tmp_path / "none.parquet"), "none.parquet")
    check_refusal(lambda: Members.of_dataset("m.npz", tmp_path), "member=NAME")
    check_refusal(lambda: Members.of_dataset("m.npz", fleet), "is not a directory")
