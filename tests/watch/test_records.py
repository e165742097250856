"""Lines in and lines out: what is read, what is refused, what a record says."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentences import check_refusal
from watching import ARMS, Watched, arms

import normalfan as nf
from normalfan.battery import Battery
from normalfan.problem.mdp import Labels
from normalfan.watch import AlarmRule


def test_coefficients_equal_factored_losses_to_the_bit(rng: np.random.Generator) -> None:
    battery = Battery()
    mdp, losses = battery.mdp(), battery.losses(rng.normal(40, 20, size=(12, 24)))
    motion = nf.price_stream(mdp, losses)
    names = [*battery.mdp().labels.steps, "wear"]
    features = {"features": battery.features(), "feature_names": names}
    for by_name in (False, True):
        thetas = [
            dict(zip(names, theta, strict=True)) if by_name else theta
            for theta in losses.coefficients.tolist()
        ]
        lines = [{"round": t, "theta": theta} for t, theta in enumerate(thetas)]
        watched = Watched(mdp, lines, **features)
        assert [record["price"] for record in watched.records] == motion.prices.tolist()
        assert [record["value"] for record in watched.records] == motion.values.tolist()


def test_a_record_says_in_words_where_most_is_paid() -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, 2, labels=Labels(("dawn", "dusk"), ("home",), ("a", "b")))
    old = [[[0.0, 9.0]], [[0.0, 9.0]]]
    new = [[[1.0, 0.0]], [[5.0, 2.0]]]
    watched = Watched(mdp, [{"round": 3, "loss": old}, {"round": 8, "loss": new}])
    first, second = watched.records
    assert first["costliest"] is None
    assert first["since"] is None
    assert second["since"] == 3
    assert second["price"] == 4
    assert second["by_step"] == [1, 3]
    assert second["costliest"] == {
        "step": "dusk",
        "state": "home",
        "action": "a",
        "best_action": "b",
        "price": 3,
    }


def test_the_page_explains_every_key_and_its_lines_are_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "watch.md").read_text()
    watched = Watched(ARMS, [arms(1, 0, 1), arms(2, 1, 0)], rules=[AlarmRule.parse("crossed")])
    explained = {key.removeprefix("variation") for key in re.findall(r"`(\w+)`", page)}
    assert {key.removeprefix("variation") for key in watched.records[1]} <= explained
    (examples,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=1)
    watched = Watched(
        mdp,
        [line.encode() for line in examples.splitlines()],
        features=np.eye(2, 4).reshape(2, 1, 2, 2),
        feature_names=("power", "wear"),
    )
    assert [record["round"] for record in watched.records] == [7, 8, 9]


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{round: 7}", "cannot be read as JSON"),
    "half a line": (b'{"round": 7, "loss": [[[0', "cannot be read as JSON"),
    "not UTF-8": (b'{"round": 7, "\xff": 1}', "cannot be read as JSON"),
    "too deep": (b"[" * 100_000, "cannot be read as JSON"),
    "no object": (b"[1, 2]", "JSON list"),
    "no round": (b'{"loss": [[[0, 1]]]}', "'loss'"),
    "no loss": (b'{"round": 7}', "'round'"),
    "empty": (b"{}", "nothing"),
    "unknown key": (b'{"round": 7, "loss": [[[0, 1]]], "date": "today"}', "'date'"),
    "loss and theta": (b'{"round": 7, "loss": [[[0, 1]]], "theta": [1]}', "'theta'"),
    "text as round": (b'{"round": "7", "loss": [[[0, 1]]]}', 'round is "7"'),
    "fractional round": (b'{"round": 7.5, "loss": [[[0, 1]]]}', "round is 7.5"),
    "true as round": (b'{"round": true, "loss": [[[0, 1]]]}', "round is true"),
    "enormous round": (b'{"round": 99999999999999999999, "loss": [[[0, 1]]]}', "99999999999999999999"),
    "wrong shape": (b'{"round": 7, "loss": [[0, 1]]}', "[1, 2]"),
    "ragged": (b'{"round": 7, "loss": [[[0], [0, 1]]]}', "different lengths"),
    "NaN": (b'{"round": 7, "loss": [[[0, NaN]]]}', "[0, 0, 1] is nan"),
    "infinity": (b'{"round": 7, "loss": [[[-Infinity, 0]]]}', "[0, 0, 0] is -inf"),
    "beyond floats": (b'{"round": 7, "loss": [[[1e999, 0]]]}', "1e999 is beyond the range of float64"),
    "no action is allowed": (b'{"round": 7, "reward": [[[-Infinity, -Infinity]]]}', "of round 7"),
    "an infinite reward": (b'{"round": 7, "reward": [[[Infinity, 0]]]}', "[0, 0, 0] is -inf"),
    "null": (b'{"round": 7, "loss": [[[0, null]]]}', "other than numbers"),
    "text": (b'{"round": 7, "loss": [[[0, "1"]]]}', "other than numbers"),
    "flags": (b'{"round": 7, "loss": [[[false, true]]]}', "other than numbers"),
    "theta without features": (b'{"round": 7, "theta": [1]}', "--features"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_gets_an_error_record_and_the_stream_goes_on(case: str) -> None:
    line, where = BAD_LINES[case]
    watched = Watched(ARMS, [arms(6, 0, 1), line, arms(8, 3, 1)])
    (error,) = watched.errors
    assert error["line"] == 2
    assert where in error["error"]
    assert re.fullmatch(r"[^\n]*, but [^\n]*: [^\n]*\.", error["error"]), error
    assert [(r["round"], r["since"], r["price"]) for r in watched.records] == [(6, None, 0), (8, 6, 2)]
    assert watched.tally.bad_lines == 1
    check_refusal(lambda: Watched(ARMS, [arms(6, 0, 1), line], strict=True), "line 2: ")


def test_losses_that_overflow_are_a_bad_line_that_names_its_round() -> None:
    two = nf.MDP(np.array([[0, 0]]), 0, horizon=2)
    huge = [[[1e308, 1e308]]] * 2
    watched = Watched(two, [{"round": 70, "loss": huge}, {"round": 71, "loss": [[[0, 1]]] * 2}])
    assert "round 70" in watched.errors[0]["error"]
    assert [record["since"] for record in watched.records] == [None]


@pytest.mark.parametrize(
    ("theta", "where"),
    [
        ([1.0], "[1]"),
        ([[1.0, 2.0]], "[1, 2]"),
        ([1.0, math.nan], "round 7[1] is nan"),
        ({"sun": 1.0}, "lacks 'wind'"),
        ({"sun": 1.0, "wind": 2.0, "rain": 3.0}, "has 'rain'"),
    ],
)
def test_bad_coefficients(theta: Any, where: str) -> None:
    features, names = np.ones((2, 1, 1, 2)), ("sun", "wind")
    watched = Watched(ARMS, [{"round": 7, "theta": theta}], features=features, feature_names=names)
    assert where in watched.errors[0]["error"]


def test_features_of_another_problem_are_refused_before_the_first_line() -> None:
    check_refusal(lambda: Watched(ARMS, [], features=np.ones((2, 1, 3, 2))), "6 entries")


def test_an_action_that_is_not_allowed_is_never_the_best_one() -> None:
    forbidden = nf.MDP(np.array([[0, 0, 0]]), 0, horizon=1, allowed=[[True, True, False]])
    for key, worst in (("loss", math.inf), ("reward", -math.inf)):
        sign = 1 if key == "loss" else -1
        lines = [{"round": 0, key: [[[0, 3 * sign, -9 * sign]]]}, {"round": 1, key: [[[worst, 2 * sign, 0]]]}]
        watched = Watched(forbidden, lines, rule=nf.replan.Accumulated(5))
        assert [record["value"] for record in watched.records] == [0, 2 * sign]
        assert [record["price"] for record in watched.records] == [0, 0]  # the best that is allowed
