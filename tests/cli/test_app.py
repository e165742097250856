"""The command line as a person meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, run

import normalfan as nf
from normalfan.battery import Battery, ercot_prices


@pytest.mark.processes
@pytest.mark.slow
def test_demo_tells_the_story_of_the_battery(tmp_path: Path) -> None:
    page = tmp_path / "battery.html"
    result = run("demo", "--report", str(page))
    assert result.returncode == 0, result.stderr
    assert "(storm Uri)" in result.stdout
    assert "2021-02-16" in result.stdout
    assert page.stat().st_size > 1e6


@pytest.mark.slow
def test_demo_python_price_and_watch_agree(tmp_path: Path) -> None:
    """The same days by the demo, in Python, from the exported files, and line by line."""
    page, folder = tmp_path / "battery.html", tmp_path / "battery"
    demo = call("demo", "--json", "--report", page, "--export", folder)
    document = json.loads(demo.out)
    battery, market = Battery(), ercot_prices()
    expected = nf.price_stream(battery.mdp(), battery.losses(market.prices))
    assert [day["price"] for day in document["rounds"]] == expected.prices.tolist()
    assert document["summary"]["total"] == expected.total

    files = (
        str(folder / "model.npz"),
        str(folder / "prices.csv"),
        "--features",
        str(folder / "features.csv"),
    )
    priced = json.loads(call("price", *files, "--json").out)
    assert priced["summary"]["total"] == pytest.approx(expected.total, rel=1e-12)
    assert [day["round"] for day in priced["rounds"]] == list(market.dates)

    lines = "".join(
        json.dumps({"round": t, "theta": [*day, 1.0]}) + "\n"
        for t, day in enumerate(market.prices[:60].tolist())
    )
    watched = call("watch", files[0], *files[2:], stdin=lines)
    prices = [json.loads(line)["price"] for line in watched.out.splitlines()]
    assert prices == pytest.approx(expected.prices[:60], rel=1e-12)


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extras `report` and `plot` were not installed."""
    for package in ("jinja2", "markupsafe", "plotly", "matplotlib"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("without_extras")
def test_demo_without_the_extra_tells_the_story_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = call("demo")
    assert answer.code == 0
    assert "(storm Uri)" in answer.out
    assert "Report:" not in answer.out
    assert answer.err.startswith("normalfan: no report was written: jinja2 is not installed, but ")
    assert answer.err.endswith("pip install 'normalfan[report]'.\n")
    assert json.loads(call("demo", "--json").out)["report"] is None
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("demo", "--report", "page.html"), "report"),
        (("price", "no-model.npz", "no-losses.npy", "--report", "page.html"), "report"),
        (("range", "no-model.npz", "no-losses.npy", "--report", "page.html"), "report"),
        (("fan", "no-model.npz", "--at", "0", "--along", "0", "1", "--out", "fan.html"), "report"),
        (("fan", "no-model.npz", "--at", "0", "--along", "0", "1", "--out", "fan.png"), "plot"),
    ],
)
def test_a_page_or_picture_without_its_extra_is_refused_before_the_work(
    arguments: tuple[str, ...], extra: str
) -> None:
    answer = call(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("normalfan: ")
    assert answer.err.endswith(f"pip install 'normalfan[{extra}]'.\n")


@pytest.mark.parametrize(
    "command", ["demo", "price", "range", "fan", "watch", "replan", "fleet", "reproduce"]
)
def test_help_has_an_example(command: str) -> None:
    answer = call(command, "--help")
    assert answer.code == 0
    assert f"Example:  normalfan {command}" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce", "no-such-claim"),
        ("no-such-command",),
        ("demo", "--no-such-option"),
    ],
)
def test_bad_input_is_a_sentence_and_an_exit_code(arguments: tuple[str, ...]) -> None:
    answer = call(*arguments)
    assert answer.code == 2
    assert "Traceback" not in answer.err
    assert answer.err.strip()
    assert not answer.out


@pytest.mark.processes
def test_version() -> None:
    import normalfan

    assert run("--version").stdout == f"normalfan {normalfan.__version__}\n"


@pytest.mark.processes
@pytest.mark.parametrize("command", ["", "price", "watch"])
def test_help_loads_nothing_that_computes(command: str) -> None:
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); import normalfan.__main__"
    words = [sys.executable, "-c", code, *command.split(), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert "Usage: normalfan" in done.stdout
    assert not {"numpy", "scipy", "polars", "numba", "rich"} & set(done.stdout.split())


@pytest.mark.processes
@pytest.mark.slow
def test_kernels_compile_once_per_machine(tmp_path: Path) -> None:
    """A second process loads what the first compiled, silently."""
    code = (
        "import numpy as np, normalfan as nf;"
        "nf.price_stream(nf.MDP(np.array([[0, 0]]), 0, horizon=1), np.zeros((2, 1, 1, 2)))"
    )

    def price() -> str:
        return subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stderr

    assert "compiling its kernels" in price()
    assert price() == ""
