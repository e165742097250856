"""Mistakes that analysts make: each gets one sentence, from a command and in Python; nothing is written."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call
from sentences import SENTENCE, check_refusal

import normalfan as nf
from normalfan.replan.rules import parse_rule
from normalfan.watch.lines import LONGEST_LINE, LineModel, read_line

SHOP = """state,action,next_state,probability
open,sell,open,0.9
open,sell,closed,0.1
open,wait,open,1
"""
DAYS = """round,state,action,loss
2021-03-01,open,sell,-3
2021-03-02,open,sell,-4
2021-03-03,open,sell,1
"""
PRICES = "round,price,effort\n1,4,1\n2,5,1\n3,0,1\n"
WORK = "feature,state,action,value\nprice,open,sell,-1\neffort,open,sell,1\n"
FILES = {"shop.csv": SHOP, "days.csv": DAYS, "prices.csv": PRICES, "work.csv": WORK}
READING = "--start open --horizon 2 --default 0"
DAY = "price shop.csv days.csv " + READING
REPLAN = "replan shop.csv days.csv --no-detectors " + READING
WATCH = "watch shop.csv --start open --horizon 2"

RANGE = "range shop.csv prices.csv --features work.csv --start open --horizon 2"

CUBE = [[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]  # two actions, two states
ONE_WAY = nf.MDP([[0, 0]], initial=0, horizon=1, allowed=[[False, True]])
WIDE = [*CUBE, CUBE[0]]  # three actions


@dataclass(frozen=True)
class Mistake:
    names: str  # what its sentence has to name
    command: str | None = None
    python: Callable[[], object] | None = None
    files: dict[str, str | bytes] = field(default_factory=dict)
    arrives: str = ""  # on standard input


def shop(source: Any = "shop.csv", start: Any = "open", horizon: Any = 2, **reading: Any) -> nf.MDP:
    return nf.io.load_mdp(source, start=start, horizon=horizon, **reading)


def days(source: Any = "days.csv", default: Any = 0.0, **reading: Any) -> nf.LossStream:
    return nf.io.open_losses(source, shop(), default=default, **reading)


def priced(**options: Any) -> nf.PricedMotion:
    return nf.price_stream(shop(), days(), **options)


def costs() -> nf.replan.HoldingCosts:
    return nf.replan.holding_costs(shop(), days())


def from_arrays(P: Any = WIDE, R: Any = ((0, 1, 2), (2, 1, 0)), **options: Any) -> object:
    return nf.io.from_arrays(P, R, **({"horizon": 2, "start": 0} | options))


def of_model(table: str, names: str, options: str = "--horizon 2 --start open") -> Mistake:
    """A model that is wrong."""
    return Mistake(
        names,
        f"price bad.csv days.csv --default 0 {options}",
        lambda: shop("bad.csv"),
        {"bad.csv": table},
    )


def of_losses(
    table: str | bytes, names: str, file: str = "bad.csv", options: str = "", **given: Any
) -> Mistake:
    """A table of losses that is wrong."""
    return Mistake(
        names,
        f"price shop.csv {file} {READING} {options}",
        lambda: nf.price_stream(shop(), days(file, **given)),
        {file: table},
    )


def of_plan(table: str, names: str) -> Mistake:
    """A plan that is wrong."""
    return Mistake(
        names,
        f"{DAY} --plan plan.csv",
        lambda: priced(against=nf.io.read_plan("plan.csv", shop())),
        {"plan.csv": table},
    )


def of_forecast(table: str, names: str) -> Mistake:
    return Mistake(
        names,
        f"{DAY} --forecast forecast.csv",
        lambda: priced(against=days("forecast.csv")),
        {"forecast.csv": table},
    )


def of_line(line: str, names: str, options: str = "--strict") -> Mistake:
    """A line that a watch cannot read."""

    def read() -> object:
        return LineModel(shop()).loss(read_line(line.encode(), LONGEST_LINE))

    return Mistake(names, f"{WATCH} {options}", read, arrives=line)


def of_range(names: str, options: str, **given: Any) -> Mistake:
    """A question about ranges that is wrong."""

    def found() -> object:
        return nf.ranging(shop(), days("prices.csv", default=None, features="work.csv"), **given)

    return Mistake(names, f"{RANGE} {options}", found)


MISTAKES = {
    # the model
    "a column of the model misspelt": of_model(SHOP.replace("probability", "probabilty"), "probabilty"),
    "a column of the model missing": of_model("state,action,next_state\nopen,sell,open\n", "probability"),
    "probabilities in percent": of_model(
        SHOP.replace("0.9", "90").replace("0.1", "10").replace("open,1", "open,100"), "percent"
    ),
    "probabilities that do not sum to 1": of_model(SHOP.replace("0.1", "0.2"), "1.1"),
    "the same row twice": of_model(SHOP + "open,wait,open,1\n", "line 5"),
    "allowed, neither true nor false": of_model(
        "state,action,next_state,probability,allowed\nopen,sell,open,1,maybe\n", "maybe"
    ),
    "no action allowed in a state that can be reached": of_model(
        "state,action,next_state,probability,allowed\nopen,sell,closed,1,true\nclosed,sell,closed,1,false\n",
        "closed",
    ),
    "a start that is no state": Mistake("home", DAY.replace("open", "home"), lambda: shop(start="home")),
    "no start": Mistake("start", DAY.replace("--start open", ""), lambda: shop(start=None)),
    "no horizon": Mistake("horizon", DAY.replace("--horizon 2", ""), lambda: shop(horizon=None)),
    "horizon 0": Mistake("horizon", DAY.replace("--horizon 2", "--horizon 0"), lambda: shop(horizon=0)),
    "horizon 2.5": Mistake("horizon", DAY.replace("--horizon 2", "--horizon 2.5"), lambda: shop(horizon=2.5)),
    "fewer names of steps than steps": Mistake(
        "morning", DAY + " --steps morning", lambda: shop(steps=["morning"])
    ),
    "a name of a step twice": Mistake(
        "noon", DAY + " --steps noon,noon", lambda: shop(steps=["noon", "noon"])
    ),
    "a spreadsheet": Mistake(
        "shop.xlsx",
        DAY.replace("shop.csv", "shop.xlsx"),
        lambda: shop("shop.xlsx"),
        {"shop.xlsx": b"PK\x03\x04"},
    ),
    "a file that is not there": Mistake(
        "shops.csv", DAY.replace("shop.csv", "shops.csv"), lambda: shop("shops.csv")
    ),
    "losses given as the model": Mistake(
        "days.csv", f"price days.csv days.csv {READING}", lambda: shop("days.csv")
    ),
    "an environment that is unknown": Mistake(
        "FrozenLak-v1",
        "price gym:FrozenLak-v1 days.csv --horizon 2",
        lambda: nf.io.load_mdp("gym:FrozenLak-v1", horizon=2),
    ),
    "an environment without a table": Mistake(
        "CartPole-v1",
        "price gym:CartPole-v1 days.csv --horizon 2",
        lambda: nf.io.load_mdp("gym:CartPole-v1", horizon=2),
    ),
    # the losses
    "a column of the losses misspelt": of_losses(DAYS.replace("action", "acton"), "acton"),
    "a column of the losses missing": of_losses("state,action,loss\nopen,sell,1\n", "round"),
    "neither losses nor rewards": of_losses("round,action,cost\n1,sell,2\n", "cost"),
    "losses and rewards": of_losses("round,action,loss,reward\n1,sell,1,-1\n", "loss and reward"),
    "a state misspelt": of_losses(DAYS.replace("03,open", "03,opne"), "opne"),
    "an empty loss": of_losses(DAYS.replace("sell,-4", "sell,"), "line 3"),
    "NaN in spite of a default": of_losses(DAYS.replace("-4", "NaN"), "line 3"),
    "a default that is NaN": Mistake(
        "nan", DAY.replace("--default 0", "--default nan"), lambda: days(default=float("nan"))
    ),
    "cells left out without a default": Mistake(
        "wait", DAY.replace("--default 0", ""), lambda: days(default=None)
    ),
    "losses allowed, neither true nor false": of_losses(
        "round,action,loss,allowed\n1,sell,1,yes please\n", "yes please"
    ),
    "nothing allowed in a state in a round": of_losses(
        "round,action,loss\n1,sell,1\n1,wait,1\n2,sell,forbidden\n2,wait,forbidden\n", "round 2"
    ),
    "a cell of a round twice": of_losses(DAYS + "2021-03-03,open,sell,1\n", "line 5"),
    "a cell that is a number and not allowed": of_losses(
        "round,action,loss,allowed\n1,sell,inf,true\n", "line 2"
    ),
    "decimal commas": of_losses('round,action,loss\n1,sell,"2,5"\n', "2,5"),
    "semicolons": of_losses(DAYS.replace(",", ";"), "round;state"),
    "semicolons and decimal commas": Mistake(
        "2,5",
        f"price other.csv bad.csv --separator ';' {READING}",
        lambda: days("bad.csv", separator=";"),
        {"other.csv": SHOP.replace(",", ";"), "bad.csv": "round;action;loss\n1;sell;2,5\n"},
    ),
    "a separator that is the decimal sign": Mistake("','", f"{DAY} --decimal ,", lambda: days(decimal=",")),
    "a file that is not compressed": of_losses(b"\x00\xff\xfe", "bad.csv.gz", file="bad.csv.gz"),
    "a compressed file cut short": of_losses(
        gzip.compress(DAYS.encode())[:-20], "bad.csv.gz", file="bad.csv.gz"
    ),
    "rewards that say so, and --rewards": of_losses(
        DAYS.replace("loss", "reward"), "rewards", options="--rewards", rewards=True
    ),
    "the model given as losses": Mistake(
        "shop.csv", f"price shop.csv shop.csv {READING}", lambda: days("shop.csv")
    ),
    "standard input for both": Mistake("standard input", f"price - - {READING}", arrives=SHOP),
    "a feature without coefficients": Mistake(
        "effort",
        "price shop.csv prices.csv --features work.csv --start open --horizon 2",
        lambda: days("prices.csv", default=None, features="work.csv"),
        {"prices.csv": "round,price\n1,4\n"},
    ),
    "a feature given as the losses": Mistake(
        "work.csv", f"price shop.csv work.csv {READING}", lambda: days("work.csv")
    ),
    "a round of coefficients twice": Mistake(
        "line 5",
        "price shop.csv prices.csv --features work.csv --start open --horizon 2",
        lambda: days("prices.csv", default=None, features="work.csv"),
        {"prices.csv": PRICES + "3,0,1\n"},
    ),
    # dates
    "dates out of order": of_losses(DAYS + "2021-02-01,open,sell,1\n", "2021-02-01"),
    "an order that is none": Mistake("upwards", DAY + " --order upwards", lambda: days(order="upwards")),
    "from after to": Mistake(
        "2021-03-03",
        DAY + " --from 2021-03-03 --to 2021-03-01",
        lambda: days(first="2021-03-03", last="2021-03-01"),
    ),
    "from a word": Mistake("monday", DAY + " --from monday", lambda: days(first="monday")),
    "to before the first round": Mistake(
        "2020-12-31", DAY + " --to 2020-12-31", lambda: days(last="2020-12-31")
    ),
    "by day": Mistake("day", DAY + " --by day", lambda: priced().by_period("day")),
    "by month, of rounds that are no dates": Mistake(
        "month",
        "price shop.csv prices.csv --features work.csv --start open --horizon 2 --by month",
        lambda: nf.price_stream(shop(), days("prices.csv", default=None, features="work.csv")).by_period(
            "month"
        ),
    ),
    # which plan
    "against 0": Mistake("0", DAY + " --against 0", lambda: priced(against=0)),
    "against -1": Mistake("-1", DAY + " --against -1", lambda: priced(against=-1)),
    "against next": Mistake("next", DAY + " --against next", lambda: priced(against="next")),
    "a plan and a forecast": Mistake(
        "--plan",
        DAY + " --plan plan.csv --forecast days.csv",
        files={"plan.csv": "state,action\nopen,sell\n"},
    ),
    "a forecast of fewer rounds": of_forecast(DAYS.rsplit("2021", 1)[0], "2"),
    "a forecast of other rounds": of_forecast(DAYS.replace("-03", "-04"), "2021-04-01"),
    "a forecast of rewards for losses": of_forecast(DAYS.replace("loss", "reward"), "rewards"),
    "a plan with an unknown action": of_plan("state,action\nopen,sells\n", "sells"),
    "a plan without a state that it reaches": of_plan("state,action\nopen,sell\n", "closed"),
    "a plan with two actions": of_plan("state,action\nopen,sell\nopen,wait\nclosed,wait\n", "line 3"),
    "a plan with probabilities that do not sum to 1": of_plan(
        "state,action,probability\nopen,sell,0.5\nopen,wait,0.4\nclosed,wait,1\n", "0.9"
    ),
    "a plan with a forbidden action": Mistake(
        "sell",
        f"price road.csv days.csv {READING} --plan plan.csv",
        lambda: nf.io.read_plan("plan.csv", shop("road.csv")),
        {
            "road.csv": "state,action,next_state,probability,allowed\n"
            "open,sell,open,1,false\nopen,wait,open,1,true\n",
            "plan.csv": "state,action\nopen,sell\n",
        },
    ),
    "top 0": Mistake(
        "top",
        DAY + " --top 0",
        lambda: nf.report.write_report("page.html", shop(), days(), priced(), title="", top=0),
    ),
    "a report that is no page": Mistake("page.pdf", DAY + " --report page.pdf"),
    # re-planning
    "no cost": Mistake("--cost", REPLAN),
    "a cost below 0": Mistake("-1", REPLAN + " --cost -1", lambda: nf.replan.cheapest_schedule(costs(), -1)),
    "a cost that is a word": Mistake("--cost", REPLAN + " --cost much"),
    "a library of 0 plans": Mistake(
        "0", REPLAN + " --library 0", lambda: nf.replan.plan_library(shop(), days(), 0)
    ),
    "a library with a cost": Mistake("--cost", REPLAN + " --library 2 --cost 1"),
    "a holdout of more than all": Mistake(
        "1.5", REPLAN + " --cost 1 --holdout 1.5", lambda: nf.replan.recommend(costs(), 1, holdout="1.5")
    ),
    "a holdout of another year": Mistake(
        "2022-01-01",
        REPLAN + " --cost 1 --holdout 2022-01-01",
        lambda: nf.replan.recommend(costs(), 1, holdout="2022-01-01"),
    ),
    "plans for the mean of no day": Mistake(
        "0", REPLAN + " --cost 1 --plans mean:0", lambda: nf.replan.holding_costs(shop(), days(), window=0)
    ),
    # watching
    "a rule that is none": Mistake("sometimes", WATCH + " --rule sometimes", lambda: parse_rule("sometimes")),
    "a rule below 0": Mistake("-5", WATCH + " --rule accumulated:-5", lambda: parse_rule("accumulated:-5")),
    "an alarm that is none": Mistake(
        "price=>5", WATCH + " --alarm 'price=>5'", lambda: nf.watch.AlarmRule.parse("price=>5")
    ),
    "a state without its output": Mistake("--out", WATCH + " --state state"),
    "a key twice on a line": of_line('{"round": 1, "round": 2, "loss": [[[0]]]}', "'round' is there 2 times"),
    "a loss and a reward on a line": of_line('{"round": 1, "loss": [[[0]]], "reward": [[[0]]]}', "reward"),
    "a date as the round of a line": of_line('{"round": "2021-03-14", "loss": [[[0]]]}', "2021-03-14"),
    "a line of another shape": of_line('{"round": 1, "loss": [[[0, 1]]]}', "[1, 1, 2]"),
    "a line of coefficients without features": of_line('{"round": 1, "theta": [1, 2]}', "features"),
    "lines that are all bad": of_line('{"round": 1}', "line 1", options=""),
    "the model where the losses arrive": Mistake(
        "standard input", WATCH.replace("shop.csv", "-"), arrives=SHOP
    ),
    "a range of lines without features": Mistake("features", WATCH + " --range 1%"),
    "a range that is a word": Mistake("a lot", WATCH + " --features work.csv --range 'a lot'"),
    # ranges
    "the range of an unknown round": of_range("7", "--at 7", at="7"),
    "the range of a round by its place": of_range("'0'", "--at 0", at="0"),
    "a tolerance that is a word": of_range("little", "--tolerance little", tolerance="little"),
    "a tolerance below 0": of_range("-1%", "--at 1 --tolerance -1%", at="1", tolerance="-1%"),
    "a tolerance with a decimal comma": of_range("1,5%", "--tolerance 1,5%", tolerance="1,5%"),
    "a tolerance in words": of_range("1 percent", "--tolerance '1 percent'", tolerance="1 percent"),
    "a tolerance without an end": of_range("inf", "--tolerance inf", tolerance=float("inf")),
    "the range of losses without features": Mistake(
        "entries", f"range shop.csv days.csv {READING}", lambda: nf.ranging(shop(), days())
    ),
    "no range listed": Mistake("--top", RANGE + " --top 0"),
    "a page of ranges that is no page": Mistake("page.pdf", RANGE + " --report page.pdf"),
    "a page of ranges nowhere": Mistake("nowhere", RANGE + " --report nowhere/page.html"),
    "ranges of a model with too many entries": Mistake(
        "5,000", f"range shop.csv days.csv {READING} --entries".replace("--horizon 2", "--horizon 2000")
    ),
    # the command
    "an option misspelt": Mistake("--separater", DAY + " --separater ,"),
    "a command misspelt": Mistake("prise", DAY.replace("price", "prise")),
    "no losses": Mistake("LOSSES", "price shop.csv"),
    # other people's arrays, which commands do not take
    "an order of axes that is none": Mistake("SSA", python=lambda: from_arrays(order="SSA")),
    "axes that could be both": Mistake("order", python=lambda: from_arrays(CUBE, [[0, 1], [1, 0]])),
    "rewards of another shape": Mistake("[3, 2]", python=lambda: from_arrays(R=np.zeros((3, 2)))),
    "rewards negated twice": Mistake(
        "rewards", python=lambda: nf.rewards(nf.rewards(np.zeros((1, 1, 1, 2))))
    ),
    "a name of a round twice": Mistake(
        "monday", python=lambda: nf.ArrayLosses(np.zeros((2, 1)), "TA", round_names=["monday", "monday"])
    ),
    "a policy with a forbidden action": Mistake(
        "action 0", python=lambda: nf.price_stream(ONE_WAY, np.zeros((2, 1, 1, 2)), against=[[[0.5, 0.5]]])
    ),
    "nothing allowed in a round of an array": Mistake(
        "losses[1]", python=lambda: nf.price_stream(ONE_WAY, [[[[0, 1]]], [[[1, np.inf]]]])
    ),
    "losses of another model": Mistake(
        "[1, 2, 2, 3]", python=lambda: nf.price_stream(shop(), np.zeros((1, 2, 2, 3)))
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*"))}


def laid_out(mistake: Mistake, folder: Path) -> dict[str, bytes]:
    for name, text in (FILES | mistake.files).items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return contents(folder)


def wrong(where: str) -> list[str]:
    return [name for name, mistake in MISTAKES.items() if getattr(mistake, where) is not None]


@pytest.mark.parametrize("name", wrong("command"))
def test_a_command_refuses_a_mistake_in_one_sentence(name: str, folder: Path) -> None:
    mistake = MISTAKES[name]
    before = laid_out(mistake, folder)
    words = shlex.split(str(mistake.command))
    if words[0] != "watch" and not mistake.arrives:
        words += ["--out", "out.csv"]
    answer = call(*words, stdin=mistake.arrives)
    assert answer.code == 2
    told = [line for line in answer.err.splitlines() if "compiling its kernels" not in line]
    assert len(told) == 1, answer.err
    assert re.fullmatch("normalfan: " + SENTENCE, told[0]), told
    assert mistake.names in told[0]
    assert answer.out == "" or name == "lines that are all bad"  # which are told as they come
    assert contents(folder) == before


@pytest.mark.parametrize("name", wrong("python"))
def test_python_refuses_it_too(name: str, folder: Path) -> None:
    mistake = MISTAKES[name]
    before = laid_out(mistake, folder)
    names = mistake.names.removeprefix("--") if name != "lines that are all bad" else "round"
    check_refusal(mistake.python, names)  # type: ignore[arg-type]
    assert contents(folder) == before


def test_there_are_forty_for_each() -> None:
    assert len(wrong("command")) >= 40
    assert len(wrong("python")) >= 40


def test_without_mistakes_the_same_files_are_priced(folder: Path) -> None:
    laid_out(Mistake(""), folder)
    for command in (
        DAY,
        REPLAN + " --cost 1",
        "price shop.csv prices.csv --features work.csv --start open --horizon 2",
        RANGE + " --at 2 --tolerance ' 0.5 % ' --top 1",
        RANGE + " --tolerance 2.5e-1",
    ):
        assert call(*shlex.split(command)).code == 0
    assert call(*shlex.split(DAY + " --steps am,pm --by month --against 2 --top 1 --to 2021-03-02")).code == 0


def test_a_state_of_another_rule_is_refused(folder: Path) -> None:
    laid_out(Mistake(""), folder)
    kept = [*shlex.split(WATCH), "--state", "state", "--out", "prices.jsonl", "--rule"]
    line = json.dumps({"round": 1, "loss": np.zeros((2, 2, 2)).tolist()})
    assert call(*kept, "accumulated:200", stdin=line).code == 0
    before = contents(folder)
    refused = call(*kept, "periodic:7", stdin=line)
    assert refused.code == 2
    assert re.fullmatch("normalfan: " + SENTENCE, refused.err.strip())
    assert "accumulated:200" in refused.err
    assert contents(folder) == before


def test_semicolons_are_those_of_all_tables_of_a_command(folder: Path) -> None:
    plan = "state,action\nopen,sell\nclosed,wait\n"
    tables = {"shop.csv": SHOP, "days.csv": DAYS, "plan.csv": plan}
    laid_out(Mistake("", files={name: text.replace(",", ";") for name, text in tables.items()}), folder)
    assert call(*shlex.split(DAY + " --plan plan.csv --separator ;")).code == 0
