"""`normalfan price`: the numbers of Python, from every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import call

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.pricing.motion import PricedMotion
from normalfan.problem.factored import FactoredLosses

MODELS = (".npz", ".csv", ".parquet")
LOSSES = (".npy", ".npz", ".csv", ".parquet")
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": pl.read_csv,
    ".parquet": pl.read_parquet,
    ".json": lambda path: pl.DataFrame(json.loads(path.read_text())),
}
STORM = slice(40, 50)  # 2021-02-10 and after


@pytest.fixture(scope="module")
def battery() -> tuple[nf.MDP, FactoredLosses, PricedMotion]:
    days = ercot_prices()
    mdp = Battery().mdp()
    losses = Battery().losses(days.prices[STORM], round_names=days.dates[STORM])
    return mdp, losses, nf.price_stream(mdp, losses)


def priced(*arguments: object) -> dict[str, Any]:
    answer = call("price", *arguments, "--json")
    assert answer.code == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def check_same(document: dict[str, Any], motion: PricedMotion, *, rel: float) -> None:
    columns = motion.columns()
    size = np.abs(motion.values).max()
    for name in ("price", "value", "variation_l1", "lowest_price", "highest_price"):
        got = [entry[name] for entry in document["rounds"]]
        assert got == pytest.approx(columns[name], rel=rel, abs=rel * size), name
    for name in ("crossed", "dimension"):
        assert [entry[name] for entry in document["rounds"]] == columns[name].tolist(), name
    assert document["summary"]["total"] == pytest.approx(motion.total, rel=rel, abs=rel * size)


@pytest.mark.parametrize("suffix", MODELS)
def test_the_battery_from_every_format(suffix: str, battery: Any, tmp_path: Path) -> None:
    mdp, losses, motion = battery
    model = tmp_path / f"battery{suffix}"
    nf.io.save_mdp(mdp, model)
    for other in LOSSES:
        nf.io.save_losses(losses, mdp, tmp_path / f"losses{other}")
        document = priced(model, tmp_path / f"losses{other}")
        check_same(document, motion, rel=1e-13)
        rounds = [entry["round"] for entry in document["rounds"]]
        assert rounds == (list(range(10)) if other == ".npy" else list(losses.round_names or ()))
    for other in (".csv", ".parquet"):
        features = tmp_path / f"features{other}"
        nf.io.save_losses(losses, mdp, tmp_path / f"prices{other}", features=features)
        check_same(priced(model, tmp_path / f"prices{other}", "--features", features), motion, rel=1e-13)


def test_an_environment_with_losses_from_every_format(rng: np.random.Generator, tmp_path: Path) -> None:
    mdp = nf.io.load_mdp("gym:FrozenLake-v1", horizon=6)
    losses = nf.ArrayLosses(rng.normal(size=(12, *mdp.shape)))
    motion = nf.price_stream(mdp, losses)
    for other in LOSSES:
        nf.io.save_losses(losses, mdp, tmp_path / f"losses{other}")
        check_same(priced("gym:FrozenLake-v1", tmp_path / f"losses{other}", "--horizon", 6), motion, rel=0)
    gained = nf.price_stream(mdp, nf.rewards(losses))
    check_same(
        priced("gym:FrozenLake-v1", tmp_path / "losses.npy", "--horizon", 6, "--rewards"), gained, rel=0
    )


@pytest.fixture
def stored(battery: Any, tmp_path: Path) -> tuple[Path, Path]:
    mdp, losses, _ = battery
    nf.io.save_mdp(mdp, tmp_path / "battery.npz")
    nf.io.save_losses(losses, mdp, tmp_path / "days.npz")
    return tmp_path / "battery.npz", tmp_path / "days.npz"


def test_what_it_says(stored: tuple[Path, Path]) -> None:
    answer = call("price", *stored)
    assert answer.code == 0
    assert answer.err == ""
    assert "of 9 rounds" in answer.out
    assert "2021-02-16, " in answer.out
    assert " MWh, where the old plan takes " in answer.out.replace("\n", " ")
    assert "by loss variation (L1)" in answer.out


@pytest.mark.parametrize("suffix", READERS)
def test_every_round_in_a_file(suffix: str, stored: tuple[Path, Path], battery: Any, tmp_path: Path) -> None:
    _, losses, motion = battery
    out = tmp_path / f"out{suffix}"
    assert call("price", *stored, "--out", out).code == 0
    frame = READERS[suffix](out)
    assert frame.columns == ["round", "since", *motion.to_frame().columns[1:], "never_changed_price"]
    assert frame["round"].to_list() == list(losses.round_names)
    assert frame["since"].to_list() == [None, *losses.round_names[:-1]]
    assert frame["price"].to_list() == motion.prices.tolist()
    assert not list(tmp_path.glob(".out*"))


def test_a_default_and_a_start_by_name(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(
        "state,action,next_state,probability\nopen,sell,closed,1\nopen,wait,open,1\n"
    )
    (tmp_path / "losses.csv").write_text(
        "round,state,action,loss\nmon,open,sell,-3\ntue,open,sell,1\nwed,open,sell,-2\n"
    )
    document = priced(
        tmp_path / "shop.csv", tmp_path / "losses.csv",
        "--horizon", 2, "--start", "open", "--default", 0,
    )  # fmt: skip
    assert [entry["price"] for entry in document["rounds"]] == [0.0, 1.0, 2.0]
    assert [entry["value"] for entry in document["rounds"]] == [-3.0, 0.0, -2.0]
    first = document["summary"]["costliest"][0]
    cell = first["cell"]
    assert (first["name"], cell["state"], cell["action"], cell["best_action"]) == (
        "wed",
        "open",
        "wait",
        "sell",
    )


SHOP = "state,action,next_state,probability\nopen,sell,open,1\nopen,wait,open,1\n"
ON_SHOP = ("--horizon", 1, "--start", "open", "--default", 0)


def shop(folder: Path, rounds: list[str], model: str = SHOP) -> tuple[Path, Path]:
    (folder / "shop.csv").write_text(model)
    pl.DataFrame(
        {"round": rounds, "action": "sell", "loss": [(-2.0) ** t for t in range(len(rounds))]}
    ).write_csv(folder / "days.csv")
    return folder / "shop.csv", folder / "days.csv"


def test_a_start_is_a_name_of_a_state(tmp_path: Path) -> None:
    rows = "".join(f"{s},wait,{s},1\n" for s in (0, 5, 10, 15))
    (tmp_path / "stock.csv").write_text("state,action,next_state,probability\n" + rows)
    (tmp_path / "losses.csv").write_text("round,state,loss\n1,15,7\n")
    files = tmp_path / "stock.csv", tmp_path / "losses.csv"
    answer = call("price", *files, "--horizon", 1, "--default", 0, "--start", 3)
    assert answer.code == 2
    assert "start is '3', but the states are called 0, 5, 10, 15" in answer.err
    document = priced(*files, "--horizon", 1, "--default", 0, "--start", 15)
    assert document["rounds"][0]["value"] == 7


def test_rounds_out_of_order_and_gaps_are_told(tmp_path: Path) -> None:
    newest_first = ["2021-03-16", "2021-03-15", "2021-03-12", "2021-03-11"]
    files = shop(tmp_path, newest_first)
    answer = call("price", *files, *ON_SHOP)
    assert answer.code == 2
    assert "has round 2021-03-15 after round 2021-03-16" in answer.err
    assert "--order sorted" in answer.err
    kept = priced(*files, *ON_SHOP, "--order", "file")
    assert [entry["round"] for entry in kept["rounds"]] == newest_first
    document = priced(*files, *ON_SHOP, "--order", "sorted")
    assert [entry["round"] for entry in document["rounds"]] == newest_first[::-1]
    assert [entry["since"] for entry in document["rounds"]] == [None, *newest_first[:0:-1]]
    assert document["gaps"] == [{"round": "2021-03-15", "since": "2021-03-12"}]
    answer = call("price", *files, *ON_SHOP, "--order", "sorted")
    assert answer.out.endswith("\n1 gap: 2021-03-15 follows 2021-03-12.\n")


def test_labels_can_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    rounds = ["mon", "[red]tue[/red]\x1b[2J", "wed\u202e"]
    files = shop(tmp_path, rounds, SHOP.replace("open", "[bold]op\x07en[/bold]"))
    on_shop = ("--horizon", 1, "--start", "[bold]op\x07en[/bold]", "--default", 0)
    answer = call("price", *files, *on_shop)
    assert answer.code == 0, answer.err
    assert not {"\x1b", "\x07", "\u202e"} & set(answer.out)
    assert r"[red]tue[/red]\x1b[2J" in answer.out
    assert r"[bold]op\x07en[/bold]" in answer.out
    refused = call("price", *files, "--horizon", 1, "--start", "x")
    assert r"[bold]op\x07en[/bold]" in refused.err
    answer = call("replan", *files, *on_shop, "--cost", 0.1, "--no-detectors")
    assert answer.code == 0, answer.err
    assert r"[red]tue[/red]\x1b[2J" in answer.out


def test_what_a_spreadsheet_would_run_is_quoted_on_request(tmp_path: Path) -> None:
    rounds = ["=1+1", "+x", "-x", "@x", "a=b"]
    files, out = shop(tmp_path, rounds), tmp_path / "out.csv"
    for option, expected in (((), rounds), (("--safe-csv",), [f"'{r}" for r in rounds[:4]] + rounds[4:])):
        assert call("price", *files, *ON_SHOP, "--out", out, *option).code == 0
        frame = pl.read_csv(out)
        assert frame["round"].to_list() == expected
        assert frame["since"].to_list() == [None, *expected[:-1]]


def test_memory_has_a_limit(stored: tuple[Path, Path]) -> None:
    answer = call("price", *stored, "--max-memory", 1000)
    assert answer.code == 2
    assert "battery.npz takes " in answer.err


def test_a_title_and_as_many_of_the_costliest_rounds_as_asked_for(
    stored: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    answer = call("price", *stored, "--report", page, "--title", "A <storm> & a battery", "--top", 2)
    assert answer.code == 0
    listed = re.findall(r"^ *(2021-02-\d\d) ", answer.out.partition("The costliest rounds,")[2], re.MULTILINE)
    assert len(listed) == 2
    text = page.read_text()
    assert "<h1>A &lt;storm&gt; &amp; a battery</h1>" in text
    assert re.findall(r'aria-label="Plans of (\S+)"', text) == listed
    assert len(priced(*stored, "--top", 2)["summary"]["costliest"]) == 2
    refused = call("price", *stored, "--top", 0)
    assert (refused.code, refused.out) == (2, "")
    assert "--top is 0, but must be a whole number of at least 1" in refused.err


def test_a_report_beside_the_numbers(stored: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("price", *stored, "--report", page).code == 0
    assert "2021-02-16" in page.read_text()


def test_the_page_about_files_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/files.md").read_text()
    for name, content in re.findall(r"`(\w+\.csv)`:\n\n```csv\n(.*?)```", page, flags=re.DOTALL):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (promised,) = re.findall(r"```\n\n```\n(.*?)```", page, flags=re.DOTALL)
    commands = re.findall(r"```sh\nnormalfan (.*?)\n```", page)
    assert len(commands) == 2
    for command in commands:
        printed = call(*command.split()).out.splitlines()
        assert [line.rstrip() for line in printed] == promised.splitlines()


def test_any_plan(stored: tuple[Path, Path], battery: Any, tmp_path: Path) -> None:
    mdp, losses, motion = battery
    plan = nf.optimal_face(mdp, next(losses.blocks(mdp.shape, 1))[0]).minimise(np.zeros(mdp.shape))[1]
    nf.io.save_plan(plan, mdp, tmp_path / "plan.csv")
    forecasts = FactoredLosses(losses.coefficients[::-1], losses.features, round_names=losses.round_names)
    nf.io.save_losses(forecasts, mdp, tmp_path / "forecasts.npz")
    cases: list[tuple[tuple[object, ...], Any, str]] = [
        (("--against", 3), 3, "Keeping the plan of 3 rounds before was free in "),
        (("--against", "first"), "first", "Keeping the plan of the first round was free in "),
        (("--plan", tmp_path / "plan.csv"), plan, "Following your plan was free in "),
        (("--forecast", tmp_path / "forecasts.npz"), forecasts, "Following the forecast's plan was free in "),
    ]
    for options, against, words in cases:
        expected = nf.price_stream(mdp, losses, against=against)
        document = priced(*stored, *options)
        check_same(document, expected, rel=1e-12)
        assert document["summary"]["one_round_old"] == pytest.approx(motion.total, rel=1e-12)
        assert document["summary"]["plan"] == expected.plans.name
        assert words in call("price", *stored, *options).out
        page = tmp_path / "page.html"
        assert call("price", *stored, *options, "--report", page).code == 0
        text = page.read_text()
        assert ('id="fan"' in text) is False
        assert words in text.replace("&#39;", "'")
    since = [entry.get("since") for entry in priced(*stored, "--against", 3)["rounds"]]
    assert since == [None] * 3 + list(losses.round_names[:-3])
    first = [entry.get("since") for entry in priced(*stored, "--against", "first")["rounds"]]
    assert first == [None] + [losses.round_names[0]] * 9
    for options, where in (
        (("--against", "last"), "--against is 'last'"),
        (("--against", 0), "--against is '0'"),
        (("--against", 2, "--plan", "p.csv"), "--against and --plan are given"),
    ):
        answer = call("price", *stored, *options)
        assert (answer.code, where in answer.err) == (2, True)


def test_sums_by_period(stored: tuple[Path, Path], battery: Any) -> None:
    periods = priced(*stored, "--by", "month")["periods"]
    assert periods == [
        {
            "period": "2021-02",
            "price": pytest.approx(battery[2].total),
            "value": pytest.approx(battery[2].values.sum()),
            "rounds": 10,
        }
    ]
    out = call("price", *stored, "--by", "week", "--unit", "$").out
    assert re.search(r"2021-W07 +\$[\d,]+ +−\$[\d,]+ +5", out)
    answer = call("price", *stored, "--by", "day")
    assert (answer.code, "'--by': Value error, 'day' is not one of 'week', 'month'" in answer.err) == (
        2,
        True,
    )


def test_rewards_are_told_as_rewards(battery: Any, tmp_path: Path) -> None:
    mdp, losses, motion = battery
    earned = nf.rewards(FactoredLosses(losses.coefficients, -losses.features, round_names=losses.round_names))
    nf.io.save_mdp(mdp, tmp_path / "battery.npz")
    nf.io.save_losses(FactoredLosses(losses.coefficients, -losses.features), mdp, tmp_path / "days.npz")
    files = (tmp_path / "battery.npz", tmp_path / "days.npz", "--rewards")
    document = priced(*files)
    check_same(document, nf.price_stream(mdp, earned), rel=1e-12)
    assert document["summary"]["rewards"] is True
    assert document["summary"]["value"] == pytest.approx(-motion.values.sum())
    assert [entry["price"] for entry in document["rounds"]] == pytest.approx(motion.prices, rel=1e-12)
    out = tmp_path / "rounds.csv"
    page = tmp_path / "page.html"
    answer = call("price", *files, "--out", out, "--report", page, "--unit", "$")
    assert "expected rewards of the best plans add up to $" in " ".join(answer.out.split())
    assert (pl.read_csv(out)["value"] > 0).all()
    text = page.read_text()
    assert "the expected reward adds up to $" in text
    assert '"sense":"reward"' in text
    assert "expected loss" not in text
