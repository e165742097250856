"""Losses in, prices out, a line each: the numbers of the batch, and what becomes of bad lines."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.battery.model import Battery
from normalfan.problem.labels import Labels
from normalfan.watch.alarms import Rule
from normalfan.watch.lines import LineReader
from normalfan.watch.metrics import MetricsFile, exposition
from normalfan.watch.tally import Progress, Tally
from normalfan.watch.watcher import Watcher

ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)


class Watched:
    """A watch in memory, and all that came out of it."""

    def __init__(
        self, mdp: nf.MDP, lines: list[Any], reader: LineReader | None = None, **options: Any
    ) -> None:
        self.errors: list[dict[str, Any]] = []
        self.announced: list[str] = []
        committed: list[bytes] = []
        self.tally = Watcher(
            reader or LineReader(mdp),
            nf.Monitor(mdp),
            lambda records, _: committed.append(records),
            complain=lambda record: self.errors.append(json.loads(record)),
            announce=self.announced.append,
            **options,
        ).run([line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines])
        self.records = [json.loads(line) for line in b"".join(committed).splitlines()]


def arms(number: Any, *losses: float) -> dict[str, Any]:
    return {"round": number, "loss": [[list(losses)]]}


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_line_by_line_equals_the_batch_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=8)
    mdp = problem.mdp(str(rng.choice(problem.kinds())))
    losses = problem.losses + rng.choice([0.0, 1e-13, 0.3]) * rng.normal(size=problem.losses.shape)
    motion = nf.price_stream(mdp, losses)
    watched = Watched(mdp, [{"round": t, "loss": loss.tolist()} for t, loss in enumerate(losses)])
    assert [record["round"] for record in watched.records] == list(range(8))
    for name, column in motion.columns().items():
        read_back = [math.inf if record[name] is None else record[name] for record in watched.records]
        assert read_back == column.tolist(), name
    assert [record["by_step"] for record in watched.records] == motion.by_step.tolist()
    assert watched.records[-1]["total"] == watched.tally.total == motion.total


def test_coefficients_equal_factored_losses_to_the_bit(rng: np.random.Generator) -> None:
    battery = Battery()
    mdp, losses = battery.mdp(), battery.losses(rng.normal(40, 20, size=(12, 24)))
    motion = nf.price_stream(mdp, losses)
    names = [*battery.mdp().labels.steps, "wear"]
    reader = LineReader(mdp, battery.features(), names)
    for by_name in (False, True):
        thetas = [
            dict(zip(names, theta, strict=True)) if by_name else theta
            for theta in losses.coefficients.tolist()
        ]
        lines = [{"round": t, "theta": theta} for t, theta in enumerate(thetas)]
        watched = Watched(mdp, lines, reader)
        assert [record["price"] for record in watched.records] == motion.prices.tolist()
        assert [record["value"] for record in watched.records] == motion.values.tolist()


def test_a_record_says_in_words_where_most_is_paid() -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, 2, labels=Labels(("dawn", "dusk"), ("home",), ("a", "b")))
    old = [[[0.0, 9.0]], [[0.0, 9.0]]]
    new = [[[1.0, 0.0]], [[5.0, 2.0]]]
    watched = Watched(mdp, [{"round": 3, "loss": old}, {"round": 8, "loss": new}])
    first, second = watched.records
    assert first["dearest"] is None
    assert first["since"] is None
    assert second["since"] == 3
    assert second["price"] == 4
    assert second["by_step"] == [1, 3]
    assert second["dearest"] == {"step": "dusk", "state": "home", "action": "a", "price": 3}


def test_the_page_explains_every_key_and_its_lines_are_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    watched = Watched(ARMS, [arms(1, 0, 1), arms(2, 1, 0)], rules=[Rule.parse("crossed")])
    explained = {key.removeprefix("variation") for key in re.findall(r"`(\w+)`", page)}
    assert {key.removeprefix("variation") for key in watched.records[1]} <= explained
    (examples,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=1)
    reader = LineReader(mdp, np.eye(2, 4).reshape(2, 1, 2, 2), ("power", "wear"))
    watched = Watched(mdp, [line.encode() for line in examples.splitlines()], reader)
    assert [record["round"] for record in watched.records] == [7, 8, 9]


def test_numbers_must_rise_and_may_jump() -> None:
    lines = [arms(5, 0, 1), arms(5, 9, 0), arms(2, 9, 0), arms(20, 1, 0), b"", b"  ", arms(20, 0, 1)]
    watched = Watched(ARMS, lines)
    assert [(r["round"], r["since"], r["price"]) for r in watched.records] == [(5, None, 0), (20, 5, 1)]
    assert watched.tally.skipped == 3
    assert not watched.errors


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{round: 7}", "cannot be read as JSON"),
    "half a line": (b'{"round": 7, "loss": [[[0', "cannot be read as JSON"),
    "not UTF-8": (b'{"round": 7, "\xff": 1}', "cannot be read as JSON"),
    "too deep": (b"[" * 100_000, "cannot be read as JSON"),
    "no object": (b"[1, 2]", "JSON list"),
    "no round": (b'{"loss": [[[0, 1]]]}', "'loss'"),
    "no loss": (b'{"round": 7}', "'round'"),
    "empty": (b"{}", "nothing"),
    "unknown key": (b'{"round": 7, "loss": [[[0, 1]]], "date": "today"}', "'date'"),
    "loss and theta": (b'{"round": 7, "loss": [[[0, 1]]], "theta": [1]}', "'theta'"),
    "text as round": (b'{"round": "7", "loss": [[[0, 1]]]}', 'round is "7"'),
    "fractional round": (b'{"round": 7.5, "loss": [[[0, 1]]]}', "round is 7.5"),
    "true as round": (b'{"round": true, "loss": [[[0, 1]]]}', "round is true"),
    "enormous round": (b'{"round": 99999999999999999999, "loss": [[[0, 1]]]}', "99999999999999999999"),
    "wrong shape": (b'{"round": 7, "loss": [[0, 1]]}', "[1, 2]"),
    "ragged": (b'{"round": 7, "loss": [[[0], [0, 1]]]}', "different lengths"),
    "NaN": (b'{"round": 7, "loss": [[[0, NaN]]]}', "[0, 0, 1] is nan"),
    "infinity": (b'{"round": 7, "loss": [[[1e999, 0]]]}', "[0, 0, 0] is inf"),
    "null": (b'{"round": 7, "loss": [[[0, null]]]}', "other than numbers"),
    "text": (b'{"round": 7, "loss": [[[0, "1"]]]}', "other than numbers"),
    "flags": (b'{"round": 7, "loss": [[[false, true]]]}', "other than numbers"),
    "theta without features": (b'{"round": 7, "theta": [1]}', "--features"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_gets_an_error_record_and_the_stream_goes_on(case: str) -> None:
    line, where = BAD_LINES[case]
    watched = Watched(ARMS, [arms(6, 0, 1), line, arms(8, 3, 1)])
    (error,) = watched.errors
    assert error["line"] == 2
    assert where in error["error"]
    assert re.fullmatch(r"[^\n]*, but [^\n]*: [^\n]*\.", error["error"]), error
    assert [(r["round"], r["since"], r["price"]) for r in watched.records] == [(6, None, 0), (8, 6, 2)]
    assert watched.tally.bad_lines == 1
    check_refusal(lambda: Watched(ARMS, [arms(6, 0, 1), line], strict=True), "line 2: ")


def test_losses_that_overflow_are_a_bad_line_that_names_its_round() -> None:
    two = nf.MDP(np.array([[0, 0]]), 0, horizon=2)
    huge = [[[1e308, 1e308]]] * 2
    watched = Watched(two, [{"round": 70, "loss": huge}, {"round": 71, "loss": [[[0, 1]]] * 2}])
    assert "round 70" in watched.errors[0]["error"]
    assert [record["since"] for record in watched.records] == [None]


@pytest.mark.parametrize(
    ("theta", "where"),
    [
        ([1.0], "[1]"),
        ([[1.0, 2.0]], "[1, 2]"),
        ([1.0, math.nan], "round 7[1] is nan"),
        ({"sun": 1.0}, "lacks 'wind'"),
        ({"sun": 1.0, "wind": 2.0, "rain": 3.0}, "has 'rain'"),
    ],
)
def test_bad_coefficients(theta: Any, where: str) -> None:
    reader = LineReader(ARMS, np.ones((2, 1, 1, 2)), ("sun", "wind"))
    watched = Watched(ARMS, [{"round": 7, "theta": theta}], reader)
    assert where in watched.errors[0]["error"]


def test_features_of_another_problem_are_refused_before_the_first_line() -> None:
    check_refusal(lambda: LineReader(ARMS, np.ones((2, 1, 3, 2))), "6 entries")


def test_a_strict_watch_commits_what_came_before_the_bad_line() -> None:
    committed: list[bytes] = []
    watcher = Watcher(
        LineReader(ARMS), nf.Monitor(ARMS), lambda r, _: committed.append(r), strict=True, latency=60
    )
    check_refusal(lambda: watcher.run([json.dumps(arms(1, 0, 1)).encode(), b"{"]), "line 2")
    assert json.loads(committed[0])["round"] == 1


def test_records_wait_for_each_other_only_until_a_pause_or_the_latency() -> None:
    lines = [json.dumps(arms(t, 0, 1)).encode() for t in range(4)]
    for latency, expected in ((60, [2, 2]), (0, [1, 1, 1, 1])):
        sizes: list[int] = []
        watcher = Watcher(
            LineReader(ARMS),
            nf.Monitor(ARMS),
            lambda r, _, s=sizes: s.append(r.count(b"\n")),
            latency=latency,
        )
        watcher.run([*lines[:2], None, None, *lines[2:]])
        assert sizes == expected


STEP = nf.Monitor(ARMS).update([[[-200.0, 1.0]]])


@pytest.mark.parametrize(
    ("rule", "numbers", "raised"),
    [
        ("price>2", {"price": 2.0}, False),
        ("price>=2", {"price": 2.0}, True),
        ("price > 1%", {"price": 2.0}, False),
        ("price>0.9%", {"price": 2.0}, True),
        ("value<-1e2", {}, True),
        ("margin<1e-3", {"margin": 1e-4}, True),
        ("margin<1e-3", {"margin": math.inf}, False),
        ("variation_l1>=0", {}, True),
        ("dimension>0", {}, False),
        ("crossed", {"crossed": True}, True),
        ("crossed", {"crossed": False}, False),
        (" ambiguous ", {"ambiguous": True}, True),
    ],
)
def test_alarm_rules(rule: str, numbers: dict[str, Any], raised: bool) -> None:
    from dataclasses import replace

    assert Rule.parse(rule).raised_by(replace(STEP, **numbers), 0.0, 0.0) is raised
    assert str(Rule.parse(rule)) == str(Rule.parse(str(Rule.parse(rule))))


@pytest.mark.parametrize(
    "rule",
    [
        *("", "price", "price>", ">5", "price=5", "price>x", "price>nan", "price>inf", "total<5", "total>1%"),
        *("crossed>1", "cost>5", "price>1%%", "price>1 2", "PRICE>1", "price>>1", "margin<1%"),
    ],
)
def test_rules_that_are_not_understood(rule: str) -> None:
    check_refusal(lambda: Rule.parse(rule), repr(rule))


def test_alarms_are_in_the_record_announced_and_counted() -> None:
    rules = [Rule.parse(text) for text in ("price>1.5", "total>=3", "crossed")]
    lines = [arms(0, 0, 1), arms(1, 2, 0), arms(2, 0, 1), arms(3, 0, 2), arms(4, 1, 0)]
    watched = Watched(ARMS, lines, rules=rules)
    alarms = [record.get("alarms") for record in watched.records]
    # The total passes 3 in round 2, and only there.
    assert alarms == [None, ["price>1.5", "crossed"], ["total>=3", "crossed"], None, ["crossed"]]
    assert len(watched.announced) == watched.tally.alarms == watched.tally.progress.alarms == 5
    assert watched.announced[2].startswith("alarm total>=3 in round 2: price 1, total 3")


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
    families = parse_exposition(exposition(Tally(Progress(), 0, 0.0), model))
    assert "normalfan_watch_last_price" not in families
    assert {label for _, label, _ in families.values()} == {model}
    tally = Watched(ARMS, [arms(1, 0, 1), b"{", arms(1, 0, 1), arms(2, 1e-7, 0)]).tally
    families = parse_exposition(exposition(tally, model))
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


def test_metrics_are_written_once_a_second_and_at_the_end(tmp_path: Any, monkeypatch: Any) -> None:
    written: list[int] = []
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(MetricsFile, "write", _counted(MetricsFile.write, written))

    def lines() -> Any:
        for t in range(30):
            now[0] += 0.1
            yield json.dumps(arms(t, 0, 1)).encode()

    metrics = MetricsFile(tmp_path / "watch.prom", "arms")
    Watcher(LineReader(ARMS), nf.Monitor(ARMS), lambda *_: None, metrics=metrics).run(lines())
    assert len(written) == 4
    assert written[-1] == 30
    assert [path.name for path in tmp_path.iterdir()] == ["watch.prom"]


def _counted(write: Any, written: list[int]) -> Any:
    def counting(self: MetricsFile, tally: Tally) -> None:
        written.append(tally.rounds)
        write(self, tally)

    return counting
