"""`normalfan reproduce`: its options and exit codes, what it prints, and what it says when it cannot run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Answer, call
from stub_experiment import stub

from normalfan_paper import command


def test_help_shows_the_options_and_an_example() -> None:
    answer = call("reproduce", "--help")
    assert answer.code == 0
    assert "Usage: normalfan reproduce [OPTIONS]" in answer.out
    for piece in ("--quick", "--seeds", "--workers", "--cluster", "--out", "--json", "Example:"):
        assert piece in answer.out


def test_rows_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_experiments", lambda _: (stub(tmp_path / "trace"),))
    answer = call("reproduce", "--quick", "--workers", "1", "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert "The sum is 6." in answer.out
    assert "1 claim; ✓ holds: 1;" in answer.out
    assert "normalfan reproduce --quick --seeds 4" in (tmp_path / "out/ledger.md").read_text()


def test_a_broken_cell_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = (stub(tmp_path / "a", broken=1), stub(tmp_path / "b", cells=3))
    monkeypatch.setattr(command, "find_experiments", lambda _: both)
    answer = call("reproduce", "--workers", "1", "--out", tmp_path / "out", "--json")
    assert answer.code == 1
    document = json.loads(answer.out)
    assert [len(section["failures"]) for section in document["sections"]] == [1, 0]
    assert [len(section["rows"]) for section in document["sections"]] == [0, 1]
    assert "stub: 1 of 4 cells failed" in answer.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such"], "'no-such'"),
        (["--seeds", "1"], "--seeds is 1"),
        (["--seeds", "many"], "a valid integer"),
        (["--workers", "0"], "workers is 0"),
        (["--cluster", "tcp://x:1", "--workers", "2"], "both --cluster and --workers"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    assert complaint in refusal(tmp_path, *arguments)


@pytest.mark.parametrize(
    ("absent", "remedy"),
    [
        ("normalfan_paper", "pip install normalfan-paper."),
        ("matplotlib", "pip install normalfan-paper, which brings it."),
        ("jinja2", "pip install normalfan-paper, which brings it."),
    ],
)
def test_what_is_not_installed_is_named(
    absent: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)  # as if it were not there
    sentence = refusal(tmp_path, "statements")
    assert sentence.startswith("normalfan: ")
    assert sentence.endswith(remedy)


def refusal(tmp_path: Path, *arguments: str) -> str:
    """What is said on standard error; nothing is begun."""
    answer: Answer = call("reproduce", "--out", tmp_path / "out", *arguments)
    assert answer.code == 2
    assert not answer.out
    assert not (tmp_path / "out").exists()
    return answer.err.strip()
