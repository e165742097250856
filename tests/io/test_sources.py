"""Wherever a file is taken: frames, compressed files, standard input, other separators; rewards by name."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.io.cell_tables import every_round
from normalfan.problem.losses import Negated, names_of_rounds

MODEL = (
    "state,action,next_state,probability,start\nhome,go,away,0.5,1\nhome,go,home,0.5,1\naway,go,home,1,0\n"
)
LOSSES = "round,state,loss\nmon,home,1.5\nmon,away,2\ntue,home,-1\ntue,away,0.25\n"
FEATURES = "feature,state,value\npower,home,2.5\n"
SHOP = nf.MDP([[1], [0]], 0, 2, labels=nf.Labels(states=("home", "away"), actions=("go",)))


class Column:
    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def to_numpy(self) -> Any:
        return self.values

    def isna(self) -> Column:
        return Column([one is None or one != one for one in self.values])


class PandasLike:
    """What is used of a pandas frame, which is no dependency of the tests either."""

    def __init__(self, columns: dict[str, Any], index: str | None = None) -> None:
        self.index = SimpleNamespace(names=[index])
        self._columns, self._index = columns, index

    @property
    def columns(self) -> list[str]:
        return [name for name in self._columns if name != self._index]

    def reset_index(self) -> PandasLike:
        return PandasLike(self._columns)

    def __getitem__(self, name: str) -> Column:
        return Column(self._columns[name])


def frames(text: str) -> list[Any]:
    """The same table as frames of polars, of something like pandas, and of pandas if it is there."""
    frame = pl.read_csv(text.encode())
    objects = {
        c: np.array(frame[c].to_list(), dtype=object if frame[c].dtype == pl.String else float)
        for c in frame.columns
    }
    found = [frame, PandasLike(objects), PandasLike(objects, index=frame.columns[0])]
    try:
        import pandas
    except ImportError:
        return found
    table = pandas.DataFrame(frame.to_dict(as_series=False))
    return [*found, table, table.set_index(frame.columns[0]), table.convert_dtypes()]


def test_frames_are_read_like_files(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(MODEL)
    (tmp_path / "l.csv").write_text(LOSSES)
    (tmp_path / "f.csv").write_text(FEATURES)
    coefficients = "round,power\nmon,3\ntue,4\n"
    (tmp_path / "c.csv").write_text(coefficients)
    mdp = nf.io.load_mdp(tmp_path / "m.csv", horizon=2)
    losses = nf.io.open_losses(tmp_path / "l.csv", mdp)
    factored = nf.io.open_losses(tmp_path / "c.csv", mdp, features=tmp_path / "f.csv")
    for model in frames(MODEL):
        read = nf.io.load_mdp(model, horizon=2)
        assert (read.fingerprint, read.labels) == (mdp.fingerprint, mdp.labels)
    for table in frames(LOSSES):
        stream = nf.io.open_losses(table, mdp)
        assert np.array_equal(every_round(stream, mdp), every_round(losses, mdp))
        assert names_of_rounds(stream) == ("mon", "tue")
    for table, features in zip(frames(coefficients), frames(FEATURES), strict=True):
        stream = nf.io.open_losses(table, mdp, features=features)
        assert np.array_equal(every_round(stream, mdp), every_round(factored, mdp))


@pytest.mark.parametrize(
    ("times", "names"),
    [
        (["2021-03-14", "2021-03-15"], ("2021-03-14", "2021-03-15")),
        (["2021-03-14T00:00", "2021-03-14T13:30"], ("2021-03-14T00:00:00", "2021-03-14T13:30:00")),
    ],
)
def test_dates_of_frames_are_dates(times: list[str], names: tuple[str, ...]) -> None:
    stamps = np.array(times, dtype="datetime64[s]")
    columns = {"round": stamps, "loss": np.array([1.0, 2.0])}
    polars_frame = pl.DataFrame({"round": stamps.astype("datetime64[ns]"), "loss": [1.0, 2.0]})
    for frame in (PandasLike(columns), polars_frame):
        assert names_of_rounds(nf.io.open_losses(frame, SHOP)) == names


def test_frames_are_written_as_files_are() -> None:
    assert nf.io.load_mdp(nf.io.mdp_to_frame(SHOP)).fingerprint == SHOP.fingerprint
    array = np.arange(8.0).reshape(2, 2, 2, 1)
    for stream in (nf.ArrayLosses(array), nf.rewards(nf.ArrayLosses(array))):
        back = nf.io.open_losses(nf.io.losses_to_frame(stream, SHOP), SHOP)
        assert isinstance(back, Negated) == isinstance(stream, Negated)
        assert np.array_equal(every_round(back, SHOP), every_round(stream, SHOP))


def test_missing_entries_of_frames_are_refused() -> None:
    def opened(**columns: Any) -> Any:
        return lambda: nf.io.open_losses(PandasLike(columns), SHOP)

    check_refusal(opened(round=["mon", "tue"], loss=[1.0, np.nan]), "the frame, row 2 has nan as loss")
    lost = np.array(["mon", None], dtype=object)
    check_refusal(opened(round=lost, loss=[1.0, 2.0]), "the frame, row 2 has no round")
    check_refusal(lambda: nf.io.open_losses([1, 2], SHOP), "a table is given as list")
    check_refusal(lambda: nf.io.load_mdp({"state": [1]}), "a table is given as dict")


def test_compressed_tables(tmp_path: Path) -> None:
    (tmp_path / "losses.csv.gz").write_bytes(gzip.compress(LOSSES.encode()))
    losses = nf.io.open_losses(tmp_path / "losses.csv.gz", SHOP)
    assert every_round(losses, SHOP)[1, 0, :, 0].tolist() == [-1, 0.25]
    for name in ("a", "b"):
        nf.io.save_losses(losses, SHOP, tmp_path / f"{name}.csv.gz")
        nf.io.save_mdp(SHOP, tmp_path / f"{name}.model.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()  # no time in it
    assert np.array_equal(
        every_round(nf.io.open_losses(tmp_path / "a.csv.gz", SHOP), SHOP), every_round(losses, SHOP)
    )
    assert nf.io.load_mdp(tmp_path / "a.model.csv.gz").fingerprint == SHOP.fingerprint
    (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(LOSSES.replace("0.25", "x").encode()))
    check_refusal(lambda: nf.io.open_losses(tmp_path / "bad.csv.gz", SHOP), "bad.csv.gz, line 5 has 'x'")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(LOSSES.encode())[:-20])
    check_refusal(lambda: nf.io.open_losses(tmp_path / "cut.csv.gz", SHOP), "cut.csv.gz cannot be read")
    (tmp_path / "odd.npy.gz").write_bytes(b"x")
    check_refusal(lambda: nf.io.open_losses(tmp_path / "odd.npy.gz", SHOP), "ends in '.npy.gz'")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    send(LOSSES)
    for _ in range(2):  # a command may look again
        assert every_round(nf.io.open_losses("-", SHOP), SHOP)[0, 1, :, 0].tolist() == [1.5, 2]
    send(MODEL)
    assert nf.io.load_mdp("-", horizon=2).labels.states == ("home", "away")
    check_refusal(lambda: nf.io.open_losses("-", SHOP), "standard input has the columns state, action")
    send(LOSSES.replace("1.5", "x"))
    check_refusal(lambda: nf.io.open_losses("-", SHOP), "standard input, line 2 has 'x' as loss")
    send("")
    check_refusal(lambda: nf.io.open_losses("-", SHOP), "standard input is empty")


def test_separators_and_decimal_commas(tmp_path: Path) -> None:
    def german(text: str) -> str:
        return text.replace(",", ";").replace(".", ",")

    for name, text in (("m", MODEL), ("l", LOSSES), ("f", FEATURES), ("c", "round,power\nmon,0.5\n")):
        (tmp_path / f"{name}.csv").write_text(german(text))
    style = {"separator": ";", "decimal": ","}
    mdp = nf.io.load_mdp(tmp_path / "m.csv", horizon=2, **style)
    assert mdp.transitions.expect(0, np.array([1.0, 0.0])).ravel().tolist() == [0.5, 1]
    losses = nf.io.open_losses(tmp_path / "l.csv", mdp, **style)
    assert every_round(losses, mdp)[:, 0, :, 0].tolist() == [[1.5, 2], [-1, 0.25]]
    factored = nf.io.open_losses(tmp_path / "c.csv", mdp, features=tmp_path / "f.csv", **style)
    assert every_round(factored, mdp)[0, 0, :, 0].tolist() == [1.25, 0]
    opened = nf.io.open_losses
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp), "l.csv has one column 'round;state;loss'")
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp, separator=";"), "pass --decimal ,")
    for sign in (";;", "", "x", "-", 5):
        check_refusal(lambda: opened(tmp_path / "l.csv", mdp, separator=sign), f"separator is {sign!r}")  # noqa: B023
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp, decimal=","), "separator and decimal are both ','")
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp, separator=";", decimal="'"), 'decimal is "\'"')
    (tmp_path / "l.csv").write_text(german(LOSSES).replace("1,5", "1.234,5"))
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp, **style), "has '1.234,5' as loss")
    (tmp_path / "l.csv").write_text(LOSSES)
    check_refusal(lambda: opened(tmp_path / "l.csv", mdp, **style), "has one column 'round,state,loss'")


def test_a_reward_column_is_rewards(tmp_path: Path) -> None:
    path = tmp_path / "rewards.csv"
    path.write_text(LOSSES.replace("loss", "reward"))
    (tmp_path / "losses.csv").write_text(LOSSES)
    losses, stream = (nf.io.open_losses(p, SHOP) for p in (tmp_path / "losses.csv", path))
    assert np.array_equal(every_round(stream, SHOP), -every_round(losses, SHOP))
    said = nf.io.open_losses(tmp_path / "losses.csv", SHOP, rewards=True)
    assert np.array_equal(every_round(said, SHOP), every_round(stream, SHOP))
    check_refusal(
        lambda: nf.io.open_losses(path, SHOP, rewards=True), "rewards.csv calls its numbers rewards"
    )
    check_refusal(lambda: nf.rewards(stream), "source is a stream of rewards already")
    for suffix in (".npz", ".csv", ".parquet", ".csv.gz"):
        nf.io.save_losses(stream, SHOP, tmp_path / f"kept{suffix}")
        back = nf.io.open_losses(tmp_path / f"kept{suffix}", SHOP)
        assert isinstance(back, Negated)
        assert np.array_equal(every_round(back.stream, SHOP), every_round(stream.stream, SHOP))  # type: ignore[attr-defined]
    path.write_text("round,loss,reward\nmon,1,-1\n")
    check_refusal(lambda: nf.io.open_losses(path, SHOP), "has the columns loss and reward")
    path.write_text("round,state,reward\nmon,home,1\n")
    check_refusal(lambda: nf.io.open_losses(path, SHOP), "has no reward for round mon, state away")
    path.write_text("round,state,reward\nmon,home,\n")
    check_refusal(lambda: nf.io.open_losses(path, SHOP, default=0), "line 2 has nothing as reward")


def test_steps_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(MODEL)
    nf.io.save_mdp(SHOP, tmp_path / "m.npz")
    nf.io.save_mdp(nf.MDP(np.zeros((2, 1, 1), dtype=int), 0), tmp_path / "two.npz")
    sources = [tmp_path / "m.csv", tmp_path / "m.npz", "gym:FrozenLake-v1"]
    for source in sources:
        mdp = nf.io.load_mdp(source, steps=["dawn", "noon", "dusk"])
        assert (mdp.horizon, mdp.labels.steps) == (3, ("dawn", "noon", "dusk"))
        check_refusal(lambda: nf.io.load_mdp(source, steps=["dawn"], horizon=2), "horizon is 2")  # noqa: B023
        for odd in ("dawn", [], 3):
            check_refusal(lambda: nf.io.load_mdp(source, steps=odd), f"steps is {odd!r}")  # noqa: B023
        check_refusal(lambda: nf.io.load_mdp(source, steps=["a", "a"]), "that name is taken")  # noqa: B023
    assert nf.io.load_mdp(tmp_path / "two.npz", steps=["a", "b"]).labels.steps == ("a", "b")
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "two.npz", steps=list("abc")), "horizon is 3")
    nf.io.save_mdp(nf.io.load_mdp(tmp_path / "two.npz", steps=["a", "b"]), tmp_path / "named.csv")
    check_refusal(
        lambda: nf.io.load_mdp(tmp_path / "named.csv", steps=["c", "d"]), "has names for them itself"
    )
