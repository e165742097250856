"""Orchestration: what is written, what is not computed twice, what is said when something fails."""

from __future__ import annotations

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
from stub_experiment import GATED, stub

import normalfan as nf
from normalfan.jobs import Serial
from normalfan.sources import files_of_code
from normalfan_paper.experiment import Scale, Verdict
from normalfan_paper.figure_style import paper_figure, save_figure
from normalfan_paper.ledger import Ledger
from normalfan_paper.pipeline import run_experiments
from normalfan_paper.registry import find_experiments

SUPPORT = Path(__file__).parents[1] / "support"


def run_stub(tmp_path: Path, **options: object) -> Ledger:
    experiment = stub(tmp_path / "trace", **options)  # type: ignore[arg-type]
    return run_experiments(
        [experiment], Scale(seeds=2), tmp_path / "out", Serial(), command="x", progress=False
    )


def traced(tmp_path: Path) -> list[int]:
    trace = tmp_path / "trace"
    return [int(line) for line in trace.read_text().split()] if trace.exists() else []


# --- what is written -------------------------------------------------------------------------------------


def test_everything_is_written(tmp_path: Path) -> None:
    ledger = run_stub(tmp_path)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "ledger.md", "ledger.html", "ledger.json", "fan.html", "times.json", "data", "figures", "cells",
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
        figure, axes = paper_figure(height=1.0)
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


@pytest.mark.processes
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stub_experiment import stub;"
        "from normalfan_paper.experiment import Scale; from normalfan.jobs import Serial;"
        "from normalfan_paper.pipeline import run_experiments; base = Path(sys.argv[1]);"
        "run_experiments([stub(base / 'trace', cells=6, gate=base / 'gate')], Scale(seeds=2), base / 'out',"
        " Serial(), command='x', progress=False)"
    )
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})  # noqa: S603
    deadline = time.monotonic() + 120
    while len(traced(tmp_path)) < GATED and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)  # while the gated cell waits
    process.wait()
    assert traced(tmp_path) == list(range(GATED))
    assert not (tmp_path / "out/ledger.md").exists()
    (tmp_path / "gate").touch()
    ledger = run_stub(tmp_path, cells=6, gate=tmp_path / "gate")
    assert ledger.rows[0].verdict is Verdict.HOLDS
    # The last result before the kill may not have been written yet; no other cell runs twice.
    assert sorted(set(traced(tmp_path))) == list(range(6))
    assert len(traced(tmp_path)) <= 7
    assert ledger.sections[0].reused >= GATED - 1


def test_the_digest_covers_what_the_task_imports_and_no_more() -> None:
    names = set(files_of_code("normalfan_paper.experiments.statements.run"))
    ours = {name.removeprefix("normalfan_paper.") for name in names}
    assert {
        "experiments.statements.counterexamples",
        "experiments.statements.instances",
        "experiment",
    } <= ours
    assert not ours & {
        "experiments.statements.check",
        "experiments.statements.claims",
        "experiments.statements.choices",
        "experiments.statements.figures.normal_fan",
        "ledger_page",
    }
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


# --- the registry ----------------------------------------------------------------------------------------


def test_experiments_are_found_by_name() -> None:
    (found,) = find_experiments(["statements", "statements"])
    assert found.id == "statements"
    check_refusal(lambda: find_experiments(["simplex", "no-such"]), "'no-such'")
