"""`normalfan replan` as a person meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from command_line import Answer, call

import normalfan as nf

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three arms whose losses drift, as files; rounds have names."""
    folder = tmp_path_factory.mktemp("replan")
    mdp = nf.MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    nf.io.save_mdp(mdp, folder / "arms.npz")
    rng = np.random.default_rng(1)
    losses = np.cumsum(rng.normal(size=(40, 1, 1, 3)), axis=0)
    names = [f"day {t}" for t in range(40)]
    nf.io.save_losses(nf.ArrayLosses(losses, round_names=names), mdp, folder / "days.npz")
    return folder


def replan(folder: Path, *options: object) -> Answer:
    return call("replan", folder / "arms.npz", folder / "days.npz", *options)


@pytest.mark.parametrize("known", ["before", "after"])
@pytest.mark.parametrize("plans", ["last", "mean:3"])
def test_json_says_what_python_says(folder: Path, known: str, plans: str) -> None:
    options = ["--cost", "2", "--no-detectors", "--known", known, "--plans", plans, "--json"]
    answer = replan(folder, *options)
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    mdp = nf.io.load_mdp(folder / "arms.npz")
    losses = nf.io.open_losses(folder / "days.npz", mdp)
    window = 1 if plans == "last" else 3
    costs = nf.replan.holding_costs(mdp, losses, window=window, known=known)
    best = nf.replan.cheapest_schedule(costs, 2.0)
    told = document["schedules"]["cheapest in hindsight"]
    assert told["rounds"] == [f"day {t + costs.first_round}" for t in best.days]
    assert told["total"] == pytest.approx(best.total(2.0))
    rule = nf.replan.replay(nf.replan.Accumulated(2.0), costs)
    assert document["schedules"]["accumulated"]["replans"] == rule.replans
    assert document["least_regrets"] == pytest.approx(nf.replan.least_regrets(costs).tolist())
    assert (document["plans"], document["known"], document["days"]) == (plans, known, costs.n_days)
    for row in document["within"]:
        assert all(best["replans"] <= row["replans"] for best in row["families"].values())
        assert all(best["regret"] >= row["least_regret"] - 1e-9 for best in row["families"].values())


def test_tables_and_detectors(folder: Path) -> None:
    answer = replan(folder, "--cost", 2)
    assert (answer.code, answer.err) == (0, "")
    for word in (
        "cheapest in hindsight",
        "re-plan on day",
        "Page-Hinkley",
        "KSWIN",
        "ADWIN",
        "picked in hindsight",
    ):
        assert word in " ".join(answer.out.split()), word


def test_without_river_the_curve_comes_without_detectors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normalfan.replan.rules.detectors_installed", lambda: False)
    answer = replan(folder, "--cost", 2)
    assert answer.code == 0
    assert "normalfan[compare]" in answer.err
    assert "ADWIN" not in answer.out
    assert "periodic" in answer.out


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_days_are_written(folder: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"days{suffix}"
    answer = replan(folder, "--cost", 2, "--no-detectors", "--json", "--out", target)
    assert answer.code == 0, answer.err
    frame = polars.read_csv(target) if suffix == ".csv" else polars.read_parquet(target)
    assert frame["round"].to_list() == [f"day {t}" for t in range(40)]
    for name, told in json.loads(answer.out)["schedules"].items():
        assert frame[f"{name}: regret"].sum() == pytest.approx(told["regret"])
        assert frame.filter(polars.col(f"{name}: re-plan"))["round"].to_list() == told["rounds"]


@pytest.mark.parametrize(
    ("suffix", "opening"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".html", b"<!doctype html>")]
)
def test_figures_are_drawn(folder: Path, tmp_path: Path, suffix: str, opening: bytes) -> None:
    target = tmp_path / f"curve{suffix}"
    answer = replan(folder, "--cost", 2, "--no-detectors", "--figure", target)
    assert answer.code == 0, answer.err
    assert target.read_bytes().startswith(opening)
    if suffix == ".html":
        page = target.read_text()
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        names = ["best in hindsight", "accumulated", "CUSUM", "single day", "periodic"]
        assert [line["name"] for line in data["lines"]] == names
        assert "in hindsight that costs" in page
        assert "https://" not in page.split("<script>")[0]


