"""The committed ledger is what the committed data say, and reaches what was promised of the full run."""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars
import pytest

from normalfan_paper.fan_page import to_fan_page
from normalfan_paper.registry import EXPERIMENTS, find_experiments

RESULTS = Path(__file__).parents[2] / "results/paper"
FIGURES = [
    *("normal-fan", "bellman-causal", "degenerate-crossing", "advantage-gate", "barrier"),
    *("simplex", "simplex-map", "tree-identity", "tree-predictors", "tree-predictors-designs"),
    *("degenerate-stack", "degenerate-dimension"),
    *("gridworld-bars", "gridworld-trust-map", "gridworld-training", "gridworld-sensitivity"),
]


@pytest.fixture(scope="module")
def ledger() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / "ledger.json").read_text())
    return document


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_verdict_comes_out_of_the_data_again(name: str, ledger: dict[str, Any]) -> None:
    (experiment,) = find_experiments([name])
    rows = experiment.check(polars.read_parquet(RESULTS / "data" / f"{name}.parquet"))
    (section,) = [section for section in ledger["sections"] if section["id"] == name]
    names = ("id", "claim", "measured", "verdict", "because", "seeds", "beyond")
    told = [tuple(row[name] for name in names) for row in section["rows"]]
    assert [tuple(getattr(row, name) for name in names) for row in rows] == told
    assert json.loads(json.dumps([asdict(choice) for choice in experiment.choices])) == section["choices"]


def test_the_pages_show_every_row_and_choice(ledger: dict[str, Any]) -> None:
    markdown = (RESULTS / "ledger.md").read_text().replace("\\", "")
    page = html.unescape((RESULTS / "ledger.html").read_text())
    for section in ledger["sections"]:
        for row in section["rows"]:
            for piece in (row["claim"], row["measured"], row["because"]):
                assert piece in markdown
                assert piece in page
        for choice in section["choices"]:
            for piece in (choice["question"], choice["ours"], *choice["alternatives"]):
                assert piece in markdown
                assert piece in page
        assert all(f"(figures/{name})" in markdown for name in section["figures"])
    assert page.count("<img ") == sum(len(section["figures"]) for section in ledger["sections"])


def test_the_run_was_whole(ledger: dict[str, Any]) -> None:
    assert (ledger["seeds"], ledger["quick"]) == (32, False)
    assert sum(section["wall_seconds"] for section in ledger["sections"]) < 3600
    assert sum(section["cpu_seconds"] for section in ledger["sections"]) < 2 * 3600  # an hour of two cores
    assert not any(section["failures"] for section in ledger["sections"])
    for figure in FIGURES:
        assert (RESULTS / "figures" / f"{figure}.pdf").exists()
        assert (RESULTS / "figures" / f"{figure}.png").exists()


def test_the_page_to_play_with_is_the_one_that_the_code_makes() -> None:
    assert (RESULTS / "fan.html").read_text() == to_fan_page()


def test_main_claims_have_all_seeds(ledger: dict[str, Any]) -> None:
    for section in ledger["sections"]:
        for row in section["rows"]:
            if row["seeds"] and not row["beyond"]:
                assert row["seeds"].startswith("32"), row["id"]


def test_combinations_keep_their_promise(ledger: dict[str, Any]) -> None:
    verdicts = {row["id"]: row["verdict"] for section in ledger["sections"] for row in section["rows"]}
    assert verdicts["gridworld/combined-bound"] == "holds"


def test_what_is_exact_is_exact(ledger: dict[str, Any]) -> None:
    numbers = {row["id"]: row["numbers"] for section in ledger["sections"] for row in section["rows"]}
    assert max(numbers["tree/identity"].values()) < 1e-14
    assert numbers["simplex/decomposition"]["largest gap"] < 1e-9
    assert numbers["degenerate/identical-price"]["largest difference"] < 1e-9
