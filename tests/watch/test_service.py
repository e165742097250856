"""The plan in service, and the rule that replaces it: a replay of the stream, live."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_problem
from sentences import check_refusal
from watching import ARMS, Watched, arms

import normalfan as nf
from normalfan.array_files import pack_arrays, unpack_arrays
from normalfan.replan import Accumulated, Cusum, Periodic, SingleDay
from normalfan.replan.rules import parse_rule
from normalfan.watch import Watcher, open_journal
from normalfan.watch.journal import read_progress

RULES = (Accumulated(1.9713), Cusum(1.4871, 0.4), SingleDay(1.2), SingleDay(0.0), Periodic(1), Periodic(3))
"""No sum of round prices meets these thresholds: where one does, the last bit of a price decides."""


def services(watched: Watched) -> list[dict[str, Any]]:
    return [record["service"] for record in watched.records]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(RULES), st.sampled_from(["before", "after"]))
def test_a_live_rule_is_a_replay_of_the_stream(seed: int, rule: Any, known: Any) -> None:
    rng = np.random.default_rng(seed)
    rounds = int(rng.integers(2, 25))
    problem = random_problem(rng, rounds=rounds)
    mdp = problem.mdp(str(rng.choice(problem.kinds())))
    losses = problem.losses + rng.choice([0.0, 1e-13, 0.3]) * rng.normal(size=problem.losses.shape)
    if rng.random() < 0.5:  # actions that are not allowed, others in every round
        losses[..., 1:][rng.random(losses[..., 1:].shape) < 0.4] = np.inf
    lines = [{"round": t, "loss": loss.tolist()} for t, loss in enumerate(losses)]
    alone, together = (Watched(mdp, lines, rule=rule, known=known, pauses=pauses) for pauses in (False, True))
    assert b"".join(together.output) == b"".join(alone.output)
    shown = services(alone)
    costs = nf.replan.holding_costs(mdp, losses, known=known, reading="face")
    schedule = nf.replan.replay(rule, costs)
    asked = [t for t, one in enumerate(shown) if one["replan"]]
    first = costs.first_round
    # Known after, a re-plan asked for in the last round would serve none of these.
    assert [t for t in asked if t < rounds - first] == list(schedule.days)
    assert [one["price"] for one in shown[first:]] == pytest.approx(schedule.regrets.tolist(), abs=1e-12)
    for t, one in enumerate(shown):
        serving = [a for a in asked if (a <= t if known == "before" else a < t)]
        assert one["since"] == max([0, *serving])
        spent = [shown[k]["price"] for k in range(t + 1) if shown[k]["since"] == one["since"]]
        assert one["cost"] == pytest.approx(math.fsum(spent), abs=1e-12)
        assert ("replaced" in one) == (one["replan"] and known == "before")
    assert alone.tally.replans == alone.tally.progress.service.replans == len(asked)
    assert len(alone.alarms) == len(asked)


def test_the_price_in_service_is_that_of_the_best_plan_that_was_optimal_then(
    rng: np.random.Generator,
) -> None:
    """By enumeration of all plans of a problem with ties."""
    mdp = nf.MDP(rng.integers(0, 3, size=(2, 3, 2)), 0)
    losses = rng.integers(0, 3, size=(30, *mdp.shape)).astype(float)
    plans = [
        nf.occupancy(mdp, np.eye(2)[np.reshape(actions, (2, 3))]) for actions in product(range(2), repeat=6)
    ]
    values = np.array([[float((plan * loss).sum()) for plan in plans] for loss in losses])
    lines = [{"round": t, "loss": loss.tolist()} for t, loss in enumerate(losses)]
    shown = services(Watched(mdp, lines, rule=Accumulated(4.0), pauses=True))
    assert 2 < sum(one["replan"] for one in shown) < 20
    for t, one in enumerate(shown):
        was_optimal = values[one["since"]] <= values[one["since"]].min() + 1e-9
        assert one["price"] == pytest.approx(values[t][was_optimal].min() - values[t].min(), abs=1e-9)


def test_a_re_plan_is_in_the_record_and_announced_with_its_reason() -> None:
    lines = [arms(3, 0, 5), arms(4, 3, 1), arms(5, 0, 1), arms(6, 7, 5.5), arms(8, 7, 5)]
    watched = Watched(ARMS, lines, rule=Accumulated(3), unit="$")
    replaced = {"since": 3, "price": 1.5, "cost": 2}
    assert services(watched) == [
        {"since": 3, "price": 0, "cost": 0, "replan": False},
        {"since": 3, "price": 2, "cost": 2, "replan": False},
        {"since": 3, "price": 0, "cost": 2, "replan": False},
        {"since": 6, "price": 0, "cost": 0, "replan": True, "replaced": replaced},
        {"since": 6, "price": 0, "cost": 0, "replan": False},
    ]
    sentence = "re-plan now: in round 6 the plan of round 3 {} $1.5; it has cost {} since it entered service"
    assert watched.alarms == [sentence.format("would cost", "$2")]
    after = Watched(ARMS, lines, rule=Accumulated(3), unit="$", known="after")
    assert services(after)[3] == {"since": 3, "price": 1.5, "cost": 3.5, "replan": True}
    assert services(after)[4]["since"] == 6
    assert after.alarms == [sentence.format("cost", "$3.5")]
    assert "service" not in Watched(ARMS, lines).records[0]
    check_refusal(lambda: Watched(ARMS, lines, rule=Accumulated(3), known="never"), "known is 'never'")


def test_a_line_that_the_plan_in_service_cannot_pay_for_is_refused_alone() -> None:
    """Its price against the round before is finite; against the plan in service it is not."""
    two = nf.MDP(np.array([[0, 0]]), 0, horizon=2)
    losses = [[0.0, 1.0], [1.0, 0.0], [0.5e308, 0.0], [1e308, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]
    lines = [{"round": t, "loss": [[loss]] * 2} for t, loss in enumerate(losses)]
    assert not Watched(two, lines[:4]).errors
    alone, together = (Watched(two, lines, rule=Accumulated(1.5e308), pauses=on) for on in (False, True))
    assert b"".join(together.output) == b"".join(alone.output)
    assert [error["line"] for error in alone.errors] == [4]
    assert "plan of round 0 add up beyond the range of float64 by round 3" in alone.errors[0]["error"]
    assert [record["round"] for record in alone.records] == [0, 1, 2, 4, 5, 6]
    assert [record["since"] for record in alone.records] == [None, 0, 1, 2, 4, 5]
    assert [one["cost"] for one in services(alone)][-1] == pytest.approx(1e308)
    assert alone.records[-1]["total"] == math.fsum(record["price"] for record in alone.records)
    many = [arms(0, 0, 1), *(arms(t, 1e308, 0) for t in range(1, 4))]
    watched = Watched(ARMS, many, rule=Cusum(1.7e308, 1e308))
    assert [error["line"] for error in watched.errors] == [3, 4]
    assert "add up beyond" in watched.errors[0]["error"]


def watch(folder: Path, lines: list[dict[str, Any]], **options: Any) -> None:
    with open_journal(ARMS, folder / "state", folder / "out") as journal:
        Watcher(journal.monitor, journal.commit, progress=journal.progress, **options).run(
            [json.dumps(line).encode() for line in lines]
        )


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("known", ["before", "after"])
def test_a_stored_run_goes_on_as_if_never_stopped(
    rule: Any, known: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    lines = [arms(t, *pair) for t, pair in enumerate(rng.normal(size=(20, 2)).tolist())]
    for line in lines:
        watch(tmp_path, [line], rule=rule, known=known)
    whole = Watched(ARMS, lines, rule=rule, known=known)
    assert (tmp_path / "out").read_bytes() == b"".join(whole.output)
    stored, expected = read_progress(tmp_path / "state").service, whole.tally.progress.service
    assert stored == expected
    assert np.array_equal(stored.loss, expected.loss)


def test_a_state_of_another_rule_is_refused_and_one_without_still_loads(tmp_path: Path) -> None:
    watch(tmp_path, [arms(0, 0, 1)])
    watch(tmp_path, [arms(1, 0, 1)])
    assert read_progress(tmp_path / "state").service is None
    check_refusal(lambda: watch(tmp_path, [], rule=Periodic(2)), "the rule is periodic:2 and was none")
    other = tmp_path / "other"
    other.mkdir()
    watch(other, [arms(0, 0, 1)], rule=Accumulated(200))
    before = (other / "state").read_bytes()
    check_refusal(lambda: watch(other, []), "the rule is none and was accumulated:200")
    check_refusal(lambda: watch(other, [], rule=Accumulated(201)), "accumulated:201 and was accumulated:200")
    check_refusal(
        lambda: watch(other, [], rule=Accumulated(200), known="after"), "accumulated:200, known after and was"
    )
    assert (other / "state").read_bytes() == before
    watch(other, [], rule=parse_rule("accumulated:2e2"))


def test_a_plan_in_service_that_no_watch_wrote_is_refused(tmp_path: Path) -> None:
    watch(tmp_path, [arms(0, 0, 1), arms(1, 0, 1)], rule=Accumulated(2))
    good = unpack_arrays((tmp_path / "state").read_bytes(), "state")
    text = np.array("text")
    for name, values in {
        "service_since": (text, None, np.array([0])),
        "service_loss": (text, None, np.zeros((1, 1, 3)), np.full((1, 1, 2), np.nan)),
        "service_rule": (np.array(7), np.array("periodic:2"), None),
        "service_cost": (text, None, np.array(-1.0), np.array(np.inf)),
        "service_age": (text, None, np.array(-1)),
        "service_memory": (text, None, np.array(np.nan)),
        "service_replans": (text, None, np.array(-1)),
    }.items():
        for value in values:
            changed = {key: array for key, array in good.items() if key != name}
            if value is not None:
                changed[name] = value
            (tmp_path / "state").write_bytes(pack_arrays(changed))
            check_refusal(lambda: watch(tmp_path, [], rule=Accumulated(2)), "")