@pytest.mark.parametrize("plans", ["last", "mean:3"])
def test_a_library_says_what_python_says(folder: Path, tmp_path: Path, plans: str) -> None:
    options = ["--library", 3, "--plans", plans, "--unit", "€"]
    answer = replan(folder, *options, "--json", "--out", tmp_path / "served.csv")
    assert (answer.code, answer.err) == (0, "")
    mdp = nf.io.load_mdp(folder / "arms.npz")
    losses = nf.io.open_losses(folder / "days.npz", mdp)
    library = nf.replan.plan_library(mdp, losses, 3, window=1 if plans == "last" else 3)
    told = json.loads(answer.out)
    assert told["sentence"] == library.sentence
    for row, choice in zip(told["libraries"], library.choices, strict=True):
        assert row["rounds"] == [f"day {t}" for t in choice.days]
        assert (row["cost"], row["lower_bound"]) == pytest.approx((choice.cost, choice.lower_bound))
    served = polars.read_csv(tmp_path / "served.csv")
    assert served["plan"].to_list() == [f"day {t}" for t in library.choices[-1].serving]
    assert served["cost"].sum() == pytest.approx(library.choices[-1].cost)
    printed = replan(folder, *options).out
    assert library.sentence in " ".join(printed.split())
    assert library.rows("€")[0][1] in printed


def test_a_holdout_says_what_python_says(folder: Path, tmp_path: Path) -> None:
    options = ["--cost", 2, "--no-detectors", "--holdout", "day 25", "--unit", "$"]
    answer = replan(folder, *options, "--json", "--out", tmp_path / "days.csv")
    assert (answer.code, answer.err) == (0, "")
    mdp = nf.io.load_mdp(folder / "arms.npz")
    costs = nf.replan.holding_costs(mdp, nf.io.open_losses(folder / "days.npz", mdp))
    advice = nf.replan.recommend(costs, 2.0, holdout="day 25", unit="$")
    told = json.loads(answer.out)
    assert told["recommendation"] == advice.sentence
    assert (told["tuned_days"], told["judged_days"], told["judged_from"]) == (25, 15, "day 25")
    assert [rule["total"] for rule in told["rules"]] == [one.run.total(2.0) for one in advice.judged]
    assert told["cheaper_where_judged"] == [one.family for one in advice.beaten_by]
    assert polars.read_csv(tmp_path / "days.csv")["round"].to_list() == [f"day {t}" for t in range(25, 40)]
    assert " ".join(replan(folder, *options).out.split()).endswith(advice.sentence)


def test_all_rounds_end_with_a_recommendation_in_the_unit(folder: Path) -> None:
    options = ["--cost", 2, "--no-detectors", "--unit", "€"]
    said = json.loads(replan(folder, *options, "--json").out)["recommendation"]
    printed = " ".join(replan(folder, *options).out.split())
    assert printed.endswith(said)
    assert "in hindsight that costs €" in said
    assert "a re-plan costs €2" in printed


def test_a_stream_that_never_moves(tmp_path: Path) -> None:
    """Nothing to gain: no re-plan in hindsight, and pictures and sweeps that survive it."""
    nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), initial=0, horizon=1), tmp_path / "arms.npz")
    np.savez(tmp_path / "days.npz", losses=np.tile([0.0, 1.0], (9, 1)).reshape(9, 1, 1, 2))
    target = tmp_path / "flat.png"
    answer = replan(tmp_path, "--cost", 1, "--json", "--figure", target)
    assert json.loads(answer.out)["schedules"]["cheapest in hindsight"]["replans"] == 0
    assert target.exists()


