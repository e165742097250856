"""The options that say how a problem is written: the same prices, however the same problem is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call

import normalfan as nf

MODEL = "state,action,next_state,probability\nshop,buy,shop,0.5\nshop,buy,house,0.5\nshop,wait,shop,1\n"
DAYS = [f"2021-03-{d:02}" for d in range(1, 9)]
COMMON = ("--start", "shop", "--horizon", 2, "--default", 0, "--json")


@pytest.fixture
def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of days in which buying costs something else each day."""
    monkeypatch.chdir(tmp_path)
    costs = np.random.default_rng(5).normal(size=len(DAYS))
    rows = [f"{day},shop,buy,{cost}" for day, cost in zip(DAYS, costs, strict=True)]
    text = "\n".join(["round,state,action,loss", *rows]) + "\n"
    Path("model.csv").write_text(MODEL)
    Path("losses.csv").write_text(text)
    return text


def priced(*arguments: object, stdin: str = "") -> list[dict[str, Any]]:
    answer = call("price", *arguments, *COMMON, stdin=stdin)
    assert answer.code == 0, answer.err
    rounds: list[dict[str, Any]] = json.loads(answer.out)["rounds"]
    return rounds


def prices(rounds: list[dict[str, Any]]) -> list[float]:
    return [one["price"] for one in rounds]


def test_the_same_problem_said_otherwise(losses: str) -> None:
    expected = priced("model.csv", "losses.csv")
    assert sum(prices(expected)) > 0
    Path("model;.csv").write_text(MODEL.replace(",", ";").replace(".", ","))
    Path("losses;.csv").write_text(losses.replace(",", ";").replace(".", ","))
    assert priced("model;.csv", "losses;.csv", "--separator", ";", "--decimal", ",") == expected
    negated = "".join(
        line if line.startswith("round") else f"{line.rpartition(',')[0]},{-float(line.rpartition(',')[2])}\n"
        for line in losses.splitlines(keepends=True)
    )
    Path("rewards.csv").write_text(negated.replace("loss", "reward"))
    Path("unnamed.csv").write_text(negated)
    assert prices(priced("model.csv", "rewards.csv")) == prices(expected)
    assert prices(priced("model.csv", "unnamed.csv", "--rewards")) == prices(expected)
    both = call("price", "model.csv", "rewards.csv", "--rewards", *COMMON)
    assert (both.code, "calls its numbers rewards" in both.err) == (2, True)
    assert priced("model.csv", "-", stdin=losses) == expected
    assert priced("-", "losses.csv", stdin=MODEL) == expected


@pytest.mark.usefixtures("losses")
def test_from_and_to() -> None:
    every = priced("model.csv", "losses.csv")
    some = priced("model.csv", "losses.csv", "--from", DAYS[2], "--to", "2021-03-06")
    assert [one["round"] for one in some] == DAYS[2:6]
    assert prices(some)[1:] == prices(every)[3:6]
    assert prices(some)[0] == 0
    bad = call("price", "model.csv", "losses.csv", "--from", "march", *COMMON)
    assert (bad.code, "first (--from) is 'march'" in bad.err) == (2, True)


def test_steps_have_names(losses: str) -> None:
    assert prices(priced("model.csv", "losses.csv", "--steps", "am,pm")) == prices(
        priced("model.csv", "losses.csv")
    )
    named = losses.replace("round,", "round,step,").replace("shop,buy", "pm,shop,buy")
    Path("pm.csv").write_text(named)
    mdp = nf.io.load_mdp("model.csv", steps=["am", "pm"], start="shop")
    stream = nf.io.open_losses("pm.csv", mdp, default=0)
    assert (
        prices(priced("model.csv", "pm.csv", "--steps", "am,pm"))
        == nf.price_stream(mdp, stream).prices.tolist()
    )
