"""`normalfan range`: ends by enumeration and by prices, in words and numbers, on the page and in a watch."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import call
from watching import Watched

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.watch.metrics import exposition

SHOP = """state,action,next_state,probability
open,sell,open,0.9
open,sell,closed,0.1
open,wait,open,1
"""
PRICES = "round,price,effort,rent\n1,4,1,5\n2,5,1,5\n3,0,1,5\n"
WORK = """feature,state,action,value
price,open,sell,-1
effort,open,sell,1
rent,open,sell,1
rent,open,wait,1
rent,closed,sell,1
rent,closed,wait,1
"""
REWARD = WORK.replace(",-1", ",x").replace(",1", ",-1").replace(",x", ",1")
FILES = {"shop.csv": SHOP, "prices.csv": PRICES, "work.csv": WORK, "reward.csv": REWARD}
OPTIONS = ("--start", "open", "--horizon", 2, "--features", "work.csv")
SIDES = ("from", "to")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def battery(folder: Path) -> tuple[nf.MDP, nf.FactoredLosses]:
    """Three days of a battery with nine levels, as files."""
    market, small = ercot_prices(), Battery(levels=9)
    mdp, losses = small.mdp(), small.losses(market.prices[44:47], round_names=market.dates[44:47])
    nf.io.save_mdp(mdp, folder / "model.npz")
    nf.io.save_losses(losses, mdp, folder / "days.csv", features=folder / "features.csv")
    return mdp, losses


BATTERY = ("model.npz", "days.csv", "--features", "features.csv")


def asked(*arguments: object) -> dict[str, Any]:
    answer = call("range", *arguments, "--json")
    assert answer.code == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def said(*arguments: object) -> str:
    answer = call("range", *arguments)
    assert answer.code == 0, answer.err
    assert not re.search(r"\b(inf|nan|null|None)\b|e\+\d", answer.out), answer.out
    return answer.out


def ends_by_enumeration(theta: np.ndarray, tolerance: float) -> np.ndarray:
    """[K, 2]: every plan of the shop is a line; the plan of today is the first with the least loss."""
    mdp = nf.io.load_mdp("shop.csv", start="open", horizon=2)
    losses = nf.io.open_losses("prices.csv", mdp, features="work.csv")
    plans = []
    for actions in product(range(2), repeat=3):  # open; open and closed
        policy = np.zeros(mdp.shape)
        for (h, s), a in zip([(0, 0), (1, 0), (1, 1)], actions, strict=True):
            policy[h, s, a] = 1.0
        policy[0, 1, 0] = 1.0
        plans.append(losses.features @ nf.occupancy(mdp, policy).reshape(-1))  # type: ignore[attr-defined]
    x = np.array(plans)
    own = x[(x @ theta).argmin()]
    ends = np.empty((3, 2))
    for k, j in product(range(3), range(2)):
        rises = (2 * j - 1) * (own - x)[:, k]
        ways = [
            (tolerance - gap) / rise for gap, rise in zip((own - x) @ theta, rises, strict=True) if rise > 0
        ]
        ends[k, j] = theta[k] + (2 * j - 1) * min(ways, default=np.inf)
    return ends


@pytest.mark.parametrize("at", ["1", "2", "3"])
@pytest.mark.parametrize("tolerance", ["0", "0.5", "10%"])
def test_ends_are_those_of_enumeration(at: str, tolerance: str) -> None:
    document = asked("shop.csv", "prices.csv", *OPTIONS, "--at", at, "--tolerance", tolerance)
    theta = np.array([[4.0, 1, 5], [5, 1, 5], [0, 1, 5]])[int(at) - 1]
    allowed = 0.1 * abs(document["value"]) if "%" in tolerance else float(tolerance)
    assert document["tolerance"] == pytest.approx(allowed)
    for name, cost in (("optimal", 0.0), ("within", allowed)):
        got = [[entry[f"{name}_{side}"] for side in SIDES] for entry in document["ranges"]]
        expected = ends_by_enumeration(theta, cost)
        assert np.isinf(expected).tolist() == [[end is None for end in ends] for ends in got]
        for ends, right in zip(got, expected, strict=True):
            for end, exact in zip(ends, right, strict=True):
                assert end is None or end == pytest.approx(exact, abs=1e-12)


def test_beyond_an_end_the_plan_costs_more_and_before_it_does_not(battery: Any) -> None:
    mdp, losses = battery
    document = asked(*BATTERY, "--at", "2021-02-15", "--tolerance", "1 %")
    theta = losses.coefficients[losses.round_names.index("2021-02-15")]
    rounds, outside = [theta], []
    for k, entry in enumerate(document["ranges"]):
        for side in SIDES:
            if (end := entry[f"within_{side}"]) is not None:
                for factor in (0.999999, 1.000001):
                    moved = theta.copy()
                    moved[k] += factor * (end - theta[k])
                    rounds += [moved, theta]  # a price is against the round before
                    outside.append(factor > 1)
    motion = nf.price_stream(mdp, nf.FactoredLosses(rounds, losses.features))
    assert (motion.prices[1::2] > document["tolerance"]).tolist() == outside
    assert len(outside) > 60
    radius = document["radius"]
    worst = theta + 1.001 * np.array(list(radius["worst"].values()))
    assert nf.price_stream(mdp, nf.FactoredLosses([theta, worst], losses.features)).total > 0
    assert 0 < radius["lower"] <= radius["upper"] < 0.1


def test_the_document(battery: Any) -> None:
    document = asked(*BATTERY)
    assert list(document) == ["round", "value", "tolerance", "radius", "ranges"]
    assert document["round"] == "2021-02-16"
    assert list(document["radius"]) == ["lower", "upper", "exact", "worst"]
    assert list(document["radius"]["worst"]) == list(battery[1].feature_names)
    assert [entry["feature"] for entry in document["ranges"]] == list(battery[1].feature_names)
    for entry in document["ranges"]:
        assert list(entry) == [
            *("feature", "now", "exposure_least", "exposure_most", "optimal_from", "optimal_to"),
            *("within_from", "within_to", "matters", "optimal", "within", "below", "above"),
        ]
        for side, plan in (("from", "below"), ("to", "above")):
            assert (entry[f"within_{side}"] is None) == (entry[plan] is None)


def test_what_is_said() -> None:
    text = " ".join(said("shop.csv", "prices.csv", *OPTIONS, "--at", 2, "--unit", "$").split())
    assert "In round 2 the best plan has an expected loss of $2.4." in text
    assert re.search(
        r"All 3 features may be wrong by ±[\d.]+ % at once before this plan costs more than \$0", text
    )
    assert "one at a time" in text
    assert "no effect" in text
    assert "sell" in text
    zero = " ".join(said("shop.csv", "prices.csv", *OPTIONS, "--at", 1, "--tolerance", 0).split())
    assert "ask with a larger tolerance" in zero
    assert "the 2 that are not 0" in said("shop.csv", "prices.csv", *OPTIONS).lower()
    huge = " ".join(said("shop.csv", "prices.csv", *OPTIONS, "--at", 3, "--tolerance", 1e9).split())
    assert "±" in huge
    same = FILES["work.csv"].split("rent", 1)[0].split("price")[0] + "rent,open,sell,1\nrent,open,wait,1\n"
    Path("same.csv").write_text(same)
    Path("rents.csv").write_text("round,rent\n1,5\n")
    free = said("shop.csv", "rents.csv", *OPTIONS[:4], "--features", "same.csv", "--horizon", 1)
    assert "However wrong all 1 feature may be" in " ".join(free.split())


def test_rewards_stay_rewards() -> None:
    losses = asked("shop.csv", "prices.csv", *OPTIONS, "--at", 1)
    rewards = asked(
        "shop.csv", "prices.csv", *OPTIONS[:4], "--features", "reward.csv", "--rewards", "--at", 1
    )
    assert rewards["value"] == -losses["value"]
    for one, other in zip(losses["ranges"], rewards["ranges"], strict=True):
        assert one["exposure_most"] == -other["exposure_least"]
        for name in ("now", "optimal", "within", "below", "above", "within_from", "within_to"):
            assert one[name] == other[name]
    text = said("shop.csv", "prices.csv", *OPTIONS[:4], "--features", "reward.csv", "--rewards", "--at", 1)
    assert "an expected reward of −4.3" in text


@pytest.mark.usefixtures("battery")
def test_files_have_every_range_and_the_list_the_narrowest(folder: Path) -> None:
    every = asked(*BATTERY)["ranges"]
    few = asked(*BATTERY, "--top", 3, "--out", "ranges.csv")["ranges"]
    call("range", *BATTERY, "--out", "ranges.parquet")
    for frame in (pl.read_csv(folder / "ranges.csv"), pl.read_parquet(folder / "ranges.parquet")):
        assert frame["name"].to_list() == [entry["feature"] for entry in every]
        assert frame["within_to"].to_list() == [
            np.inf if entry["within_to"] is None else entry["within_to"] for entry in every
        ]

    def way(entry: dict[str, Any]) -> float:
        ends = [entry[f"within_{side}"] for side in SIDES]
        return min(abs(end / entry["now"] - 1) for end in ends if end is not None)

    ends = [entry for entry in every if (entry["within_from"], entry["within_to"]) != (None, None)]
    assert few == sorted(ends, key=way)[:3]


def test_entries_of_losses_that_are_not_factored(folder: Path) -> None:
    (folder / "days.csv").write_text("round,state,action,loss\n1,open,sell,-3\n2,open,sell,-4\n")
    options = (*OPTIONS[:4], "--default", 0)
    found = asked("shop.csv", "days.csv", *options, "--entries", "--tolerance", 0)["ranges"]
    assert found[0]["feature"] == "0, open, sell"
    assert found[0]["optimal_to"] == pytest.approx(-0.4)  # which is lost if selling closes the shop
    refused = call("range", "shop.csv", "days.csv", *options)
    assert refused.code == 2
    assert "--features FILE" in refused.err
    assert "--entries" in refused.err


def watched(*arguments: str, lines: str) -> str:
    ended = call("watch", "model.npz", "--features", "features.csv", *arguments, stdin=lines)
    assert ended.code == 0, ended.err
    return ended.out


def test_a_watch_says_how_near_the_wall_is_and_repeats_itself_to_the_byte(battery: Any, folder: Path) -> None:
    mdp, losses = battery
    lines = [
        json.dumps({"round": t, "theta": row}) + "\n" for t, row in enumerate(losses.coefficients.tolist())
    ]
    plain = watched("--range", "1 %", lines="".join(lines))
    for t, record in enumerate(map(json.loads, plain.splitlines())):
        found = nf.ranging(mdp, losses, at=t)
        away = np.abs(found.within / found.now[:, None] - 1)
        i, j = np.unravel_index(np.nanargmin(away), away.shape)
        wall = record["wall"]
        assert (wall["feature"], wall["now"]) == (found.names[i], found.now[i])
        assert wall["end"] == pytest.approx(found.within[i, j], rel=1e-9)
        assert wall["share"] == pytest.approx(away[i, j], rel=1e-6)
        assert wall["move"] == wall["end"] - wall["now"]
    kept = ("--range", "1%", "--state", "state.npz", "--out", "out.jsonl")
    watched(*kept, lines="".join(lines[:2]))
    assert "The nearest wall of the last round: price" in watched(*kept, lines="".join(lines))
    assert (folder / "out.jsonl").read_text() == plain
    assert all("wall" not in json.loads(line) for line in watched(lines="".join(lines)).splitlines())


def test_walls_in_memory() -> None:
    arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    features = [[[[1, 0]]], [[[0, 1]]]]
    lines = [
        {"round": 1, "theta": [3, 5]},
        {"round": 2, "theta": [0, 0.1]},
        {"round": 3, "loss": [[[0, 1]]]},
    ]
    seen = Watched(arms, lines, features=features, feature_names=["buy", "make"], tolerance=0.0)
    walls = [record["wall"] for record in seen.records]
    assert walls[0] == {"feature": "make", "now": 5.0, "end": 3.0, "move": -2.0, "share": 0.4}
    assert walls[1] == {"feature": "buy", "now": 0.0, "end": 0.1, "move": 0.1, "share": None}
    assert walls[2] is None
    assert b"wall" not in exposition(seen.tally, "arms")
    near = Watched(arms, lines[:1], features=features, tolerance="0%", rewards=True)
    assert near.records[0]["wall"]["feature"] == "1"  # the best reward is 5, until it is 3
    metrics = exposition(near.tally, "arms").decode()
    assert 'normalfan_watch_wall_move{model="arms"} -2.0' in metrics
    assert 'normalfan_watch_wall_share{model="arms"} 0.4' in metrics
