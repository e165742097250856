"""`normalfan replan` as a person meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

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
    monkeypatch.setattr("normalfan.cli.replan.detectors_installed", lambda: False)
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
        assert "best in hindsight" in page
        assert "accumulated" in page


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
        (("--cost", "1", "--plans", "mean:0"), "mean:0"),
        (("--cost", "1", "--plans", "mean:x"), "mean:x"),
        (("--cost", "1", "--plans", "best"), "best"),
        (("--cost", "1", "--known", "never"), "known is 'never'"),
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
