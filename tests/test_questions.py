"""Four scenarios from files to `--json`, as the documentation runs them, against linear programs."""

from __future__ import annotations

import importlib.util
import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call

import normalfan as nf

PROGRAMS = Path(__file__).parents[1] / "docs" / "tutorials" / "linear_program.py"
specification = importlib.util.spec_from_file_location("linear_program", PROGRAMS)
assert specification is not None
assert specification.loader is not None
programs = importlib.util.module_from_spec(specification)
specification.loader.exec_module(programs)


def asked(*arguments: object) -> dict[str, Any]:
    answer = call(*arguments, "--json")
    assert answer.code == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def prices_of(document: dict[str, Any]) -> list[float]:
    return [entry["price"] for entry in document["rounds"]]


def prices_by_programs(mdp: nf.MDP, losses: np.ndarray) -> list[float]:
    return [0.0, *(programs.price_with_closures(mdp, before, now) for before, now in pairwise(losses))]


def as_arrays(mdp: nf.MDP, losses: nf.LossStream) -> np.ndarray:
    return np.concatenate(list(losses.blocks(mdp.shape, 1000)))


def test_the_battery(tmp_path: Path) -> None:
    assert call("demo", "--export", tmp_path).code == 0
    options = [tmp_path / "model.npz", tmp_path / "prices.csv", "--features", tmp_path / "features.csv"]
    storm = [*options, "--from", "2021-02-13", "--to", "2021-02-18"]
    mdp = nf.io.load_mdp(tmp_path / "model.npz")
    stream = nf.io.open_losses(
        options[1], mdp, features=tmp_path / "features.csv", first="2021-02-13", last="2021-02-18"
    )
    losses = as_arrays(mdp, stream)
    priced = asked("price", *storm)
    best = [programs.least_loss(mdp, loss).fun for loss in losses]
    expected = [
        0.0,
        *(programs.price_by_linear_programs(mdp, before, now) for before, now in pairwise(losses)),
    ]
    assert prices_of(priced) == pytest.approx(expected, abs=1e-6 * np.abs(best).max())
    earned = [abs(entry["value"]) for entry in priced["rounds"]]
    assert earned == pytest.approx(np.abs(best), rel=1e-9)

    schedules = asked("replan", *storm, "--cost", 5000, "--no-detectors")
    costs = nf.replan.holding_costs(mdp, stream)
    cheapest = min(_totals(costs.costs, 5000.0))
    assert schedules["schedules"]["cheapest in hindsight"]["total"] == pytest.approx(cheapest)

    lines = (tmp_path / "prices.jsonl").read_text().splitlines()[43:49]
    rule = ["--features", str(tmp_path / "features.csv"), "--rule", "accumulated:20000"]
    watched = call("watch", tmp_path / "model.npz", *rule, stdin="\n".join(lines) + "\n")
    records = [json.loads(line) for line in watched.out.splitlines()]
    assert watched.code == 4, watched.err
    assert [record["price"] for record in records] == pytest.approx(prices_of(priced), rel=1e-9)
    faces = nf.replan.holding_costs(mdp, stream, reading="face")
    replayed = nf.replan.replay(nf.replan.Accumulated(20000), faces)
    assert sum(record["service"]["replan"] for record in records) == replayed.replans > 0
    # The same by linear programs alone: the plan in service, and when its prices add up to the threshold.
    serving, spent, calls = 0, 0.0, list[int]()
    for t in range(1, len(losses)):
        of_yesterday = serving == t - 1  # which is solved above
        spent += (
            expected[t]
            if of_yesterday
            else programs.price_by_linear_programs(mdp, losses[serving], losses[t])
        )
        if spent >= 20000:
            calls.append(t)
            serving, spent = t, 0.0
    assert [t for t, record in enumerate(records) if record["service"]["replan"]] == calls


