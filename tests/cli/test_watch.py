"""`normalfan watch` as a person, a feeder and a supervisor meet it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

import numpy as np
import pytest

import normalfan as nf
from normalfan.battery import Battery
from normalfan.cli import main
from normalfan.watch.journal import read_progress

ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
LINES = [
    json.dumps({"round": t, "loss": [[[t % 2, 1 - t % 2]]]}) for t in range(4)
]  # 1 a round after the first
KEPT = ("--state", "state", "--out", "out.jsonl")
PATIENCE = 300  # seconds, for a process that never ends

Run = Callable[..., "Ended"]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run a watch of `model.npz` in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    nf.io.save_mdp(ARMS, "model.npz")

    def running(*arguments: str, lines: list[str] | None = LINES, model: str = "model.npz") -> Ended:
        Path("input").write_text("".join(line + "\n" for line in lines or []))
        with Path("input").open() as stdin:
            monkeypatch.setattr(sys, "stdin", None if lines is None else stdin)
            monkeypatch.setattr(sys, "argv", ["normalfan", "watch", model, *arguments])
            with pytest.raises(SystemExit) as ending:
                main()
        return Ended(int(ending.value.code or 0), *capfd.readouterr())

    return running


def records(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_prices_on_standard_output(run: Run) -> None:
    ended = run(lines=[LINES[0], "oops", *LINES[1:]])
    assert (ended.code, ended.err) == (0, "")
    shown = records(ended.out)
    assert [record.get("price") for record in shown] == [0, None, 1, 1, 1]
    assert shown[1]["line"] == 2
    assert set(shown[1]) == {"line", "error"}


def test_the_summary_as_json_keeps_out_of_the_way_of_prices(run: Run) -> None:
    ended = run("--json")
    assert len(records(ended.out)) == 4
    summary = json.loads(ended.err)
    assert (summary["priced"], summary["total"]) == (4, 3)
    ended = run("--json", *KEPT, lines=[*LINES, "oops"])
    assert json.loads(ended.out) == {**summary, "bad_lines": 1}
    assert json.loads(ended.err)["line"] == 5


def test_resuming_skips_what_was_priced(run: Run) -> None:
    assert (
        run(*KEPT, "--status", "--json").out
        == '{\n  "last_round": null,\n  "rounds": 0,\n  "total": 0.0\n}\n'
    )
    assert run(*KEPT, "--status").out == "No round was priced yet.\n"
    assert run(*KEPT, lines=LINES[:2]).out.startswith("2 rounds priced, 0 lines skipped")
    assert run("--state", "state", "--status").out.startswith(
        "The last round priced is 1: send the rounds after it."
    )
    ended = run(*KEPT, "--json")
    summary = json.loads(ended.out)
    assert (summary["priced"], summary["skipped"], summary["rounds"], summary["total"]) == (2, 2, 4, 3)
    assert Path("out.jsonl").read_text() == run().out


def test_an_alarm_is_an_exit_code_and_a_line_on_standard_error(run: Run) -> None:
    ended = run("--alarm", "price>1", "--alarm", "total>2")
    assert ended.code == 3
    assert ended.err == "normalfan: alarm total>2 in round 3: price 1, total 3\n"
    assert records(ended.out)[3]["alarms"] == ["total>2"]
    assert run("--alarm", "price>1").code == 0
    # A total that passed its bound in an earlier process is not news.
    assert run("--alarm", "total>2", *KEPT).code == 3
    assert run("--alarm", "total>2", *KEPT, lines=[*LINES, LINES[0].replace("0", "4", 1)]).code == 0


def test_a_rule_is_a_record_a_sentence_a_metric_and_an_exit_code(run: Run) -> None:
    options = ("--rule", "accumulated:2", "--unit", "$")
    ended = run(*options, "--alarm", "total>2", "--prometheus", "watch.prom")
    assert ended.code == 4
    sentence = "normalfan: re-plan now: in round 3 the plan of round 0 would cost $1; it has cost $1 since it"
    assert ended.err.splitlines()[1].startswith(sentence)
    assert [record["service"]["since"] for record in records(ended.out)] == [0, 0, 0, 3]  # type: ignore[index]
    metrics = Path("watch.prom").read_text()
    for name, number in {"replans_total": 1.0, "plan_age_rounds": 0.0, "plan_cost": 0.0}.items():
        assert f'\nnormalfan_watch_{name}{{model="model.npz"}} {number}\n' in metrics
    assert run("--rule", "accumulated:5").code == 0
    assert (
        run("--rule", "accumulated:2", lines=[*LINES, LINES[1].replace("1", "4", 1)]).code == 4
    )  # not the last
    assert run(*options, *KEPT, lines=LINES[:3]).code == 0
    service = {"rule": "accumulated:2", "since": 0, "age": 2, "cost": 1, "replans": 0}
    assert json.loads(run(*KEPT, "--status", "--json").out)["service"] == service
    status = "The plan of round 0 is in service; it has cost $1 in 2 rounds. By accumulated:2: 0 re-plans.\n"
    assert run(*KEPT, "--status", "--unit", "$").out.endswith(status)
    ended = run("--rule", "accumulated:3", *KEPT)
    assert (ended.code, ended.out) == (2, "")
    assert "the rule is accumulated:3 and was accumulated:2" in ended.err
    assert json.loads(run(*options, *KEPT, "--json").out)["replans"] == 1
    assert Path("out.jsonl").read_text() == run(*options).out


def test_rewards_stay_rewards(run: Run) -> None:
    losses = [[[[1, 5]]], [[[7, 2]]], [[[3, 4]]]]
    lines = {
        key: [json.dumps({"round": t, key: x}) for t, x in enumerate(losses)] for key in ("loss", "reward")
    }
    ended = run(lines=lines["reward"])
    batch = nf.price_stream(ARMS, nf.rewards(np.array(losses)))
    assert [record["price"] for record in records(ended.out)] == batch.prices.tolist() == [0, 5, 1]
    assert [record["value"] for record in records(ended.out)] == [5, 7, 4]
    assert run("--rewards", lines=lines["loss"]).out == ended.out
    assert run("--rewards", lines=lines["reward"]).out == ended.out
    assert run("--alarm", "value<5", lines=lines["reward"]).err.startswith(
        "normalfan: alarm value<5 in round 2"
    )
    both = run(lines=['{"round": 0, "loss": [[[0, 1]]], "reward": [[[0, 1]]]}', *lines["loss"]])
    assert "one of 'loss', 'reward', 'theta', and nothing else" in str(records(both.out)[0]["error"])
    assert run(*KEPT, "--rewards", lines=lines["loss"][:2]).code == 0
    ended = run(*KEPT, lines=lines["loss"])
    assert (ended.code, ended.out) == (2, "")
    assert "the features (or --rewards, or the models) are not those" in ended.err


def test_no_standard_input_is_a_sentence(run: Run) -> None:
    ended = run(lines=None)
    assert ended.code == 2
    assert ended.err.startswith("normalfan: standard input is closed, but")


def test_strict_stops_and_keeps_what_came_before(run: Run) -> None:
    ended = run("--strict", *KEPT, lines=[*LINES[:2], "oops", *LINES[2:]])
    assert ended.code == 2
    assert ended.err.startswith("normalfan: line 3: the line cannot be read as JSON")
    assert len(records(Path("out.jsonl").read_text())) == 2


def test_a_disk_that_fails_is_a_sentence_and_nothing_is_lost(run: Run) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "pwrite"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, name, full)
            ended = run(*KEPT)
        assert ended.code == 1
        assert ended.err.startswith("normalfan: a file could not be read or written")
        assert "No space left" in ended.err
    assert run(*KEPT).code == 0
    assert Path("out.jsonl").read_text() == run().out


def test_a_battery_from_files_by_its_coefficients(run: Run, rng: np.random.Generator) -> None:
    battery = Battery()
    mdp, losses = battery.mdp(), battery.losses(rng.normal(40, 20, size=(6, 24)))
    nf.io.save_mdp(mdp, "battery.csv")
    nf.io.save_losses(losses, mdp, "coefficients.csv", features="features.csv")
    lines = [json.dumps({"round": t, "theta": theta}) for t, theta in enumerate(losses.coefficients.tolist())]
    options = ("--features", "features.csv", "--start", "0 MWh")
    ended = run(*options, "--prometheus", "battery.prom", lines=lines, model="battery.csv")
    assert ended.err == ""
    stored = nf.io.load_mdp("battery.csv", start="0 MWh")
    batch = nf.price_stream(stored, nf.io.open_losses("coefficients.csv", stored, features="features.csv"))
    assert [record["price"] for record in records(ended.out)] == batch.prices.tolist()
    assert batch.prices == pytest.approx(nf.price_stream(mdp, losses).prices)
    costliest = records(ended.out)[-1]["costliest"]
    assert re.fullmatch(r"\d\d:00", costliest["step"])  # type: ignore[index]
    assert costliest["state"] in mdp.labels.states  # type: ignore[index, operator]
    assert 'normalfan_watch_rounds_total{model="battery.csv"} 6.0\n' in Path("battery.prom").read_text()


def test_metrics_without_the_library_are_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    ended = run("--prometheus", "watch.prom")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "normalfan: prometheus_client is not installed, but a metrics file needs it: "
        "pip install 'normalfan[watch]'.\n"
    )


def test_help_has_an_example_and_the_exit_codes(run: Run) -> None:
    text = run("--help").out
    assert "Example:  normalfan watch" in text
    assert "3 an alarm was raised; 4 the rule called for a re-plan" in re.sub(r"\s+", " ", text)


BAD_INPUT: dict[str, tuple[tuple[str, ...], str]] = {
    "missing model": (("missing.npz",), "missing.npz"),
    "truncated model": (("truncated.npz",), "truncated.npz"),
    "model of an unknown kind": (("model.txt",), "model.txt"),
    "missing features": (("model.npz", "--features", "missing.csv"), "missing.csv"),
    "features with wrong columns": (("model.npz", "--features", "columns.csv"), "columns.csv"),
    "features with an unknown state": (("model.npz", "--features", "unknown.csv"), "nowhere"),
    "state without out": (("model.npz", "--state", "state"), "--out"),
    "out without state": (("model.npz", "--out", "out"), "--state"),
    "status without state": (("model.npz", "--status"), "--state"),
    "directory as state": (
        ("model.npz", "--state", "folder", "--out", "out"),
        "state is folder, but that is a directory",
    ),
    "directory as out": (
        ("model.npz", "--state", "state", "--out", "folder"),
        "folder, but that is a directory",
    ),
    "out in no directory": (
        ("model.npz", "--state", "state", "--out", "no/out"),
        "no/out, but there is no directory no",
    ),
    "one file for both": (("model.npz", "--state", "same", "--out", "same"), "same"),
    "state that is no state": (("model.npz", "--state", "model.npz", "--out", "out"), "model.npz"),
    "state that is text": (("model.npz", "--state", "columns.csv", "--out", "out"), "columns.csv"),
    "status of no state": (("model.npz", "--state", "columns.csv", "--status"), "columns.csv"),
    "out that is somebody else's": (
        ("model.npz", "--state", "new", "--out", "columns.csv"),
        "columns.csv holds",
    ),
    "state of another model": (("other.npz", "--state", "used", "--out", "used.jsonl"), "another problem"),
    "unknown alarm": (("model.npz", "--alarm", "cost>5"), "'cost>5'"),
    "unknown rule": (("model.npz", "--rule", "total:5"), "'total:5'"),
    "rule without its number": (("model.npz", "--rule", "cusum:5"), "'cusum:5'"),
    "rule below 0": (("model.npz", "--rule", "single:-1"), "SingleDay.threshold is -1"),
    "known without a rule": (("model.npz", "--known", "after"), "--known is after without --rule"),
    "known never": (("model.npz", "--rule", "periodic:2", "--known", "never"), "'never'"),
    "little memory": (("model.npz", "--max-memory", "10"), "may take at most 10"),
    "metrics in no directory": (("model.npz", "--prometheus", "no/m.prom"), "no/m.prom"),
    "directory as metrics": (("model.npz", "--prometheus", "folder"), "folder, but that is a directory"),
    "pipe as metrics": (("model.npz", "--prometheus", "pipe"), "pipe, but that is not a regular file"),
    "pipe as out": (
        ("model.npz", "--state", "state", "--out", "pipe"),
        "pipe, but that is not a regular file",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_a_sentence_and_nothing_is_written(case: str, run: Run, tmp_path: Path) -> None:
    Path("truncated.npz").write_bytes(Path("model.npz").read_bytes()[:300])
    Path("model.txt").write_text("a model")
    Path("columns.csv").write_text("a,b\n1,2\n")
    Path("unknown.csv").write_text("feature,state,value\nsun,nowhere,2\n")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    nf.io.save_mdp(nf.MDP(np.array([[0, 0, 0]]), 0, horizon=1), "other.npz")
    run("--state", "used", "--out", "used.jsonl")
    before = contents(tmp_path)

    (model, *options), where = BAD_INPUT[case]
    ended = run(*options, model=model)
    assert ended.code == 2
    assert ended.out == ""
    assert where in ended.err
    assert re.fullmatch(r"normalfan: [^\n]*, but [^\n]*: [^\n]*\.\n", ended.err), ended.err
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that holds something (a lock is an empty file)."""
    files = [path for path in folder.iterdir() if path.is_file() and path.stat().st_size]
    return {path.name: path.read_bytes() for path in files}


