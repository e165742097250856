"""`normalfan fan`: what it draws is what the library says, in each format, and bad input is a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentences import check_refusal
from typer.testing import CliRunner, Result

import normalfan as nf
from normalfan.battery import Battery
from normalfan.cli.app import app
from normalfan.io import save_mdp
from normalfan.report import write_fan
from normalfan.report.fan import Plane, draw_fan

BATTERY = Battery(100.0, 50.0, 5)
PRICES = np.random.default_rng(6).normal(40, 30, size=(6, 6)).repeat(4, axis=1)
"""A price for every four hours: one for every hour makes thousands of plans, which take seconds to draw."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its losses with numbered rounds, and one loss by itself."""
    there = tmp_path_factory.mktemp("fan")
    mdp = BATTERY.mdp()
    save_mdp(mdp, there / "model.npz")
    losses = next(BATTERY.losses(PRICES).blocks(mdp.shape, 6))
    np.save(there / "losses.npy", losses)
    np.save(there / "one.npy", losses[2])
    np.save(there / "small.npy", losses[2, :3])
    (there / "cut.npy").write_bytes((there / "one.npy").read_bytes()[:60])
    return there


def fan(folder: Path, *arguments: str) -> Result:
    """The command in this process; `FOLDER` in an argument stands for the folder."""
    spoken = [argument.replace("FOLDER", str(folder)) for argument in arguments]
    return CliRunner().invoke(app, ["fan", str(folder / "model.npz"), *spoken])


PLANE = ("--losses", "FOLDER/losses.npy", "--at", "2", "--along", "2..3", "3..4")