def test_help_has_an_example() -> None:
    assert "Example:  normalfan replan" in call("replan", "--help").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cost", "-1"), "cost is -1.0"),
        (("--cost", "nan"), "cost is nan"),
        (("--cost", "inf"), "cost is inf"),
        ((), "--cost is missing"),
        (("--library", "0"), "--library is 0"),
        (("--library", "3", "--cost", "1"), "--cost is given"),
        (("--library", "3", "--holdout", "0.5"), "--holdout is given"),
        (("--library", "3", "--figure", "c.png"), "--figure is given"),
        (("--library", "3", "--known", "after"), "--known after is given"),
        (("--library", "3", "--known", "never"), "'--known': Value error, 'never' is not one of"),
        (("--cost", "1", "--holdout", "0.5", "--figure", "c.png"), "--figure is given"),
        (("--cost", "1", "--holdout", "2", "--no-detectors"), "holdout is '2'"),
        (("--cost", "1", "--plans", "mean:0"), "mean:0"),
        (("--cost", "1", "--plans", "mean:x"), "mean:x"),
        (("--cost", "1", "--plans", "best"), "best"),
        (("--cost", "1", "--known", "never"), "'--known': Value error, 'never' is not one of"),
        (("--cost", "1", "--out", "days.txt"), "days.txt"),
        (("--cost", "1", "--figure", "curve.gif"), "curve.gif"),
        (("--cost", "1", "--out", "no-such-folder/days.csv"), "no-such-folder"),
    ],
)
def test_bad_input_is_a_sentence_before_anything_is_written(
    folder: Path, options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = replan(folder, *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert re.fullmatch(r"normalfan: [^\n]*, but [^\n]*: [^\n]*\.\n", answer.err), answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("figure", "extra"), [("c.png", "plot"), ("c.html", "report")])
def test_a_missing_drawing_library_is_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, figure: str, extra: str
) -> None:
    monkeypatch.setattr("normalfan.errors.find_spec", lambda _: None)
    answer = replan(folder, "--cost", 1, "--figure", figure)
    assert answer.code == 2
    assert f"pip install 'normalfan[{extra}]'" in answer.err


def test_the_page_shows_the_numbers_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from replan_tables import with_tables

    document = json.loads((ROOT / "benchmarks" / "replan.json").read_text())
    page = (ROOT / "docs" / "how-to" / "replan.md").read_text()
    assert with_tables(page, document) == page
    at_52 = document["cases"][0]["budgets"][2]
    assert at_52["replans_at_most"] == 52
    for kind in ("price_rule", "detector", "periodic"):
        assert f"{at_52[kind]['regret']:,} ({at_52[kind]['replans']})" in page


def test_the_page_shows_rules_on_the_held_out_year_and_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from plans import holdout_tables, library_table, with_part

    page = (ROOT / "docs" / "how-to" / "replan.md").read_text()
    for name, tables in (("holdout", holdout_tables), ("library", library_table)):
        document = json.loads((ROOT / "benchmarks" / f"{name}.json").read_text())
        assert with_part(page, name, tables(document)) == page


def test_what_the_page_concludes_about_2022_follows_from_the_numbers() -> None:
    cases = json.loads((ROOT / "benchmarks" / "holdout.json").read_text())["cases"]

    def total(case: dict[str, Any], family: str) -> int:
        found: int = case["rules"][family]["total_2022"]
        return found

    cheap = [case for case in cases if case["cost"] <= 50_000]
    for case in cheap:
        ours = total(case, case["chosen"])
        assert ours < total(case, "periodic") < total(case, "never")
        assert total(case, "accumulated, set by the cost") < 1.35 * ours
    (lost,) = (case for case in cases if (case["cost"], case["known"]) == (100_000, "after"))
    assert lost["chosen"] == "CUSUM"
    assert {"never", "periodic"} < set(lost["cheaper_where_judged"])
    assert 1.2 < total(lost, "CUSUM") / total(lost, "never") < 1.23
    for case in cases:
        if case["cost"] == 500_000:
            assert case["chosen"] == "CUSUM"
            assert case["rules"]["CUSUM"]["replans"] == 0
            assert total(case, "periodic") > total(case, "never")
            assert total(case, "accumulated, set by the cost") > 1.5 * total(case, "never")
    beaten = [case for case in cases if case["cheaper_where_judged"]]
    by_single_day = [case for case in beaten if "single day" in case["cheaper_where_judged"]]
    assert (len(cases), len(beaten), len(by_single_day)) == (14, 7, 6)


def test_libraries_of_the_page_are_those_of_the_package() -> None:
    """The chosen plans cost what the page says, and as much more than the bound as it says."""
    from normalfan.battery import Battery, ercot_prices
    from normalfan.replan.costs import costs_of_plans

    battery, days = Battery(), ercot_prices()
    stream = battery.losses(days.prices)
    costs, values = costs_of_plans(battery.mdp(), stream, 1, nf.TieRule(), earlier=True, progress=False)
    rows = json.loads((ROOT / "benchmarks" / "library.json").read_text())["libraries"]
    assert len(rows) == 20
    for row in rows:
        chosen = [days.dates.index(date) for date in row["rounds"]]
        cost = costs[chosen].min(axis=0).sum()
        assert round(cost) == row["cost"]
        assert row["kept"] == pytest.approx(1 + cost / values.sum(), abs=1e-5)
        assert 0.989 * row["cost"] < row["lower_bound"] <= row["cost"]
        assert row["plans"] > 13 or row["lower_bound"] > 0.9999 * row["cost"]


