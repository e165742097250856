"""Rules that do not see ahead: what they promise, and that they do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from holding import ageing_costs, random_costs
from sentences import check_refusal

from normalfan import replan
from normalfan.replan.curve import Point
from normalfan.replan.rules import detector_families, parse_rule

RULES: list[replan.Rule] = [
    replan.Accumulated(6.0),
    replan.Cusum(4.0, 1.5),
    replan.SingleDay(3.0),
    replan.Periodic(4),
    replan.Drift("PageHinkley", (("threshold", 3.0), ("min_instances", 1)), restart=True),
    replan.Drift("PageHinkley", (("threshold", 1.0), ("min_instances", 1)), logarithm=True),
    replan.Drift("ADWIN", (("delta", 0.9), ("clock", 1), ("grace_period", 2))),
    replan.Drift("KSWIN", (("alpha", 0.1), ("window_size", 12), ("stat_size", 4), ("seed", 0))),
]


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("known", ["before", "after"])
def test_ski_rental_against_the_cheapest_schedule_where_plans_age(seed: int, known: str) -> None:
    rng = np.random.default_rng(seed)
    costs = ageing_costs(rng, int(rng.integers(2, 30)), known)
    cost = float(rng.choice([0.1, 0.5, 1.0, 3.0, 10.0]))
    spent = replan.replay(replan.Accumulated(cost), costs).total(cost)
    least = replan.cheapest_schedule(costs, cost).total(cost)
    most = float(np.nanmax(costs.costs))
    factor = 2.0 if known == "before" else 2.0 + most / cost
    assert spent <= factor * least + 1e-9


def test_the_factor_two_is_approached() -> None:
    """The rule re-plans on even days, one day too late each time: an odd day's plan serves for two."""
    n_days, cost = 41, 1.0
    plan, day = np.indices((n_days, n_days))
    costs = np.where(plan < day - (day % 2 == 0), 0.99, 0.0)
    costs[np.tril_indices(n_days, -1)] = np.nan
    days = replan.HoldingCosts(costs, np.zeros(n_days), "before", 1)
    rule, best = replan.replay(replan.Accumulated(cost), days), replan.cheapest_schedule(days, cost)
    assert rule.days == tuple(range(2, n_days, 2))
    assert best.days == tuple(range(1, n_days, 2))
    assert 1.98 < rule.total(cost) / best.total(cost) <= 2.0


def test_no_factor_holds_where_old_plans_become_good_again() -> None:
    for n_days in (10, 40):
        costs = np.diag(np.full(n_days - 1, 1.0), 1)
        costs[np.tril_indices(n_days, -1)] = np.nan
        days = replan.HoldingCosts(costs, np.zeros(n_days), "before", 1)
        assert replan.replay(replan.Accumulated(1.0), days).total(1.0) == n_days - 1
        assert replan.cheapest_schedule(days, 1.0).total(1.0) == 1.0


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("known", ["before", "after"])
def test_regret_is_bounded_by_what_re_planning_cost(seed: int, known: str) -> None:
    rng = np.random.default_rng(seed)
    costs = random_costs(rng, 25, known)
    for cost in (0.5, 3.0, 12.0):
        run = replan.replay(replan.Accumulated(cost), costs)
        overshoot = 0.0 if known == "before" else float(np.nanmax(costs.costs))
        assert run.regret < (run.replans + 1) * (cost + overshoot)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}")
@pytest.mark.parametrize("known", ["before", "after"])
def test_nothing_is_decided_by_what_is_not_known(rule: replan.Rule, known: str) -> None:
    """Change all prices of days that are not known yet: earlier decisions stay."""
    rng = np.random.default_rng(11)
    changed_later = False
    for _ in range(3):
        costs = random_costs(rng, 60, known)
        for day in (5, 20, 40):
            # Deciding about `day`: known before, its own price is seen; known after, it is not.
            first_unknown = day + 1 if known == "before" else day
            other = np.array(costs.costs)
            other[:, first_unknown:] += rng.integers(0, 9, size=(60, 60 - first_unknown))
            changed = replan.HoldingCosts(other, costs.values, costs.known, 1)
            was, now = (replan.replay(rule, c).days for c in (costs, changed))
            assert [d for d in was if d <= day] == [d for d in now if d <= day]
            changed_later |= was != now
    assert changed_later or isinstance(rule, replan.Periodic)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}")