def _totals(costs: np.ndarray, cost: float) -> list[float]:
    """Regret and re-plans of every schedule there is: a new plan, or none, on each day but the first."""
    n = len(costs)
    totals = []
    for bits in range(2 ** (n - 1)):
        serving, total = 0, 0.0
        for t in range(n):
            if t and bits >> (t - 1) & 1:
                serving, total = t, total + cost
            total += costs[serving, t]
        totals.append(total)
    return totals


def test_the_inventory(tmp_path: Path) -> None:
    """Stock 0 to 3, orders that fit only, demand 0 or 1; what an item costs moves by week."""
    rows, features = ["state,action,next_state,probability"], ["feature,state,action,value"]
    for stock in range(4):
        for order in range(4 - stock):
            filled = stock + order
            ahead = [(filled - 1, 0.5), (filled, 0.5)] if filled else [(0, 1)]
            rows += [f"{stock},{order},{after},{chance}" for after, chance in ahead]
            features += [f"item,{stock},{order},{order}"] if order else []
            features += [f"rest,{stock},{order},{0.25 * filled + 4 * (filled == 0)}"]
    (tmp_path / "model.csv").write_text("\n".join(rows))
    (tmp_path / "features.csv").write_text("\n".join(features))
    prices = [1, 1.5, 2.5, 4, 6, 3, 1]
    weeks = [f"2026-01-{5 + 3 * t:02},{price},1" for t, price in enumerate(prices)]
    (tmp_path / "weeks.csv").write_text("\n".join(["round,item,rest", *weeks]))
    options = ["--features", tmp_path / "features.csv", "--start", 1, "--horizon", 4]
    mdp = nf.io.load_mdp(tmp_path / "model.csv", start="1", horizon=4)
    loss = np.full((len(prices), *mdp.shape), np.inf)
    for stock in range(4):
        for order in range(4 - stock):
            filled = stock + order
            loss[:, :, stock, order] = (np.array(prices) * order + 0.25 * filled + 4 * (filled == 0))[:, None]
    for against, makers in ((1, [loss[0], *loss[:-1]]), ("first", [loss[0]] * len(loss))):
        document = asked(
            "price", tmp_path / "model.csv", tmp_path / "weeks.csv", *options, "--against", against
        )
        expected = [programs.price_with_closures(mdp, *both) for both in zip(makers, loss, strict=True)]
        assert prices_of(document) == pytest.approx(expected, abs=1e-7)
        assert max(expected) > 0.1
        assert document["summary"]["total"] == pytest.approx(sum(expected), abs=1e-6)


ROADS = """state,action,next_state,probability
home,east,bridge,1
home,north,hill,1
hill,east,mill,1
hill,south,home,1
bridge,east,town,1
bridge,north,mill,1
bridge,west,home,1
mill,south,bridge,1
mill,east,town,1
mill,west,hill,1
"""
MINUTES = {  # of roads by morning: home–bridge, home–hill, hill–mill, bridge–town, bridge–mill, mill–town
    "2026-03-02": (4, 3, 5, 6, 2, 7),
    "2026-03-03": (4, 3, 5, None, 2, 7),
    "2026-03-04": (9, 3, 5, 6, 2, 3),
    "2026-03-05": (None, 3, 5, 6, 2, 7),
    "2026-03-06": (4, 3, 5, None, None, 7),
    "2026-03-09": (4, 3, 5, 6, 2, 7),
}
WAYS = (
    (("home", "east"), ("bridge", "west")),
    (("home", "north"), ("hill", "south")),
    (("hill", "east"), ("mill", "west")),
    (("bridge", "east"),),
    (("bridge", "north"), ("mill", "south")),
    (("mill", "east"),),
)


