"""The loop: the numbers of the batch, in the order of arrival, committed together or one by one."""

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
from watching import ARMS, Watched, arms

import normalfan as nf
from normalfan.watch import AlarmRule, Watcher
from normalfan.watch.watcher import REMEMBERED, TOGETHER


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
    assert watched.records[-1]["total"] == watched.tally.progress.total == motion.total


@pytest.mark.filterwarnings("ignore:overflow encountered")
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_lines_priced_together_give_what_one_by_one_gives_whatever_is_bad(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=8)
    mdp = problem.mdp(str(rng.choice(problem.kinds())))
    losses = problem.losses + rng.choice([0.0, 1e-13, 0.3]) * rng.normal(size=problem.losses.shape)
    huge = 1.5e308 * rng.choice([-1.0, 1.0], size=(2, *mdp.shape))
    lines: list[Any] = []
    number = 0
    for loss in [*losses, *huge] * int(rng.integers(1, 9)):  # up to more than one block
        number += int(rng.integers(1, 3))
        lines.append({"round": number, "loss": (loss + rng.integers(0, 2)).tolist()})
    odd = [b"{", b"", None, {"round": 1}, {"round": "x", "loss": 0}, {"round": 10**9, "loss": [[[math.nan]]]}]
    for _ in range(int(rng.integers(0, 12))):
        at = int(rng.integers(0, len(lines)))
        again = lines[int(rng.integers(0, at + 1))]  # as it was, or with another number or loss
        corrected = again | {"loss": losses[0].tolist()} if isinstance(again, dict) else again
        lines.insert(at, [*odd, again, corrected][int(rng.integers(0, len(odd) + 2))])
    options = {"rules": [AlarmRule.parse("crossed"), AlarmRule.parse("total>1")]}
    alone, together = (Watched(mdp, lines, pauses=pauses, **options) for pauses in (False, True))
    assert b"".join(together.output) == b"".join(alone.output)
    assert together.alarms == alone.alarms
    alone.tally.last_update = together.tally.last_update
    assert together.tally == alone.tally


def test_a_line_that_cannot_be_priced_takes_none_of_its_block_with_it() -> None:
    two = nf.MDP(np.array([[0, 0]]), 0, horizon=2)
    lines = [{"round": t, "loss": [[[t % 3, 1.0]]] * 2} for t in range(40)]
    lines[17] = {"round": 17, "loss": [[[1e308, 1e308]]] * 2}
    lines.insert(18, {"round": 17, "loss": [[[5.0, 1.0]]] * 2})  # and its number stays free
    watched = Watched(two, lines, pauses=True)
    assert [error["line"] for error in watched.errors] == [18]
    assert "round 17" in watched.errors[0]["error"]
    assert [record["round"] for record in watched.records] == list(range(40))
    assert (watched.records[17]["since"], watched.records[18]["price"]) == (16, 2.0)
    check_refusal(lambda: Watched(two, lines, pauses=True, strict=True), "line 18: ")


def test_lines_are_priced_together_until_a_pause_or_a_full_block() -> None:
    lines = [json.dumps(arms(t, t % 2, 1)).encode() for t in range(TOGETHER + 5)]
    sizes: list[int] = []
    watcher = Watcher(nf.Monitor(ARMS), lambda r, _: sizes.append(r.count(b"\n")), pauses=True)
    watcher.run([*lines[:3], None, None, *lines[3:]])
    assert sizes == [3, TOGETHER, 2]


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "watch.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(arms(t, 3 * t, 1)).encode() for t in range(3)]
    exec(compile(example, "watch.md", "exec"), {"mdp": ARMS, "lines": lines})  # noqa: S102
    assert [json.loads(line)["price"] for line in Path("prices.jsonl").read_text().splitlines()] == [0, 2, 0]
    assert capsys.readouterr().out == "alarm price>1% in round 1: price 2, total 2\n"


def test_numbers_must_rise_and_may_jump() -> None:
    lines = [arms(5, 0, 1), arms(5, 0, 1), arms(2, 9, 0), arms(20, 1, 0), b"", b"  ", arms(20, 1, 0)]
    watched = Watched(ARMS, lines)
    assert [(r["round"], r["since"], r["price"]) for r in watched.records] == [(5, None, 0), (20, 5, 1)]
    assert watched.tally.skipped == 3
    assert not watched.errors


def test_a_strict_watch_commits_what_came_before_the_bad_line() -> None:
    committed: list[bytes] = []
    watcher = Watcher(
        nf.Monitor(ARMS), lambda records, _: committed.append(records), strict=True, latency=math.inf
    )
    check_refusal(lambda: watcher.run([json.dumps(arms(1, 0, 1)).encode(), b"{"]), "line 2")
    assert json.loads(committed[0])["round"] == 1


def test_records_wait_for_each_other_only_until_a_pause_or_the_latency() -> None:
    lines = [json.dumps(arms(t, 0, 1)).encode() for t in range(4)]
    for latency, expected in ((math.inf, [2, 2]), (0, [1, 1, 1, 1])):
        sizes: list[int] = []
        watcher = Watcher(nf.Monitor(ARMS), lambda r, _, s=sizes: s.append(r.count(b"\n")), latency=latency)
        watcher.run([*lines[:2], None, None, *lines[2:]])
        assert sizes == expected


def test_alarms_are_in_the_record_announced_and_counted() -> None:
    rules = [AlarmRule.parse(text) for text in ("price>1.5", "total>=3", "crossed")]
    lines = [arms(0, 0, 1), arms(1, 2, 0), arms(2, 0, 1), arms(3, 0, 2), arms(4, 1, 0)]
    watched = Watched(ARMS, lines, rules=rules)
    alarms = [record.get("alarms") for record in watched.records]
    # The total passes 3 in round 2, and only there.
    assert alarms == [None, ["price>1.5", "crossed"], ["total>=3", "crossed"], None, ["crossed"]]
    assert len(watched.alarms) == watched.tally.alarms == watched.tally.progress.alarms == 5
    assert watched.alarms[2].startswith("alarm total>=3 in round 2: price 1, total 3")


def test_a_round_that_comes_again_with_another_loss_is_reported() -> None:
    lines = [arms(5, 0, 1), arms(6, 1, 0), arms(5, 9, 0), arms(6, 1, 0), arms(6, 1, 2), arms(7, 1, 0)]
    watched = Watched(ARMS, lines)
    assert [error["line"] for error in watched.errors] == [3, 5]
    assert "round 5 comes again with another loss" in watched.errors[0]["error"]
    assert [record["round"] for record in watched.records] == [5, 6, 7]
    assert (watched.tally.skipped, watched.tally.bad_lines) == (1, 2)
    many = [arms(t, t, 1) for t in range(REMEMBERED + 1)]
    watched = Watched(ARMS, [*many, arms(0, 9, 9), arms(1, 9, 9)])  # round 0 is forgotten, 1 not yet
    assert (watched.tally.skipped, watched.tally.bad_lines) == (1, 1)
