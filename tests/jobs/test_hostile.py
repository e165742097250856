"""A small corpus of hostile fleets: each bad member fails alone, by its own name, with its own sentence."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from command_line import call
from jobs_support import write_fleet
from sentences import check_refusal

from normalfan.jobs import Members, Processes, Serial, price_fleet
from normalfan.jobs import fleet as fleet_module
from normalfan.jobs.fleet import FleetCells, FleetResult

MODULE = """
from pathlib import Path
Path({trace!r}).touch()
import gymnasium
class Lake(gymnasium.Env):
    action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(1)
    P = {{0: {{0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, False)]}}}}
    initial_state_distrib = [1.0]
gymnasium.register("Two-v0", Lake, max_episode_steps=1, disable_env_checker=True)
"""


def declaring(path: Path, **shapes: tuple[int, ...]) -> None:
    """An .npz file whose arrays declare shapes and hold nothing."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in shapes.items():
            header = io.BytesIO()
            description = {"descr": "<i8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(header, description)
            archive.writestr(f"{name}.npy", header.getvalue())


def huge(folder: Path) -> dict[str, Any]:
    declaring(folder / "huge.npz", schema=(), horizon=(), initial=(10**12,), nexts=(1, 10**12, 2))
    return {"model": "huge.npz"}


def pipe(folder: Path) -> dict[str, Any]:
    os.mkfifo(folder / "pipe.npz")
    return {"model": "pipe.npz"}


def pipe_in_a_folder(folder: Path) -> dict[str, Any]:
    (folder / "parts").mkdir()
    os.mkfifo(folder / "parts" / "one.parquet")
    return {"losses": "parts"}


def folder_as_model(folder: Path) -> dict[str, Any]:
    (folder / "folder").mkdir()
    return {"model": "folder"}


def long_horizon(folder: Path) -> dict[str, Any]:
    np.save(folder / "short.npy", np.zeros((2, 1, 2)))
    return {"losses": "short.npy", "axes": "TSA", "horizon": 10**13}


BAD: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "huge": (huge, "huge.npz"),
    "horizon": (long_horizon, "model.npz takes 160,000,000,000,000 bytes of memory, but may take at most"),
    "half a horizon": (lambda _: {"horizon": 2.5}, "horizon is 2.5, but must be a whole number"),
    "colons": (lambda _: {"model": "gym:a:b:c"}, "model is 'gym:a:b:c', but an environment is gym:ID or"),
    "module": (
        lambda _: {"model": "gym:this:ID-v0"},
        "model is 'gym:this:ID-v0', but a table may not import code",
    ),
    "unknown": (lambda _: {"model": "gym:NoSuch-v0"}, "NoSuch-v0 cannot be made by Gymnasium"),
    "NUL": (lambda _: {"model": "a\0b.npz"}, r"a\x00b.npz' cannot be read (embedded null byte), but"),
    "long": (lambda _: {"losses": "x" * 5000}, "cannot be read (File name too long), but is its losses"),
    "pipe": (pipe, "pipe.npz cannot be read (not a regular file), but is its model: check the path."),
    "pipes": (pipe_in_a_folder, "parts cannot be read (not a regular file), but is its losses"),
    "device": (lambda _: {"losses": "/dev/zero"}, "/dev/zero cannot be read (not a regular file), but"),
    "folder": (folder_as_model, "folder is a directory, but a file is needed"),
    "default": (lambda _: {"default": "nothing"}, "default is 'nothing', but must be a finite number"),
    "NaN": (lambda _: {"default": float("nan")}, "default is nan, but must be a finite number"),
    "rewards": (lambda _: {"rewards": "false"}, "rewards is 'false', but must be a boolean, true or false"),
    "one": (lambda _: {"rewards": 1}, "rewards is 1, but must be a boolean"),
    "axes": (lambda _: {"axes": [1, 2]}, "axes is [1, 2], but must be text"),
    "start": (lambda _: {"start": 0.5}, "start is 0.5, but must be text or a whole number"),
}


@pytest.fixture(params=BAD)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("place", [0, 1])
def test_a_bad_member_fails_alone_by_its_name(case: str, place: int, tmp_path: Path) -> None:
    rows = polars.read_parquet(write_fleet(tmp_path, 3)).to_dicts()
    make, sentence = BAD[case]
    rows[place] |= {"member": "bad", **make(tmp_path)}
    table = tmp_path / "fleet.parquet"
    polars.DataFrame(rows, infer_schema_length=None).write_parquet(table)
    totals = price_fleet(Members.of_table(table), tmp_path / "out", Serial()).totals
    assert (totals.members, totals.problems) == (2, 1)
    ((name, problem),) = totals.problem_list
    assert name == "bad"
    assert sentence in problem