def test_what_the_page_concludes_follows_from_the_numbers() -> None:
    document = json.loads((ROOT / "benchmarks" / "replan.json").read_text())
    cases = {(case["hub"], case["plans"], case["known"]): case["budgets"] for case in document["cases"]}

    def regret(hub: str, plans: str, known: str, kind: str, budget: int) -> int:
        (row,) = (row for row in cases[hub, plans, known] if row["replans_at_most"] == budget)
        found: int = row["families"][kind] if kind in row["families"] else row[kind]["regret"]
        return found

    main = ("HB_HUBAVG", "last", "before")
    cusum = regret(*main, "CUSUM", 52)
    assert cusum == regret(*main, "price_rule", 52)
    assert 0.48 < cusum / regret(*main, "detector", 52) < 0.52
    assert 0.23 < cusum / regret(*main, "periodic", 52) < 0.27
    assert cusum < regret(*main, "single_day", 52) < 1.05 * cusum
    assert regret(*main, "accumulated", 52) > regret(*main, "single_day", 52)
    by_allowance = document["cusum_at_52_by_allowance"].values()
    assert (len(by_allowance), sum(r < regret(*main, "single_day", 52) for r in by_allowance)) == (6, 1)
    others = [(hub, plans, known) for hub, plans, known in cases if hub != "HB_HUBAVG"]
    ahead = [regret(*case, "single_day", 52) < regret(*case, "price_rule", 52) for case in others]
    assert (len(ahead), sum(ahead)) == (4, 2)
    after = cases["HB_HUBAVG", "last", "after"][2]
    assert 0.9 < after["price_rule"]["regret"] / after["detector"]["regret"] < 1
    for kind in ("price_rule", "single_day", "detector"):
        assert after[kind]["in_the_storm"] > after[kind]["regret"] / 2
    page_hinkley = 0
    for known in ("before", "after"):
        for plans in ("mean:7", "mean:28"):
            for budget in (13, 26, 52, 104, 208):
                last = regret("HB_HUBAVG", "last", known, "price_rule", budget)
                assert regret("HB_HUBAVG", plans, known, "price_rule", budget) > last
            last = regret("HB_HUBAVG", "last", known, "periodic", 52)
            assert regret("HB_HUBAVG", plans, known, "periodic", 52) < last
            few = cases["HB_HUBAVG", plans, known][0]
            assert few["detector"]["family"] == "Page-Hinkley"
            page_hinkley += few["detector"]["regret"] < few["price_rule"]["regret"]
    assert page_hinkley == 3
    for sample in document["out_of_sample"]:
        for row in sample["families"]:
            ratio = row["used"]["regret"] / row["hindsight_at_used_replans"]
            assert ratio < 2.4 or row["family"] not in ("accumulated", "CUSUM", "single day")


def test_the_measured_numbers_are_those_of_the_package() -> None:
    """The settings that the page quotes at 52 re-plans, run again."""
    from normalfan.battery import Battery, ercot_prices

    battery = Battery()
    costs = nf.replan.holding_costs(battery.mdp(), battery.losses(ercot_prices().prices))
    document = json.loads((ROOT / "benchmarks" / "replan.json").read_text())
    at_52 = document["cases"][0]["budgets"][2]
    assert round(nf.replan.least_regrets(costs, 52)[52]) == at_52["hindsight"]
    rules = {
        "price_rule": nf.replan.Cusum,
        "single_day": nf.replan.SingleDay,
        "periodic": nf.replan.Periodic,
    }
    for kind, make in rules.items():
        again = nf.replan.replay(make(**at_52[kind]["settings"]), costs)
        assert (again.replans, round(again.regret)) == (at_52[kind]["replans"], at_52[kind]["regret"])


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "how-to" / "replan.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    exec(compile(example, "replan.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("True")
