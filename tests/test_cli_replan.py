"""`normalfan replan` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

import normalfan as nf
from normalfan import hold
from normalfan.cli.app import app
from test_commands import run

ROOT = Path(__file__).parents[1]


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


def replan(folder: Path, *options: str) -> tuple[int, str, str]:
    """In this process, which is quicker; refusals, which end the process, are tested in one of their own."""
    arguments = ["replan", str(folder / "arms.npz"), str(folder / "days.npz"), *options]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("known", ["before", "after"])
@pytest.mark.parametrize("plans", ["last", "mean:3"])
def test_json_says_what_python_says(folder: Path, known: str, plans: str) -> None:
    options = ["--cost", "2", "--no-detectors", "--known", known, "--plans", plans, "--json"]
    code, out, _ = replan(folder, *options)
    assert code == 0
    document = json.loads(out)
    mdp = nf.io.load_mdp(folder / "arms.npz")
    losses = nf.io.open_losses(folder / "days.npz", mdp)
    window = 1 if plans == "last" else 3
    costs = hold.holding_costs(mdp, losses, window=window, known=known)
    best = hold.cheapest_schedule(costs, 2.0)
    told = document["schedules"]["cheapest in hindsight"]
    assert told["rounds"] == [f"day {t + costs.first_round}" for t in best.days]
    assert told["total"] == pytest.approx(best.total(2.0))
    rule = hold.replay(hold.Accumulated(2.0), costs)
    assert document["schedules"]["accumulated"]["replans"] == rule.replans
    assert document["least_regrets"] == pytest.approx(hold.least_regrets(costs).tolist())
    assert (document["plans"], document["known"], document["days"]) == (plans, known, costs.n_days)
    for row in document["within"]:
        assert all(best["replans"] <= row["replans"] for best in row["families"].values())
        assert all(best["regret"] >= row["least_regret"] - 1e-9 for best in row["families"].values())


def test_tables_and_detectors(folder: Path) -> None:
    code, out, err = replan(folder, "--cost", "2")
    assert code == 0
    assert not err
    for word in (
        "cheapest in hindsight",
        "re-plan on day",
        "Page-Hinkley",
        "KSWIN",
        "ADWIN",
        "picked in hindsight",
    ):
        assert word in " ".join(out.split()), word


def test_without_river_the_curve_comes_without_detectors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normalfan.cli.replan.detectors_installed", lambda: False)
    code, out, err = replan(folder, "--cost", "2")
    assert code == 0
    assert "normalfan[compare]" in err
    assert "ADWIN" not in out
    assert "periodic" in out


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_days_are_written(folder: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"days{suffix}"
    code, out, _ = replan(folder, "--cost", "2", "--no-detectors", "--json", "--out", str(target))
    assert code == 0
    frame = polars.read_csv(target) if suffix == ".csv" else polars.read_parquet(target)
    assert frame["round"].to_list() == [f"day {t}" for t in range(40)]
    for name, told in json.loads(out)["schedules"].items():
        assert frame[f"{name}: regret"].sum() == pytest.approx(told["regret"])
        assert frame.filter(polars.col(f"{name}: re-plan"))["round"].to_list() == told["rounds"]


@pytest.mark.parametrize(
    ("suffix", "opening"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".html", b"<!doctype html>")]
)
def test_figures_are_drawn(folder: Path, tmp_path: Path, suffix: str, opening: bytes) -> None:
    target = tmp_path / f"curve{suffix}"
    code, _, _ = replan(folder, "--cost", "2", "--no-detectors", "--figure", str(target))
    assert code == 0
    assert target.read_bytes().startswith(opening)
    if suffix == ".html":
        page = target.read_text()
        assert "best in hindsight" in page
        assert "accumulated" in page


def test_a_stream_that_never_moves(tmp_path: Path) -> None:
    """Nothing to gain: no re-plan in hindsight, and pictures and sweeps that survive it."""
    nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), initial=0, horizon=1), tmp_path / "arms.npz")
    np.save(tmp_path / "days.npy", np.tile([0.0, 1.0], (9, 1)).reshape(9, 1, 1, 2))
    arguments = ["replan", str(tmp_path / "arms.npz"), str(tmp_path / "days.npy"), "--cost", "1", "--json"]
    target = tmp_path / "flat.png"
    result = CliRunner().invoke(app, [*arguments, "--figure", str(target)], catch_exceptions=False)
    assert json.loads(result.stdout)["schedules"]["cheapest in hindsight"]["replans"] == 0
    assert target.exists()


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(app, ["replan", "--help"])
    assert "Example:  normalfan replan" in result.stdout


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
def test_bad_input_raises_a_sentence_before_anything_is_written(
    folder: Path, options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(nf.InputError, match=r", but .*: ") as caught:
        replan(folder, *options)
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_bad_input_ends_the_process_with_two(folder: Path) -> None:
    result = run("replan", str(folder / "arms.npz"), str(folder / "days.npz"), "--cost", "-1")
    assert result.returncode == 2
    assert result.stderr.startswith("normalfan: cost is -1.0, but")
    assert not result.stdout


def test_the_page_shows_the_numbers_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from replan_tables import with_tables

    document = json.loads((ROOT / "benchmarks" / "replan.json").read_text())
    page = (ROOT / "docs" / "replan.md").read_text()
    assert with_tables(page, document) == page
    at_52 = document["cases"][0]["budgets"][2]
    assert at_52["replans_at_most"] == 52
    for kind in ("price_rule", "detector", "periodic"):
        assert f"{at_52[kind]['regret']:,} ({at_52[kind]['replans']})" in page


def test_the_measured_numbers_are_those_of_the_package() -> None:
    """The settings that the page quotes at 52 re-plans, run again."""
    from normalfan.environments.battery import Battery
    from normalfan.environments.ercot import ercot_prices

    battery = Battery()
    costs = hold.holding_costs(battery.mdp(), battery.losses(ercot_prices().prices))
    document = json.loads((ROOT / "benchmarks" / "replan.json").read_text())
    at_52 = document["cases"][0]["budgets"][2]
    assert round(hold.least_regrets(costs, 52)[52]) == at_52["hindsight"]
    rules = {
        "price_rule": hold.Cusum,
        "single_day": hold.SingleDay,
        "periodic": hold.Periodic,
    }
    for kind, make in rules.items():
        again = hold.replay(make(**at_52[kind]["settings"]), costs)
        assert (again.replans, round(again.regret)) == (at_52[kind]["replans"], at_52[kind]["regret"])


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "replan.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    exec(compile(example, "replan.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("True")