def test_the_document_is_the_picture(folder: Path) -> None:
    result = fan(folder, *PLANE, "--span", "-1", "2", "--path", "1..4", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    mdp = BATTERY.mdp()
    losses = np.load(folder / "losses.npy")
    plane = Plane(losses[2], losses[3] - losses[2], losses[4] - losses[3])
    expected = draw_fan(mdp, plane, ((-1, 2), (-1, 2)), list(losses[1:5]))
    assert document["complete"]
    assert [one["corners"] for one in document["plans"]] == [p.tolist() for p in expected.regions.polygons]
    assert len(document["plans"]) > 3
    least = min(one["value"] + np.dot(one["exposures"], (1, 1)) for one in document["plans"])
    assert least == pytest.approx(nf.price_stream(mdp, losses[4:5]).values[0])
    kept = min(one["value"] + np.dot(one["exposures"], (1, 1)) for one in document["kept"])
    assert kept - least == pytest.approx(nf.price_stream(mdp, losses[2:5], against=2).prices[2])
    assert [stop["round"] for stop in document["path"]] == ["round 1", "round 2", "round 3", "round 4"]
    assert [(stop["x"], stop["y"]) for stop in document["path"][1:]] == [(0, 0), (1, 0), (1, 1)]
    assert [stop["in_plane"] for stop in document["path"]] == [False, True, True, True]
    prices = nf.price_stream(mdp, losses).prices[1:5]
    assert [stop["price"] for stop in document["path"]] == pytest.approx(prices)


@pytest.mark.parametrize(
    ("options", "rounds"),
    [(("--at", "2"), "01234"), (("--at", "0"), "012"), (("--at", "FOLDER/one.npy"), "")],
)
def test_the_path_is_that_next_to_the_origin(options: tuple[str, ...], rounds: str, folder: Path) -> None:
    document = json.loads(fan(folder, *PLANE, *options, "--json").stdout)
    assert [stop["round"] for stop in document["path"]] == [f"round {t}" for t in rounds]


@pytest.mark.parametrize(
    "said",
    [
        ("--at", "FOLDER/one.npy", "--along", "FOLDER/losses.npy:2..3", "FOLDER/losses.npy:3..4"),
        ("--at", "FOLDER/losses.npy:2", "--losses", "FOLDER/losses.npy", "--along", "2..3", "3..4"),
    ],
)
def test_losses_can_be_said_in_several_ways(said: tuple[str, ...], folder: Path) -> None:
    one, other = (json.loads(fan(folder, *words, "--json").stdout) for words in (said, PLANE))
    assert one["plans"] == other["plans"]
    assert one["kept"] == other["kept"]


@pytest.mark.parametrize("options", [(), ("--rewards",)])
def test_directions_may_be_features(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buying or making, both at 3: each is best on its side of the diagonal."""
    monkeypatch.chdir(tmp_path)
    Path("model.csv").write_text("state,action,next_state,probability\nshop,buy,shop,1\nshop,make,shop,1\n")
    Path("prices.csv").write_text("round,buying,making\nmon,3,3\n")
    Path("features.csv").write_text("feature,action,value\nbuying,buy,1\nmaking,make,1\n")
    command = "fan model.csv --horizon 1 --start shop --losses prices.csv --features features.csv --at mon"
    plane = "--along buying making --span -1 1 --json"
    result = CliRunner().invoke(app, [*command.split(), *plane.split(), *options])
    assert result.exit_code == 0, result.output
    right_of = {
        abs(one["exposures"][0]): np.mean([x - y for x, y in one["corners"]]) > 0
        for one in json.loads(result.stdout)["plans"]
    }
    assert right_of == {1.0: bool(options), 0.0: not options}  # cheap buying is left, well paid is right


def test_rewards_are_negated_wherever_they_come_from(folder: Path) -> None:
    along = (
        "--along",
        "FOLDER/losses.npy:2..3",
        "FOLDER/losses.npy:3..4",
        "--json",
        "--rewards",
    )
    one, other = (fan(folder, "--at", at, *along) for at in ("FOLDER/one.npy", "FOLDER/losses.npy:2"))
    assert one.stdout == other.stdout
    assert one.stdout != fan(folder, "--at", "FOLDER/one.npy", *along[:-1]).stdout


@pytest.mark.parametrize(
    ("name", "beginning"), [("fan.html", b"<!doctype html>"), ("fan.png", b"\x89PNG"), ("fan.pdf", b"%PDF")]
)
def test_pictures_are_written_and_the_same_twice(
    name: str, beginning: bytes, folder: Path, tmp_path: Path
) -> None:
    written = []
    for _ in range(2):
        result = fan(folder, *PLANE, "--unit", "$", "--out", str(tmp_path / name))
        assert result.exit_code == 0, result.output
        assert "plans are optimal somewhere in this window" in result.stdout
        written.append((tmp_path / name).read_bytes())
    assert written[0].startswith(beginning)
    assert written[0] == written[1]


REFUSALS = [
    (("--at", "2", "--along", "2..3", "3..4"), "--at is 2"),
    ((*PLANE, "--at", "9"), "'9'"),
    ((*PLANE, "--at", ".."), "'..'"),
    ((*PLANE, "--at", "FOLDER/no.npy"), "no.npy"),
    ((*PLANE, "--at", "FOLDER/cut.npy"), "cut.npy"),
    ((*PLANE, "--at", "FOLDER/small.npy"), "small.npy has shape [3, 5, 5]"),
    ((*PLANE, "--along", "2..3", "2..3"), "--along is 2..3 2..3"),
    ((*PLANE, "--along", "2..2", "2..3"), "--along is 2..2"),
    ((*PLANE, "--along", "2..x", "2..3"), "'x'"),
    ((*PLANE, "--span", "1", "1"), "--span is 1 1"),
    ((*PLANE, "--path", "4..2"), "-1 rounds"),
    ((*PLANE, "--out", "fan.svg"), "--out is fan.svg"),
    (
        ("--at", "FOLDER/one.npy", "--along", "FOLDER/one.npy", "FOLDER/losses.npy:3", "--path", "1..2"),
        "--path is 1..2",
    ),
]


@pytest.mark.parametrize(("arguments", "where"), REFUSALS)
def test_refusals(arguments: tuple[str, ...], where: str, folder: Path) -> None:
    before = sorted(folder.iterdir())

    def provoke() -> None:
        result = fan(folder, *arguments)
        assert isinstance(result.exception, Exception), result.output
        raise result.exception

    check_refusal(provoke, where)
    assert sorted(folder.iterdir()) == before


@pytest.mark.processes
def test_a_refusal_is_a_sentence_and_an_exit_code(folder: Path) -> None:
    command = [sys.executable, "-m", "normalfan", "fan", str(folder / "model.npz")]
    result = subprocess.run(  # noqa: S603
        [*command, "--at", "2", "--along", "a", "b"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("normalfan: --at is 2, but")


def test_a_picture_of_another_kind_is_refused(tmp_path: Path) -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
    e = np.eye(2).reshape(2, 1, 1, 2)
    picture = draw_fan(arms, Plane(e[0], e[0], e[1]))
    check_refusal(lambda: write_fan(tmp_path / "fan.gif", picture, title=""), "fan.gif")