def start(folder: Path, *arguments: str, stdin: Path | None = None) -> subprocess.Popen[str]:
    nf.io.save_mdp(ARMS, folder / "model.npz")
    source = subprocess.PIPE if stdin is None else os.open(stdin, os.O_RDONLY)
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-W", "error", "-m", "normalfan", "watch", "model.npz", *arguments],
        cwd=folder,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(nf.__file__).parents[1])},
    )
    if stdin is not None:
        os.close(source)
    return process


def send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


@pytest.mark.processes
def test_each_line_is_answered_at_once_until_nobody_listens(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        assert process.stdout
        assert process.stderr
        for t, line in enumerate(LINES[:3]):
            send(process, line)
            assert json.loads(process.stdout.readline())["round"] == t
        process.stdout.close()
        send(process, LINES[3])
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr.read() == ""


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_saves_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path, *KEPT, "--json") as process:
        assert process.stderr
        for line in (*LINES[:3], "oops"):
            send(process, line)
        assert json.loads(process.stderr.readline())["line"] == 4  # it has come so far
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["priced"] == 3
    assert len(records((tmp_path / "out.jsonl").read_text())) == 3


def test_every_line_bad_is_an_exit_code_a_count_and_the_first_of_them(run: Run) -> None:
    for options in ((), KEPT):
        ended = run(*options, lines=["oops", '{"round": 1}', "again"])
        assert ended.code == 2
        last = ended.err.splitlines()[-1]
        assert last.startswith("normalfan: none of the lines can be priced (3 are bad), but"), last
        assert "line 1: the line cannot be read as JSON" in last
    assert run(*KEPT, lines=["oops", LINES[0]]).code == 0
    assert run(*KEPT, lines=["oops", LINES[0]]).code == 0  # skipped: it was priced before


