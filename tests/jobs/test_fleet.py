"""Fleets: every member priced as it would be alone, whoever prices it, and the totals that follow."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from command_line import call
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.io import load_mdp, open_losses, save_losses, save_mdp
from normalfan.jobs import Members, Processes, Serial, fleet_members, price_fleet
from normalfan.jobs import fleet as fleet_module
from normalfan.jobs.fleet import FleetCells, gather_members, total_up
from normalfan.sources import files_of_code
from normalfan.text import amount

COUNTS = ("rounds", "free", "negligible", "priced")


def write_member(folder: Path, name: str, rng: np.random.Generator) -> dict[str, str]:
    problem = random_problem(rng)
    mdp = problem.mdp()
    save_mdp(mdp, folder / f"{name}.npz")
    np.save(folder / f"{name}.npy", problem.losses.astype(float))
    return {"member": name, "model": f"{name}.npz", "losses": f"{name}.npy"}


@pytest.fixture
def fleet(tmp_path: Path, rng: np.random.Generator) -> Path:
    """The table of seven members, each with a problem of its own."""
    rows = [write_member(tmp_path, f"m{i}", rng) for i in range(7)]
    table = tmp_path / "fleet.parquet"
    polars.DataFrame(rows).write_parquet(table)
    return table


@pytest.fixture
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "MOST_MEMBERS", 2)


def rows_of(result: Any) -> polars.DataFrame:
    return polars.scan_parquet(result.cells / "*" / "*.parquet").sort("member").collect()


def check_members(result: Any, streams: dict[str, tuple[nf.MDP, Any]]) -> None:
    """Each row is what its member alone gives, and the totals are the sums of the rows."""
    rows = rows_of(result)
    assert rows["member"].to_list() == sorted(streams)
    for row in rows.iter_rows(named=True):
        motion = nf.price_stream(*streams[row["member"]])
        assert row["price"] == motion.prices.tolist()
        assert row["value"] == motion.values.tolist()
        assert row["crossed"] == motion.crossed.tolist()
        assert row["total"] == motion.total
        assert row["worst_price"] == motion.prices.max() == motion.prices[int(row["worst_round"])]
        kinds = [
            "free" if p == 0 else "negligible" if p < 0.01 * abs(v) else "priced"
            for p, v in zip(row["price"][1:], row["value"][1:], strict=True)
        ]
        assert [row[kind] for kind in COUNTS[1:]] == [kinds.count(kind) for kind in COUNTS[1:]]
        assert row["rounds"] == len(kinds) + 1
    totals = result.totals
    assert [getattr(totals, name) for name in COUNTS] == [rows[name].sum() for name in COUNTS]
    assert totals.total == math.fsum(rows["total"])
    assert totals.worst_round.worst_price == rows["worst_price"].max()
    assert [one.total for one in totals.costliest] == rows["total"].sort(descending=True).head(5).to_list()
    assert totals.members == len(streams)
    summary = polars.read_parquet(result.members).sort("member")
    assert summary.equals(rows.drop("price", "value", "crossed"))


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.usefixtures("small_cells")
def test_every_member_is_priced_as_if_alone(fleet: Path, tmp_path: Path) -> None:
    streams = {f"m{i}": (load_mdp(tmp_path / f"m{i}.npz"), np.load(tmp_path / f"m{i}.npy")) for i in range(7)}
    by_one = price_fleet(Members.of_table(fleet), tmp_path / "one", Serial())
    check_members(by_one, streams)
    by_two = price_fleet(Members.of_table(fleet), tmp_path / "two", Processes(2))
    assert rows_of(by_two).equals(rows_of(by_one))
    assert by_two.totals == by_one.totals
    assert by_two.outcome.finished == 4
    assert len(repr(by_one)) < 1000


@pytest.mark.parametrize("against", ["first", 2])
def test_members_are_priced_against_older_plans(fleet: Path, tmp_path: Path, against: str | int) -> None:
    result = price_fleet(Members.of_table(fleet, against=against), tmp_path / "out", Serial())
    for row in rows_of(result).iter_rows(named=True):
        mdp = load_mdp(fleet.parent / f"{row['member']}.npz")
        losses = np.load(fleet.parent / f"{row['member']}.npy")
        assert row["price"] == nf.price_stream(mdp, losses, against=against).prices.tolist()
    said = call(
        "fleet", str(fleet), "--against", str(against), "--workers", "1", "--out", str(tmp_path / "out")
    )
    assert "the plan of " + {"first": "the first round", 2: "2 rounds before"}[against] in said.out
    told = call("fleet", str(fleet), "--against", "0", "--workers", "1", "--out", str(tmp_path / "out"))
    assert "--against is '0'" in told.err


def test_results_depend_on_the_readers_and_not_on_the_engines() -> None:
    names = set(files_of_code(fleet_module.TASK.partition(":")[0]))
    assert {
        "normalfan.io",
        "normalfan.io.tables",
        "normalfan.pricing.stream",
        "normalfan._kernels.dense",
    } <= names
    assert not {name for name in names if name.startswith("normalfan.jobs")} - {
        "normalfan.jobs.fleet_members",
    }


@pytest.mark.usefixtures("small_cells")
def test_only_what_changed_is_priced_again(fleet: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    first = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial())
    again = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial())
    assert (again.outcome.finished, again.outcome.reused) == (0, 4)
    assert again.totals == first.totals
    write_member(tmp_path, "m3", rng)
    changed = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial())
    assert (changed.outcome.finished, changed.outcome.reused) == (1, 3)
    assert changed.totals.members == 7  # what was found for the old m3 is in the folder, and not counted
    fresh = price_fleet(Members.of_table(fleet), tmp_path / "fresh", Serial())
    assert changed.totals == fresh.totals


def test_a_member_may_name_the_axes_of_its_losses(tmp_path: Path, rng: np.random.Generator) -> None:
    row = write_member(tmp_path, "m", rng)
    losses = np.load(tmp_path / "m.npy")
    np.save(tmp_path / "m.npy", losses[:, 0])
    polars.DataFrame([row | {"axes": "TSA"}]).write_parquet(tmp_path / "fleet.parquet")
    result = price_fleet(Members.of_table(tmp_path / "fleet.parquet"), tmp_path / "out", Serial())
    named = nf.price_stream(load_mdp(tmp_path / "m.npz"), nf.ArrayLosses(losses[:, 0], axes="TSA"))
    assert (result.totals.problems, result.totals.total) == (0, named.total)


def test_a_member_may_say_that_its_rounds_are_to_be_sorted(tmp_path: Path) -> None:
    save_mdp(nf.MDP(np.array([[0, 0]]), 0, horizon=1), tmp_path / "model.npz")
    rounds = {"round": [2, 2, 1, 1, 3, 3], "action": [0, 1] * 3, "loss": [5.0, 1.0, 0.0, 1.0, 0.0, 1.0]}
    polars.DataFrame(rounds).write_csv(tmp_path / "losses.csv")
    row = {"model": "model.npz", "losses": "losses.csv"}
    table = [{"member": name, "order": name, **row} for name in ("file", "sorted", "backwards")]
    polars.DataFrame([*table, {"member": "unsaid", **row}]).write_parquet(tmp_path / "fleet.parquet")
    result = price_fleet(Members.of_table(tmp_path / "fleet.parquet"), tmp_path / "out", Serial())
    totals = dict(polars.read_parquet(result.members).select("member", "total").iter_rows())
    # In the order of the file action 1 meets (0, 1); sorted, action 0 meets (5, 1), and then 1 meets (0, 1).
    assert totals == {"file": 1, "sorted": 5, "backwards": None, "unsaid": None}


def test_no_member_takes_more_memory_than_the_command_allows(fleet: Path, tmp_path: Path) -> None:
    told = call("fleet", str(fleet), "--max-memory", "100", "--out", str(tmp_path / "out"), "--workers", "1")
    assert told.code == 1
    assert "may take at most 100: check its sizes, or raise max_memory (--max-memory)" in told.err
    told = call("fleet", str(fleet), "--unit", "$", "--out", str(tmp_path / "out"), "--workers", "1")
    assert told.code == 0  # nothing of the first run is kept as a result of this one
    total = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial()).totals.total
    assert f"cost {amount(total, '$')} in all." in told.out


def test_a_member_that_cannot_be_priced_is_named_and_the_others_are_priced(
    fleet: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "m2.npy", np.full((2, 3), np.nan))
    (tmp_path / "m5.npz").unlink()
    result = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial())
    assert (result.totals.members, result.totals.problems) == (5, 2)
    problems = dict(result.totals.problem_list)
    assert sorted(problems) == ["m2", "m5"]
    assert "m5.npz cannot be read (No such file or directory)" in problems["m5"]
    told = call("fleet", str(fleet), "--out", str(tmp_path / "out"), "--workers", "1")
    assert told.code == 1
    assert "m5: " in told.err
    assert "5 members" in told.out


def test_a_file_that_only_the_client_sees_fails_and_leaves_no_result(fleet: Path) -> None:
    (cell,) = FleetCells(Members.of_table(fleet))
    fleet.with_name("m3.npy").unlink()  # gone for the worker
    check_refusal(cell.compute, "m3.npy")


def test_some_rounds_of_every_member(fleet: Path, tmp_path: Path) -> None:
    command = ("fleet", str(fleet), "--out", str(tmp_path / "out"), "--workers", "1", "--json")
    told = call(*command, "--from", "1", "--to", "2")
    assert told.code == 0, told.err
    motions = []
    for i in range(7):
        mdp = load_mdp(fleet.parent / f"m{i}.npz")
        stream = open_losses(fleet.parent / f"m{i}.npy", mdp, first=1, last=2)
        motions.append(nf.price_stream(mdp, stream))
    totals = json.loads(told.out)
    assert totals["total"] == math.fsum(motion.total for motion in motions)
    assert totals["rounds"] == sum(len(motion.prices) for motion in motions)
    none = call(*command, "--from", "1000")
    assert (none.code, "no round lies from 1000" in none.out) == (1, True)


def test_a_dataset_of_streams_for_one_model(tmp_path: Path, rng: np.random.Generator) -> None:
    problem = random_problem(rng)
    mdp = problem.mdp()
    save_mdp(mdp, tmp_path / "model.npz")
    shape = (2, *problem.shape)
    features = rng.integers(0, 3, size=shape).astype(float)
    streams, frames = {}, []
    for name in ("a b", "c"):
        losses = nf.FactoredLosses(rng.normal(size=(9, 2)), features)
        save_losses(losses, mdp, tmp_path / "one.parquet", features=tmp_path / "features.csv")
        frames.append(polars.read_parquet(tmp_path / "one.parquet").with_columns(member=polars.lit(name)))
        streams[name] = (mdp, open_losses(tmp_path / "one.parquet", mdp, features=tmp_path / "features.csv"))
    polars.concat(frames).write_parquet(tmp_path / "streams", partition_by="member")
    # A second writer split a member's rounds over two files.
    (folder,) = (path for path in (tmp_path / "streams").iterdir() if path.name.endswith("c"))
    (file,) = folder.iterdir()
    whole = polars.read_parquet(file, hive_partitioning=False)
    whole.head(4).write_parquet(folder / "part-0.parquet")
    whole.tail(5).write_parquet(folder / "part-1.parquet")
    file.unlink()
    members = Members.of_dataset(
        tmp_path / "model.npz", tmp_path / "streams", features=tmp_path / "features.csv"
    )
    check_members(price_fleet(members, tmp_path / "out", Serial()), streams)
    some = Members.of_dataset(
        tmp_path / "model.npz", tmp_path / "streams", features=tmp_path / "features.csv", last="2"
    )
    assert price_fleet(some, tmp_path / "some", Serial()).totals.rounds == 2 * 3
    (folder / "part-1.parquet").write_bytes(b"no table")
    broken = price_fleet(members, tmp_path / "out", Serial()).totals
    assert (broken.members, broken.problems) == (1, 1)
    ((name, problem),) = broken.problem_list
    assert name == "c"
    assert problem.startswith(f"{folder} cannot be read")


def test_a_fleet_of_which_nothing_could_be_computed(tmp_path: Path) -> None:
    gather_members([], tmp_path / "members.parquet")
    totals = total_up(tmp_path / "members.parquet")
    assert (totals.members, totals.rounds, totals.total, totals.problems) == (0, 0, 0, 0)
    assert totals.worst_round is None
    assert totals.costliest == ()


def test_the_command_speaks_json(fleet: Path, tmp_path: Path) -> None:
    told = call("fleet", str(fleet), "--out", str(tmp_path / "out"), "--workers", "1", "--json")
    assert told.code == 0, told.err
    document = json.loads(told.out)
    result = price_fleet(Members.of_table(fleet), tmp_path / "out", Serial())
    assert document["total"] == result.totals.total
    assert document["cells"] == {"finished": 1, "reused": 0, "failed": 0, "damaged": 0}
    assert result.outcome.reused == 1


@pytest.mark.slow
@pytest.mark.processes
def test_a_disk_that_takes_no_more_is_a_sentence(fleet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = price_fleet(Members.of_table(fleet), tmp_path / "whole", Serial())  # compiles and caches kernels
    command = [sys.executable, "-W", "error", "-m", "normalfan", "fleet", str(fleet), "--out", str(out)]
    command += ["--workers", "2"]
    told = subprocess.run(  # noqa: S602
        f"ulimit -f 1; {shlex.join(command)} --workers 2",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert "could not be written" in told.stderr
    assert "File too large" in told.stderr
    assert not [path for path in out.rglob("*") if path.is_file()]
    assert price_fleet(Members.of_table(fleet), out, Serial()).totals == whole.totals


def test_the_memory_of_the_client_does_not_grow_with_the_fleet(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_members, "ROWS_AT_ONCE", 128)
    monkeypatch.setattr(fleet_module, "MOST_MEMBERS", 64)
    row = polars.read_parquet(fleet).drop("member").head(1)

    def peak(count: int) -> int:
        table = tmp_path / "large.parquet"
        polars.select(member=polars.int_range(count)).join(row, how="cross").write_parquet(table)
        cells = FleetCells(Members.of_table(table))
        tracemalloc.start()
        assert sum(len(cell.settings["members"]) for cell in cells) == count
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(400)
    assert peak(4000) < 1.3 * peak(400)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ((), "a fleet is named in part"),
        (("--model", "m.npz"), "a fleet is named in part"),
        (("f.parquet", "--default", "0"), "--default"),
        (("f.parquet", "--axes", "TSA"), "--axes was given with a table of members"),
        (("f.parquet", "--order", "sorted"), "--order was given with a table of members"),
        (("--model", "m.npz", "--losses", "d", "--axes", "TSA"), "--axes was given with a dataset of tables"),
        (("f.parquet", "--workers", "0"), "f.parquet"),
    ],
)
def test_bad_commands_are_a_sentence(arguments: tuple[str, ...], where: str) -> None:
    told = call("fleet", *arguments)
    assert told.code == 2
    assert where in told.err
    assert "Traceback" not in told.err
