"""Orchestration: what is written, what is not computed twice, what is said when something fails."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest
from sentences import check_refusal
from stub_experiment import stub
from typer.testing import CliRunner

import normalfan as nf
from normalfan.cli.app import app
from normalfan.jobs import Serial
from normalfan.sources import files_of_code
from normalfan_paper import registry
from normalfan_paper import reproduce as orchestration
from normalfan_paper.experiment import Row, Scale, Verdict
from normalfan_paper.figures.style import new_figure, save_figure
from normalfan_paper.ledger import Ledger, Section
from normalfan_paper.page import to_html, to_markdown
from normalfan_paper.reproduce import reproduce

SUPPORT = Path(__file__).parents[1] / "support"


def run_stub(tmp_path: Path, **options: object) -> Ledger:
    experiment = stub(tmp_path / "trace", **options)  # type: ignore[arg-type]
    return reproduce([experiment], Scale(seeds=2), tmp_path / "out", Serial(), command="x", progress=False)


def traced(tmp_path: Path) -> list[int]:
    trace = tmp_path / "trace"
    return [int(line) for line in trace.read_text().split()] if trace.exists() else []


# --- what is written -------------------------------------------------------------------------------------


def test_everything_is_written(tmp_path: Path) -> None:
    ledger = run_stub(tmp_path)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "ledger.md", "ledger.html", "ledger.json", "times.json", "data", "figures", "cells",
    }  # fmt: skip
    assert polars.read_parquet(out / "data/stub.parquet")["number"].to_list() == [0, 1, 2, 3]
    assert {path.name for path in (out / "figures").iterdir()} == {"stub.pdf", "stub.png"}
    document = json.loads((out / "ledger.json").read_text())
    assert document == json.loads(json.dumps(ledger.to_document()))
    assert document["counts"] == {str(v): int(v is Verdict.HOLDS) for v in Verdict}
    times = json.loads((out / "times.json").read_text())
    assert times["stub"]["wall_seconds"] >= times["stub"]["cpu_seconds"] >= 0.0
    page = (out / "ledger.md").read_text()
    for piece in ("It adds \\| up.", "The sum is 6.", "✓ holds", "Which \\<way\\>?", "(figures/stub.png)"):
        assert piece in page
    assert f"normalfan {nf.__version__}" in page


def test_data_are_the_same_bytes_twice(tmp_path: Path) -> None:
    run_stub(tmp_path)
    data = (tmp_path / "out/data/stub.parquet").read_bytes()
    run_stub(tmp_path)
    assert (tmp_path / "out/data/stub.parquet").read_bytes() == data


def test_figures_are_the_same_bytes_twice(tmp_path: Path) -> None:
    def draw(folder: Path) -> list[bytes]:
        figure, axes = new_figure(height=1.0)
        axes.plot([0, 1])
        return [path.read_bytes() for path in save_figure(figure, folder, "line")]

    assert draw(tmp_path / "a") == draw(tmp_path / "b")


# --- resuming --------------------------------------------------------------------------------------------


def test_a_finished_cell_is_not_computed_again(tmp_path: Path) -> None:
    first, second = run_stub(tmp_path), run_stub(tmp_path)
    assert traced(tmp_path) == [0, 1, 2, 3]
    assert (first.sections[0].reused, second.sections[0].reused) == (0, 4)
    assert second.sections[0].cpu_seconds == first.sections[0].cpu_seconds
    assert run_stub(tmp_path, cells=6).sections[0].reused == 4
    assert traced(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stub_experiment import stub;"
        "from normalfan_paper.experiment import Scale; from normalfan_paper.reproduce import reproduce;"
        "from normalfan.jobs import Serial; base = Path(sys.argv[1]);"
        "reproduce([stub(base / 'trace', cells=30, pause=0.05)], Scale(seeds=2), base / 'out', Serial(),"
        " command='x', progress=False)"
    )
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})  # noqa: S603
    deadline = time.monotonic() + 60
    while len(traced(tmp_path)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = traced(tmp_path)
    assert 3 <= len(done) < 30
    assert not (tmp_path / "out/ledger.md").exists()
    ledger = run_stub(tmp_path, cells=30, pause=0.05)
    assert ledger.rows[0].verdict is Verdict.HOLDS
    assert sorted(set(traced(tmp_path))) == list(range(30))
    assert len(traced(tmp_path)) <= 31  # only the cell that was under way may have run twice
    assert ledger.sections[0].reused >= len(done) - 1


def test_the_digest_covers_what_the_task_imports_and_no_more() -> None:
    names = set(files_of_code("normalfan_paper.experiments.statements.run"))
    ours = {name.removeprefix("normalfan_paper.") for name in names}
    assert {
        "experiments.statements.counterexamples",
        "experiments.statements.instances",
        "experiment",
    } <= ours
    assert not ours & {"experiments.statements.check", "experiments.statements.claims", "figures.fan", "page"}
    assert {"normalfan.pricing.crossing", "normalfan.geometry.bellman", "normalfan._kernels.dense"} <= names
    assert not any(name.startswith(("normalfan.cli", "normalfan.report")) for name in names)


# --- failures --------------------------------------------------------------------------------------------


def test_a_broken_cell_is_listed_and_the_rest_is_kept(tmp_path: Path) -> None:
    ledger = run_stub(tmp_path, broken=2)
    assert traced(tmp_path) == [0, 1, 3]
    (failure,) = ledger.failures
    assert "this cell is broken" in failure
    assert not ledger.rows  # no verdict from an incomplete run
    assert "No verdicts, a cell failed" in (tmp_path / "out/ledger.md").read_text()
    assert not (tmp_path / "out/data").exists()


def test_the_command_reports_a_broken_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = (stub(tmp_path / "a", broken=1), stub(tmp_path / "b", cells=3))
    monkeypatch.setattr(registry, "find_experiments", lambda _: both)
    result = CliRunner().invoke(
        app, ["reproduce", "--workers", "1", "--out", str(tmp_path / "out"), "--json"]
    )
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [len(section["failures"]) for section in document["sections"]] == [1, 0]
    assert [len(section["rows"]) for section in document["sections"]] == [0, 1]
    assert "stub: 1 of 4 cells failed" in result.stderr


def test_the_command_prints_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_experiments", lambda _: (stub(tmp_path / "trace"),))
    result = CliRunner().invoke(
        app, ["reproduce", "--quick", "--workers", "1", "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    assert "The sum is 6." in result.stdout
    assert "1 claims; ✓ holds: 1;" in result.stdout
    assert "normalfan reproduce --quick --seeds 4" in (tmp_path / "out/ledger.md").read_text()


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_refusal(lambda: registry.find_experiments(["simplex", "no-such"]), "'no-such'")
    invoke = CliRunner().invoke

    def refused(*arguments: str) -> str:
        result = invoke(app, ["reproduce", "statements", "--out", str(tmp_path / "out"), *arguments])
        assert isinstance(result.exception, nf.InputError)
        assert not (tmp_path / "out").exists()
        return str(result.exception)

    assert "--seeds is 1" in refused("--seeds", "1")
    assert "both --cluster and --workers" in refused("--cluster", "tcp://x:1", "--workers", "2")
    assert "workers is 0" in refused("--workers", "0")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    check_refusal(orchestration._require_matplotlib, "matplotlib")
    assert "normalfan[paper]" in refused()


def test_the_registry_knows_the_statements() -> None:
    (found,) = registry.find_experiments(["statements", "statements"])
    assert found.id == "statements"
    assert registry.open_choices([found]) == found.choices


# --- pages -----------------------------------------------------------------------------------------------


def doctored(*verdicts: Verdict) -> Ledger:
    rows = tuple(
        Row(f"x/{i}", "<b>a</b> | b", "1 * 2_3\nnext", verdict, "why", {"inf": float("inf"), "one": 1.0})
        for i, verdict in enumerate(verdicts)
    )
    section = Section("x", "X & Y", rows, (), (), 3, 1, 7200.0, 90.0, ("cell: <oops> | \n broken",))
    return Ledger("normalfan reproduce x", 4, True, "one process", {"Python": "3"}, (section,))


def test_pages_hold_their_shape_whatever_a_row_says() -> None:
    ledger = doctored(*Verdict, Verdict.FALSE)
    page = to_markdown(ledger)
    rows = [line for line in page.splitlines() if line.startswith("| x/")]
    assert len(rows) == 5
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)
    assert "| ✗ false as written | 2 |" in page
    assert "2.0 h" in page
    assert "1.5 min" in page
    html = to_html(ledger, Path())
    assert "<oops>" not in html
    assert "<b>a</b>" not in html
    assert "X &amp; Y" in html
    assert html.count("<table>") == html.count("</table>") == 3


def test_the_document_is_strict_json() -> None:
    document = doctored(Verdict.HOLDS).to_document()
    text = json.dumps(document, allow_nan=False)
    assert json.loads(text)["sections"][0]["rows"][0]["numbers"] == {"inf": None, "one": 1.0}
    assert document["counts"]["holds"] == 1
