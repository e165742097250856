"""Recommendations: chosen on the first days only, judged on the others only."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import check_refusal

from normalfan import replan
from normalfan.replan.curve import try_rules
from normalfan.replan.recommend import recommend_in_hindsight


def holding(costs: np.ndarray, names: tuple[str, ...] | None = None) -> replan.HoldingCosts:
    upper = np.where(np.tri(len(costs), k=-1) > 0, np.nan, costs)
    return replan.HoldingCosts(upper, np.zeros(len(costs)), "before", 1, names)


def random_holding(seed: int, n_days: int = 40) -> replan.HoldingCosts:
    rng = np.random.default_rng(seed)
    places = np.cumsum(rng.normal(size=(n_days, 2)) * (rng.random((n_days, 1)) < 0.3), axis=0)
    return holding(np.linalg.norm(places[:, None] - places, axis=2))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("known", ["before", "after"])
def test_settings_are_the_cheapest_of_the_first_days_and_judged_on_the_others(seed: int, known: str) -> None:
    cost, costs = 0.1 * 4.0 ** (seed % 5), random_holding(seed)
    costs = costs if known == "before" else costs.learned_after()
    first = costs.n_days - round(0.4 * costs.n_days)
    advice = replan.recommend(costs, cost, holdout=0.4)
    early, late = costs.costs[:first, :first], costs.costs[first:, first:]
    assert advice.tuned_days == first
    np.testing.assert_array_equal(advice.days.costs, late)
    assert advice.days.day_name(0) == str(first + costs.first_round)
    tried = try_rules(costs.part(0, first), detectors=False)
    for one in advice.judged:
        if one.rule is None:
            assert one.tuned_total == pytest.approx(early[0].sum())
            assert one.run.regret == pytest.approx(late[0].sum())
        elif one.family != "accumulated, set by the cost":
            own = [point.total(cost) for point in tried if point.family == one.family]
            assert one.tuned_total == pytest.approx(min(own))
            assert one.run.days == replan.replay(one.rule, costs.part(first, costs.n_days)).days
    assert advice.chosen.tuned_total == min(one.tuned_total for one in advice.judged)
    cheaper = {one.family for one in advice.judged if one.run.total(cost) < advice.chosen.run.total(cost)}
    assert {one.family for one in advice.beaten_by} == cheaper


@pytest.mark.parametrize("seed", range(6))
def test_what_is_held_out_changes_no_choice(seed: int) -> None:
    costs = random_holding(seed)
    other = costs.costs.copy()
    other[:, 25:] *= np.random.default_rng(seed).uniform(0, 9, size=15)
    chosen = [replan.recommend(one, 1.0, holdout="25").chosen.rule for one in (costs, holding(other))]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("seed", range(6))
def test_in_hindsight_all_days_are_both(seed: int) -> None:
    costs = random_holding(seed)
    advice = replan.recommend(costs, 0.5)
    again = recommend_in_hindsight(replan.regret_curve(costs, 0.5, detectors=False))
    assert advice.sentence == again.sentence
    assert "in hindsight" in advice.sentence
    assert all(one.tuned_total == one.run.total(0.5) for one in advice.judged)
    assert advice.beaten_by == ()


def test_the_sentence_says_when_never_is_best() -> None:
    ages = holding(np.abs(np.arange(20)[None, :] - np.arange(20)[:, None]) / 100)
    sentence = replan.recommend(ages, 50.0, holdout=0.5, unit="$").sentence
    assert sentence.startswith(
        "Never re-plan: on the 10 days from 10 on that costs $0.45 in all, as much as "
    )


def test_the_sentence_compares_with_a_period_and_never() -> None:
    days = np.repeat(np.arange(10), 6)  # a new world every six days
    costs = holding(np.where(days[None, :] == days[:, None], 0.0, 10.0))
    assert replan.recommend(costs, 1.0, holdout=0.5, unit="€").sentence == (
        "Re-plan every 6 days: on the 30 days from 30 on that costs €4 in all, 98 % less than never and "
        "as much as re-planning when the prices since the last re-plan add up to €1."
    )


def test_a_rule_that_loses_is_said_to_cost_more() -> None:
    """The world moves for good in the first half, and is odd for a day at a time in the second."""
    kinds = np.append(np.repeat(np.arange(7), [3, 5, 2, 4, 6, 3, 7]), np.where(np.arange(30) % 5 == 4, 8, 7))
    costs = holding(np.where(kinds[None, :] == kinds[:, None], 0.0, 3.0))
    advice = replan.recommend(costs, 2.0, holdout=0.5)
    assert advice.chosen.family == "accumulated, set by the cost"
    assert advice.sentence.endswith("% more than never.")
    assert "never" in [one.family for one in advice.beaten_by]


def test_the_frame_has_every_rule_on_the_days_judged() -> None:
    advice = replan.recommend(random_holding(3), 0.5, holdout=0.25)
    frame = advice.to_frame()
    assert frame["round"].to_list() == [str(t) for t in range(30, 40)]
    for one in advice.judged:
        assert frame[f"{one.family}: regret"].sum() == pytest.approx(one.run.regret)


@pytest.mark.parametrize(
    ("holdout", "said"),
    [
        ("2022", "holdout is '2022', but is neither a share nor a round"),
        (0, "is neither a share nor a round"),
        (1.0, "is neither a share nor a round"),
        ("nan", "is neither a share nor a round"),
        (0.01, "leaves 40 days to choose settings on and 0"),
        ("d1", "leaves 1 days to choose settings on"),
        ("0.5", "is a share and a round"),
    ],
)
def test_a_holdout_is_a_share_or_a_round(holdout: float | str, said: str) -> None:
    names = ("0.5", *(f"d{t}" for t in range(1, 40)))
    costs = holding(random_holding(0).costs, names)
    check_refusal(lambda: replan.recommend(costs, 1.0, holdout=holdout), said)