def test_tables_in_another_dialect_are_read_as_the_same_problem(run: Run) -> None:
    Path("model.csv").write_text(
        "state,action,next_state,probability\nx,a,x,0.5\nx,a,y,0.5\nx,b,x,1\ny,a,y,1\n"
    )
    Path("features.csv").write_text("feature,step,action,value\nk,1,b,1.5\n")
    lines = [json.dumps({"round": t, "theta": [(-1) ** t]}) for t in range(4)]
    options = ("--start", "x", "--features", "features.csv")
    expected = run(*options, "--horizon", "2", model="model.csv", lines=lines)
    assert expected.code == 0
    assert sum(record["price"] for record in records(expected.out)) > 0  # type: ignore[misc]
    for name in ("model.csv", "features.csv"):
        Path(name).write_text(
            Path(name).read_text().replace(",", ";").replace(".", ",").replace(";1;b", ";pm;b")
        )
    dialect = ("--separator", ";", "--decimal", ",", "--steps", "am,pm")
    said_otherwise = run(*options, *dialect, model="model.csv", lines=lines)
    named = [record | {"costliest": None} for record in records(said_otherwise.out)]
    assert named == [record | {"costliest": None} for record in records(expected.out)]


def test_a_resumed_watch_refuses_changed_features(run: Run) -> None:
    table = "feature,step,state,action,value\na,0,0,0,1\nb,0,0,1,{}\n"
    lines = [json.dumps({"round": t, "theta": [t, 1]}) for t in range(3)]
    for value, code in ((1, 0), (2, 2), (1, 0)):
        Path("features.csv").write_text(table.format(value))
        ended = run(*KEPT, "--features", "features.csv", lines=lines)
        assert ended.code == code, ended
        assert ("are not those of the rounds priced before" in ended.err) == (code == 2)
    assert run(*KEPT).code == 2
    assert len(records(Path("out.jsonl").read_text())) == 3