def test_rules_remember_nothing_between_runs(rule: replan.Rule) -> None:
    steady = random_costs(np.random.default_rng(2), 80)
    drifting = steady.costs + 3 * (np.arange(80) // 16)
    costs = replan.HoldingCosts(drifting, steady.values, "before", 1)
    assert replan.replay(rule, costs).days == replan.replay(rule, costs).days
    assert replan.replay(rule, costs).days, "a rule that never re-plans tests nothing"


def test_each_rule_by_hand() -> None:
    prices = [1.0, 0.0, 2.0, 0.5, 0.5, 4.0]

    def said(rule: replan.Rule) -> list[bool]:
        decide = rule.decide()
        return [decide(price) for price in prices]

    assert said(replan.Accumulated(3.0)) == [False, False, True, False, False, True]
    assert said(replan.Accumulated(0.0)) == [True, False, True, True, True, True]
    assert said(replan.Cusum(1.5, 0.5)) == [False, False, True, False, False, True]
    assert said(replan.Cusum(1.7, 0.5)) == [False, False, False, False, False, True]
    assert said(replan.SingleDay(2.0)) == [False, False, True, False, False, True]
    assert said(replan.Periodic(4)) == [False, False, False, True, False, False]


def test_today_is_avoided_only_if_known_before() -> None:
    costs = np.array([[0.0, 5.0, 5.0], [np.nan, 0.0, 1.0], [np.nan, np.nan, 0.0]])
    before = replan.HoldingCosts(costs, np.zeros(3), "before", 1)
    after = replan.HoldingCosts(costs, np.zeros(3), "after", 1)
    assert replan.replay(replan.Accumulated(5.0), before).regrets.tolist() == [0.0, 0.0, 1.0]
    assert replan.replay(replan.Accumulated(5.0), after).regrets.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize(
    ("provoke", "where"),
    [
        (lambda: replan.Accumulated(-1.0), "Accumulated.threshold is -1.0"),
        (lambda: replan.Cusum(1.0, float("nan")), "Cusum.allowance is nan"),
        (lambda: replan.SingleDay(float("inf")), "SingleDay.threshold is inf"),
        (lambda: replan.Periodic(0), "Periodic.days is 0"),
    ],
)
def test_refusals(provoke: Callable[[], object], where: str) -> None:
    check_refusal(provoke, where)


def test_detectors_are_those_of_river() -> None:
    from river import drift

    rng = np.random.default_rng(6)
    prices = np.concatenate([rng.random(60), 5 + rng.random(60)])
    rule = replan.Drift("PageHinkley", (("threshold", 2.0), ("min_instances", 5)))
    decide, plain = rule.decide(), drift.PageHinkley(threshold=2.0, min_instances=5)
    expected = []
    for price in prices:
        plain.update(price)
        expected.append(plain.drift_detected)
    assert [decide(price) for price in prices] == expected
    assert any(expected)


def test_every_setting_is_accepted_by_river() -> None:
    for family, rules in detector_families(2.0).items():
        assert len(set(rules)) == len(rules)
        for rule in rules:
            assert rule.decide()(1.0) in (True, False)
            assert "settings" not in Point(family, rule, 0, 0.0).settings


def test_a_missing_river_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normalfan.errors.find_spec", lambda _: None)
    check_refusal(lambda: replan.Drift("ADWIN", ()).decide(), "normalfan[compare]")


@pytest.mark.parametrize("text", ["accumulated:200", "cusum:0.1,1e-09", "single:0", "periodic:7"])
def test_a_rule_is_read_back_from_its_text(text: str) -> None:
    assert str(parse_rule(text)) == text


def test_rules_that_are_not_understood_are_refused() -> None:
    for text in ("", "total:5", "cusum:5", "accumulated:1,2", "periodic:1.5", "accumulated:x", "single"):
        check_refusal(lambda given=text: parse_rule(given), f"the rule is {text!r}")
    for text, where in {
        "single:-1": "threshold is -1",
        "cusum:1,nan": "nan",
        "periodic:0": "days is 0",
    }.items():
        check_refusal(lambda given=text: parse_rule(given), where)