def test_the_route_with_closed_roads(tmp_path: Path) -> None:
    (tmp_path / "model.csv").write_text(ROADS)
    mdp = nf.io.load_mdp(tmp_path / "model.csv", start="home", horizon=4)
    loss = np.full((len(MINUTES), *mdp.shape), np.inf)
    town = mdp.labels.states.index("town")
    loss[:, :, town] = 0
    rows = ["round,step,state,action,loss"]
    for t, (day, minutes) in enumerate(MINUTES.items()):
        for number, ways in zip(minutes, WAYS, strict=True):
            for state, action in ways:
                arrives = action == "east" and state in ("bridge", "mill")
                for h in range(4):
                    late = 30 * (h == 3 and not arrives)
                    said = "forbidden" if number is None else number + late
                    rows.append(f"{day},{h},{state},{action},{said}")
                    s, a = mdp.labels.states.index(state), mdp.labels.actions.index(action)
                    loss[t, h, s, a] = np.inf if number is None else number + late
    (tmp_path / "minutes.csv").write_text("\n".join(rows))
    files = [tmp_path / "model.csv", tmp_path / "minutes.csv"]
    options = ["--start", "home", "--horizon", 4, "--default", 0]

    priced = asked("price", *files, *options)
    assert prices_of(priced) == pytest.approx(prices_by_programs(mdp, loss), abs=1e-7)
    assert prices_of(priced)[2:5] != [0, 0, 0]
    best = [programs.least_loss(mdp, day).fun for day in loss]
    assert [entry["value"] for entry in priced["rounds"]] == pytest.approx(best, abs=1e-7)
    assert priced["gaps"] == [{"round": "2026-03-09", "since": "2026-03-06"}]
    never = [programs.price_with_closures(mdp, loss[0], day) for day in loss]
    assert prices_of(asked("price", *files, *options, "--against", "first")) == pytest.approx(never, abs=1e-7)
    assert priced["summary"]["never_changed"] == pytest.approx(sum(never), abs=1e-6)

    plan = "state,action\nhome,north\nhill,east\nmill,east\ntown,east\n"
    (tmp_path / "plan.csv").write_text(plan)
    mine = asked("price", *files, *options, "--plan", tmp_path / "plan.csv")
    by_hill = [minutes[1] + minutes[2] + minutes[5] for minutes in MINUTES.values()]  # these are never closed
    assert prices_of(mine) == pytest.approx(np.subtract(by_hill, best), abs=1e-7)

    plans = [
        tied & (tied.cumsum(axis=2) == 1) for tied in (programs.optimal_actions(mdp, day) for day in loss)
    ]
    costs = np.array([[programs.price_of_plan(mdp, plan, day) for day in loss] for plan in plans])
    libraries = asked("replan", *files, *options, "--library", 3)["libraries"]
    for k, found in enumerate(libraries, 1):
        least = min(costs[list(some)].min(axis=0).sum() for some in combinations(range(len(loss)), k))
        assert found["cost"] == pytest.approx(least, abs=1e-6)
    assert libraries[0]["cost"] > 1


def test_the_lake_with_moving_rewards(tmp_path: Path) -> None:
    def reward(fall: float, _state: int, _action: int, next_state: int) -> float:
        return (next_state == 15) - fall * (next_state in (5, 7, 11, 12))

    falls = [0.0, 0.5, 2.0, 0.05, 0.3]
    stream = nf.io.gymnasium_losses("FrozenLake-v1", reward, rounds=falls)
    lake = nf.io.from_gymnasium("FrozenLake-v1", horizon=12)
    nf.io.save_losses(stream, lake, tmp_path / "days.csv")
    document = asked("price", "gym:FrozenLake-v1", tmp_path / "days.csv", "--horizon", 12, "--order", "file")

    import gymnasium

    table = gymnasium.make("FrozenLake-v1").unwrapped.P
    loss = np.zeros((len(falls), *lake.shape))
    for t, fall in enumerate(falls):
        for s in set(range(16)) - {5, 7, 11, 12, 15}:
            for a in range(4):
                loss[t, :, s, a] = -sum(p * reward(fall, s, a, j) for p, j, *_ in table[s][a])
    expected = prices_by_programs(lake, loss)
    assert prices_of(document) == pytest.approx(expected, abs=1e-6)
    assert max(expected) > 1e-3
    best = [-programs.least_loss(lake, day).fun for day in loss]  # rewards stay rewards
    assert [entry["value"] for entry in document["rounds"]] == pytest.approx(best, abs=1e-9)