def test_poison_lines_cost_nothing_also_after_a_restart(run: Run) -> None:
    poison = [
        '{"round": "\\ud800", "loss": [[[0, 1]]]}',
        '{"\\ud800": 1}',
        '{"round": 1, "round": 1, "loss": [[[0, 1]]]}',
        '{"round": 1, "loss": [[[1e308, -1e308]]]}',
        '{"round": ' + "[" * 900 + "]" * 900 + ', "loss": 1}',
        '{"round": 1, "loss": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"round": 1, "loss": [[[' + "9" * 5000 + ", 0]]]}",
    ]
    for _ in range(2):
        ended = run(*KEPT, lines=[LINES[0], *poison, *LINES[1:]])
        assert ended.code == 0
        assert [record["line"] for record in records(ended.err)] == list(range(2, 9))
        assert Path("out.jsonl").read_text() == run().out


def test_a_line_over_the_limit_is_refused(run: Run) -> None:
    long = LINES[1] + " " * 3000
    ended = run("--max-line", "0.002", lines=[LINES[0], long, *LINES[1:]])
    assert ended.code == 0
    assert [record.get("price") for record in records(ended.out)] == [0, None, 1, 1, 1]
    assert "--max-line" in str(records(ended.out)[1]["error"])


@pytest.mark.usefixtures("run")
def test_words_for_any_terminal() -> None:
    for arguments in (("--help",), ("--alarm", "é…\ud800"), (*KEPT, "--status")):
        process = subprocess.run(  # noqa: S603
            [
                sys.executable,
                "-m",
                "normalfan",
                "watch",
                "model.npz",
                *arguments[:-1],
                arguments[-1].encode("utf-8", "surrogatepass"),
            ],
            capture_output=True,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(nf.__file__).parents[1]),
                "PYTHONIOENCODING": "latin-1",
            },
        )
        assert process.returncode in (0, 2)
        assert b"Traceback" not in process.stderr


