"""Killed at random moments, restarted, and nothing shows; `SOAK=1` (as in `make soak`) kills more often."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from soaking import repeated

import normalfan as nf
from normalfan.cli.watch import REPLAN
from normalfan.replan import Cusum
from normalfan.watch import Watcher

KILLS = repeated(30, 220)
COLD = 2  # of them with a process that has to import everything first
AT_ONCE = 39  # rounds that the feeder has to offer before each kill
ROUNDS = KILLS * AT_ONCE + 50
PATIENCE = 300  # seconds, for output that never comes

# The folder in which commands run is not the one in which relative paths were meant.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(nf.__file__).parents[1])}


@pytest.mark.processes
@pytest.mark.slow
def test_every_round_once_after_many_kills(tmp_path: Path, rng: np.random.Generator) -> None:
    mdp = nf.MDP(rng.integers(0, 4, size=(3, 4, 2)), 0)
    nf.io.save_mdp(mdp, tmp_path / "model.npz")
    lines = [
        json.dumps({"round": t, "loss": loss.tolist()}).encode() + b"\n"
        for t, loss in enumerate(rng.integers(0, 5, size=(ROUNDS, *mdp.shape)))
    ]
    uninterrupted: list[bytes] = []
    rule = Cusum(5.0, 0.5)
    Watcher(nf.Monitor(mdp), lambda records, _: uninterrupted.append(records), rule=rule).run(lines)
    assert sum(b'"replan": true' in record for record in uninterrupted) > ROUNDS // 20

    out, kept = tmp_path / "out.jsonl", ("--state", "state", "--out", "out.jsonl")
    arguments = ("watch", "model.npz", *kept, "--rule", str(rule))
    grown = 0
    os.mkfifo(tmp_path / "fifo")
    with server(tmp_path) as forks:
        for kill in range(KILLS):
            before = size(out)
            # The feeder knows what the output shows, and may be less sure than that.
            done = len(priced(out))
            offered = lines[max(0, done - int(rng.choice([0, 1, 30]))) : done + AT_ONCE]
            moment = Moment(out, after_growth=kill % 2 == 1, delay=float(rng.uniform(0, 0.04)))
            code = run_and_kill(tmp_path, None if kill < COLD else forks, arguments, offered, moment, rng)
            assert code == -signal.SIGKILL
            grown += size(out) > before
        assert grown >= KILLS // 2
        (tmp_path / "rest").write_bytes(b"".join(lines))
        _, ended = ask(forks, arguments, "rest")
        assert int(ended.readline()) == REPLAN
    assert out.read_bytes() == b"".join(uninterrupted)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("errors", "fifo", "model.npz", "out.jsonl", "rest", "state", "state.lock")
    ]
    said = (tmp_path / "errors").read_text().splitlines()
    assert all(line.startswith("normalfan: re-plan now: in round ") for line in said)


class Moment:
    """When to kill: a short while after the start, or after the output has grown."""

    def __init__(self, out: Path, *, after_growth: bool, delay: float) -> None:
        self.out = out
        self.delay = delay
        self.size = size(out)
        self.latest = time.monotonic() + PATIENCE
        self.start = None if after_growth else time.monotonic()

    def has_come(self) -> bool:
        if self.start is None and size(self.out) > self.size:
            self.start = time.monotonic()
        due = self.latest if self.start is None else self.start + self.delay
        return time.monotonic() >= due


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def priced(out: Path) -> list[int]:
    """The rounds that a reader of the output sees: a line counts when it is complete."""
    lines = out.read_bytes().split(b"\n")[:-1] if out.exists() else []
    return [json.loads(line)["round"] for line in lines]


@contextmanager
def server(folder: Path) -> Iterator[subprocess.Popen[str]]:
    helper = Path(__file__).parents[1] / "support" / "watch_server.py"
    with subprocess.Popen(  # noqa: S603
        [sys.executable, str(helper), "model.npz"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def ask(forks: subprocess.Popen[str], arguments: tuple[str, ...], stdin: str) -> tuple[int, IO[str]]:
    """The id of a process that runs the command, and where its exit code will be."""
    assert forks.stdin
    assert forks.stdout
    request = {"arguments": arguments, "stdin": stdin, "stderr": "errors"}
    forks.stdin.write(json.dumps(request) + "\n")
    forks.stdin.flush()
    return int(forks.stdout.readline()), forks.stdout


def run_and_kill(
    folder: Path,
    forks: subprocess.Popen[str] | None,
    arguments: tuple[str, ...],
    lines: list[bytes],
    moment: Moment,
    rng: np.random.Generator,
) -> int:
    """Start a watch, feed it in pieces that know nothing of lines, and kill it when the moment comes."""
    # Open for reading, too, so that neither side waits for the other to open.
    with open(os.open(folder / "fifo", os.O_RDWR | os.O_NONBLOCK), "wb", buffering=0) as pipe:  # noqa: PTH123
        if forks:
            process, ended = ask(forks, arguments, "fifo")
            feed(pipe, b"".join(lines), moment, rng)
            os.kill(process, signal.SIGKILL)
            return int(ended.readline())
        reading = os.open(folder / "fifo", os.O_RDONLY)
        command = [sys.executable, "-m", "normalfan", *arguments]
        with subprocess.Popen(command, cwd=folder, stdin=reading, env=ENVIRONMENT) as cold:  # noqa: S603
            os.close(reading)
            feed(pipe, b"".join(lines), moment, rng)
            cold.kill()
        return cold.returncode


def feed(pipe: IO[bytes], data: bytes, moment: Moment, rng: np.random.Generator) -> None:
    """Write in pieces of random sizes, now and then in a hurry, until the moment comes."""
    sent, largest = 0, int(rng.choice([30, 300, 5000]))
    while not moment.has_come():
        written = pipe.write(data[sent : sent + int(rng.integers(1, largest))])
        sent += written or 0  # None: the pipe is full
        if written is None or rng.random() < 0.5:
            time.sleep(0.001)