def priced(table: Path, out: str, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> FleetResult:
    """A fleet whose member m1 meets an error of the machine, and not of its files."""
    from normalfan.jobs import fleet_members

    read = fleet_members.read_member

    def failing(member: dict[str, Any], *rest: Any) -> Any:
        if member["member"] == "m1":
            raise error
        return read(member, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(fleet_members, "read_member", failing)
        return price_fleet(Members.of_table(table), table.with_name(out), Serial())


def test_trouble_of_the_machine_costs_one_member_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_fleet(tmp_path, 4)
    result = priced(table, "out", monkeypatch, MemoryError("no more"))
    assert (result.totals.members, result.totals.problems, result.outcome.failed) == (3, 1, 1)
    assert result.totals.problem_list == (("m1", "MemoryError: no more"),)
    assert polars.read_parquet(result.members)["member"].sort().to_list() == ["m0", "m1", "m2", "m3"]
    again = price_fleet(Members.of_table(table), tmp_path / "out", Serial()).totals
    assert (again.members, again.problems) == (4, 0)


@pytest.mark.slow
@pytest.mark.processes
def test_a_table_runs_no_code_unless_the_module_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    trace = tmp_path / "was imported"
    (tmp_path / "hostile_envs.py").write_text(MODULE.format(trace=str(trace)))
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = polars.read_parquet(write_fleet(tmp_path, 2)).to_dicts()
    rows[0]["model"] = "gym:hostile_envs:Two-v0"
    table = tmp_path / "fleet.parquet"
    polars.DataFrame(rows).write_parquet(table)
    told = call("fleet", table, "--out", tmp_path / "out", "--workers", "1")
    assert (told.code, trace.exists()) == (1, False)
    assert "m0: model is 'gym:hostile_envs:Two-v0', but" in told.err
    told = call("fleet", table, "--out", tmp_path / "out", "--workers", "1", "--gym-module", "hostile_envs")
    assert (told.code, trace.exists()) == (0, True), told.err
    members = Members.of_table(table, gym_modules=["hostile_envs"])
    assert price_fleet(members, tmp_path / "two", Processes(2)).totals.problems == 0
    # A worker with another module of that name computes nothing.
    (cell,) = FleetCells(members)
    cell.settings["gym_modules"]["hostile_envs"] = "0" * 64
    check_refusal(cell.compute, "has no module hostile_envs or another one")
    missing = Members.of_table(table, gym_modules=["no_such_envs"])
    check_refusal(lambda: FleetCells(missing), "'no_such_envs'")


def test_hostile_tables_are_refused(tmp_path: Path) -> None:
    table, bad = write_fleet(tmp_path, 3), tmp_path / "bad.parquet"
    content = table.read_bytes()
    os.mkfifo(tmp_path / "pipe.parquet")
    check_refusal(lambda: Members.of_table(tmp_path / "pipe.parquet"), "pipe.parquet cannot be read")
    for kind in ([[1]], [b"\xff"], [{"a": 1}], [1.5]):
        polars.read_parquet(table).head(1).with_columns(member=polars.Series(kind)).write_parquet(bad)
        check_refusal(lambda: Members.of_table(bad), "has a column member of type")
    for size in range(0, len(content), 5):
        bad.write_bytes(content[:size])
        check_refusal(lambda: Members.of_table(bad), "bad.parquet cannot be read as Parquet")


def test_names_that_decode_to_one_stay_two_members(tmp_path: Path) -> None:
    for name in ("a b", "a%20b", "c%2Fd"):
        (tmp_path / f"member={name}").mkdir()
    names = [member["member"] for member in Members.of_dataset("m.npz", tmp_path)]
    assert names == ["a b", "a%20b", "c%2Fd"]


def test_damaged_results_are_said(tmp_path: Path) -> None:
    table = write_fleet(tmp_path, 2)
    result = price_fleet(Members.of_table(table), tmp_path / "out", Serial())
    (cell,) = result.cells.glob("*/*.parquet")
    cell.write_bytes(cell.read_bytes()[:-9])
    told = call("fleet", table, "--out", tmp_path / "out", "--workers", "1")
    assert told.code == 0
    assert "normalfan: 1 results were damaged and computed again." in told.err
    assert fleet_module.total_up(result.members) == result.totals