@pytest.mark.processes
@pytest.mark.parametrize("damage", ["delete", "move", "truncate", "replace"])
def test_an_output_that_is_gone_is_noticed_at_the_next_commit(tmp_path: Path, damage: str) -> None:
    with start(tmp_path, *KEPT, "--prometheus", "watch.prom") as process:
        assert process.stderr
        for line in (*LINES[:2], "oops"):
            send(process, line)
        process.stderr.readline()
        out = tmp_path / "out.jsonl"
        wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") == 2)
        if damage in ("delete", "replace"):
            out.unlink()
        if damage == "move":
            out.rename(tmp_path / "moved")
        if damage == "replace":
            out.touch()
        if damage == "truncate":
            os.truncate(out, 100)
        send(process, LINES[2])
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert re.fullmatch(r"normalfan: out\.jsonl was moved, deleted or changed [^\n]*\n", err), err
    assert read_progress(tmp_path / "state").last_round == 1
    assert 'rounds_total{model="model.npz"} 3' not in (tmp_path / "watch.prom").read_text()


@pytest.mark.processes
def test_the_rounds_are_safe_when_nobody_reads_the_diagnostics(tmp_path: Path) -> None:
    with start(tmp_path, *KEPT, "--alarm", "price>0") as process:
        assert process.stderr
        process.stderr.close()
        for line in ("oops", *LINES[:2], "oops", *LINES[2:]):
            send(process, line)
        assert process.stdin
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 3
    assert len(records((tmp_path / "out.jsonl").read_text())) == 4


