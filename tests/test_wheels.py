"""What users get: wheels in empty environments, where each command has a result or names what to install."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import polars
import pytest
from wheels import build_wheels, new_environment, run_all_there, run_there

pytestmark = [pytest.mark.slow, pytest.mark.processes]

DAYS = 40
FILES = ("model.npz", "prices.csv", "--features", "features.csv")
REPLAN = ("replan", *FILES, "--cost", "5000")
FAN = (
    "fan", "model.npz", "--losses", "prices.csv", "--features", "features.csv", "--at", "2021-01-02",
    "--along", "2021-01-02..2021-01-03", "2021-01-02..2021-01-04", "--out",
)  # fmt: skip

RESULTS = [
    ("price", *FILES),
    REPLAN,
    ("fleet", "fleet.parquet", "--workers", "1"),
]
REFUSALS = {
    ("demo", "--report", "page.html"): "pip install 'normalfan[report]'",
    ("price", *FILES, "--report", "page.html"): "pip install 'normalfan[report]'",
    (*REPLAN, "--figure", "curve.png"): "pip install 'normalfan[plot]'",
    (*FAN, "page.html"): "pip install 'normalfan[report]'",
    (*FAN, "fan.png"): "pip install 'normalfan[plot]'",
    ("fleet", "fleet.parquet", "--cluster", "tcp://localhost:1"): "pip install 'normalfan[cluster]'",
    ("reproduce", "--quick"): "pip install normalfan-paper",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


def test_the_product_alone(wheels: dict[str, Path], tmp_path: Path, subtests: pytest.Subtests) -> None:
    commands = new_environment(tmp_path / "alone", wheels["normalfan"])
    with subtests.test("demo"):
        demo = run_there(commands, tmp_path, "demo", "--export", ".")
        assert "(storm Uri)" in demo.stdout, demo.stderr
        assert "pip install 'normalfan[report]'" in demo.stdout + demo.stderr
        assert demo.returncode == 0
    _cut_short(tmp_path)
    for arguments in RESULTS:
        with subtests.test(arguments[0]):
            shown = run_there(commands, tmp_path, *arguments)
            assert shown.returncode == 0, shown.stderr
            assert shown.stdout
            assert arguments != REPLAN or "pip install 'normalfan[compare]'" in shown.stderr
    with subtests.test("watch"):
        lines = (tmp_path / "prices.jsonl").read_text()
        watched = run_there(commands, tmp_path, "watch", "model.npz", *FILES[2:], stdin=lines)
        assert watched.returncode == 0, watched.stderr
        assert len([json.loads(line) for line in watched.stdout.splitlines()]) == DAYS
    answers = run_all_there(commands, tmp_path, list(REFUSALS))
    for (arguments, remedy), (code, told) in zip(REFUSALS.items(), answers, strict=True):
        with subtests.test(" ".join(arguments)):
            assert "Traceback" not in told
            assert remedy in told.splitlines()[-1]
            assert code == 2
    assert not (tmp_path / "page.html").exists()


def test_the_companion_beside_it(wheels: dict[str, Path], tmp_path: Path) -> None:
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as wheel:
            folders = {file.partition("/")[0] for file in wheel.namelist()}
        assert {folder for folder in folders if not folder.endswith(".dist-info")} == {name}
    commands = new_environment(tmp_path / "both", *wheels.values(), extras=("plot", "report"))
    some = ("degenerate", "--quick", "--seeds", "2", "--workers", "1")
    ended = run_there(commands, tmp_path, "reproduce", *some, "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert "degenerate/identical-price" in (tmp_path / "out" / "ledger.md").read_text()
    assert (tmp_path / "out" / "ledger.html").stat().st_size > 10_000


def _cut_short(folder: Path) -> None:
    """The demo's files with some of their days, and a fleet of two."""
    for name in ("prices.csv", "prices.jsonl"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: DAYS + name.endswith(".csv")]))
    files = {"model": "model.npz", "losses": "prices.csv", "features": "features.csv"}
    polars.DataFrame([{"member": name} | files for name in "ab"]).write_parquet(folder / "fleet.parquet")
