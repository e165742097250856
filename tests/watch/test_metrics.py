"""Metrics for Prometheus."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sentences import check_refusal
from watching import ARMS, Watched, arms

import normalfan as nf
from normalfan.watch import Watcher
from normalfan.watch.journal import Progress
from normalfan.watch.metrics import MetricsFile, Tally, exposition

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"\} (\S+)')


def parse_exposition(text: str) -> dict[str, tuple[str, str, float]]:
    """By the rules of the format: HELP, TYPE and samples of each family in a row, a newline at the end."""
    assert text.endswith("\n")
    families: dict[str, tuple[str, str, float]] = {}
    lines = iter(text[:-1].split("\n"))
    for help_line in lines:
        name = re.fullmatch(r"# HELP (\S+) [^\\]+", help_line)
        kind = re.fullmatch(r"# TYPE (\S+) (counter|gauge)", next(lines))
        sample = SAMPLE.fullmatch(next(lines))
        assert name
        assert kind
        assert sample
        assert name[1] == kind[1] == sample[1]
        assert name[1] not in families
        assert name[1].endswith("_total") == (kind[2] == "counter")
        label = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], sample[3])
        families[name[1]] = (kind[2], label, float(sample[4]))
    return families


def test_metrics_are_in_the_format_of_prometheus() -> None:
    model = 'C:\\new "one"\nline'
    families = parse_exposition(exposition(Tally(Progress()), model).decode())
    assert "normalfan_watch_last_price" not in families
    assert {label for _, label, _ in families.values()} == {model}
    tally = Watched(ARMS, [arms(1, 0, 1), b"{", arms(1, 0, 1), arms(2, 1e-7, 0)]).tally
    families = parse_exposition(exposition(tally, model).decode())
    numbers = {name.removeprefix("normalfan_watch_"): number for name, (_, _, number) in families.items()}
    assert numbers.pop("last_update_timestamp_seconds") == tally.last_update
    assert numbers == {
        "rounds_total": 2,
        "price_total": 1e-7,
        "crossings_total": 1,
        "alarms_total": 0,
        "bad_lines_total": 1,
        "skipped_lines_total": 1,
        "last_round": 2,
        "last_price": 1e-7,
        "last_value": 0,
    }


def test_metrics_are_written_once_a_second_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    now = [100.0]

    def counted(tally: Tally, model: str) -> bytes:
        written.append(tally.progress.rounds)
        return exposition(tally, model)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("normalfan.watch.metrics.exposition", counted)

    def lines() -> Iterator[bytes]:
        for t in range(30):
            now[0] += 0.1
            yield json.dumps(arms(t, 0, 1)).encode()

    metrics = MetricsFile(tmp_path / "watch.prom", "arms")
    Watcher(nf.Monitor(ARMS), lambda *_: None, metrics=metrics).run(lines())
    assert len(written) == 4
    assert written[-1] == 30
    assert [path.name for path in tmp_path.iterdir()] == ["watch.prom"]


def test_a_missing_library_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    check_refusal(lambda: MetricsFile(tmp_path / "watch.prom", "arms"), "pip install 'normalfan[watch]'")


def test_what_killed_writers_of_metrics_left_is_swept_up(tmp_path: Path) -> None:
    (tmp_path / ".watch.prom.0123abcd").touch()
    MetricsFile(tmp_path / "watch.prom", "arms")
    assert not list(tmp_path.iterdir())