@pytest.mark.processes
@pytest.mark.parametrize("lines", [LINES, ["oops"]], ids=["summary", "refusal"])
@pytest.mark.parametrize("how", ["full", "left", "closed"])
def test_the_closing_sentence_waits_for_nobody(tmp_path: Path, lines: list[str], how: str) -> None:
    nf.io.save_mdp(ARMS, tmp_path / "model.npz")
    command = [sys.executable, "-m", "normalfan", "watch", "model.npz", "--json"]
    reading, writing = os.pipe()
    if how == "full":
        os.set_blocking(writing, False)
        while True:
            try:
                os.write(writing, bytes(4096))
            except BlockingIOError:
                break
        os.set_blocking(writing, True)
    if how == "left":
        os.close(reading)
    if how == "closed":
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    ended = subprocess.run(  # noqa: S603
        command,
        cwd=tmp_path,
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(nf.__file__).parents[1])},
    )
    assert ended.returncode == (2 if lines == ["oops"] else 0)
    assert len(records(ended.stdout)) == len(lines)
    os.close(writing)
    if how != "left":
        with os.fdopen(reading, "rb") as pipe:
            assert not pipe.read().strip(b"\0")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_somebody_who_may_not_write_gets_one_sentence(run: Run) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as here:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "writable").mkdir()
        (folder / "writable").chmod(0o777)
        for owned in ("state", "state.lock", "out"):
            (folder / "writable" / owned).touch(0o600)
        (folder / "hidden").mkdir(0o700)
        cases = [
            ("state", "writable/new", f"the directory {folder} cannot be written to"),
            ("writable/new", "out", f"the directory {folder} cannot be written to"),
            ("writable/state", "writable/new", "Permission denied"),
            ("writable/new", "writable/out", "Permission denied"),
            ("hidden/state", "writable/new", "Permission denied"),
        ]
        run()  # what it imports, only root may read here
        here.chdir(folder / "writable")
        nf.io.save_mdp(ARMS, "model.npz")
        for state, out, where in cases:
            with nobody():
                ended = run("--state", str(folder / state), "--out", str(folder / out))
            assert ended.code in (1, 2)
            assert where in ended.err
            assert re.fullmatch(r"normalfan: [^\n]*, but [^\n]*: [^\n]*\.\n", ended.err), ended.err
        # A file system may say so only when it is tried.
        with nobody(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "access", lambda *_: True)
            ended = run("--state", str(folder / "state"), "--out", str(folder / "writable" / "new"))
        assert (ended.code, ended.out) == (2, "")
        assert "cannot be opened (Permission denied)" in ended.err


@contextmanager
def nobody() -> Iterator[None]:
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.processes
@pytest.mark.parametrize("bad", [False, True])
def test_a_full_pipe_does_not_keep_a_watch_alive(tmp_path: Path, bad: bool) -> None:
    numbers = [0, *("x" if bad else t for t in range(1, 3000))]
    lines = [json.dumps({"round": t, "loss": [[[i % 2, 1 - i % 2]]]}) for i, t in enumerate(numbers)]
    (tmp_path / "input").write_text("\n".join(lines))
    with start(tmp_path, *(KEPT if bad else ()), stdin=tmp_path / "input") as process:
        assert process.stdout
        assert process.stderr
        full = process.stderr if bad else process.stdout
        # A batch need not fill the last page of the pipe. A watch that is asleep waits for room in it.
        wait_until(lambda: waiting_in(full) > 50_000 and is_asleep(process.pid))
        assert process.poll() is None
        process.terminate()
        assert process.wait(timeout=60) == (0 if bad else 1)
        assert bad or "standard output was full" in process.stderr.read()


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def waiting_in(pipe: IO[str]) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def wait_until(condition: Callable[[], bool]) -> None:
    latest = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < latest
        time.sleep(0.01)
