"""The few numbers that sum up a priced stream, counted again by hand."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from problems import random_problem
from scipy import stats
from sentences import check_refusal

import normalfan as nf
from normalfan.pricing.summary import kinds_of_rounds, ranks_from_largest, summarise
from normalfan.problem.mdp import Labels
from normalfan.report.content import cumulative_caption, summary_paragraphs


def test_counts_ranks_and_totals(rng: np.random.Generator) -> None:
    for _ in range(30):
        problem = random_problem(rng, rounds=int(rng.integers(1, 9)))
        mdp, losses = (
            problem.mdp(),
            problem.losses * rng.choice([1.0, 1e-3], size=(len(problem.losses), 1, 1, 1)),
        )
        motion = nf.price_stream(mdp, losses)
        told = summarise(mdp, losses, motion, costliest=3)
        moves = list(zip(motion.prices, motion.values, strict=True))[1:]
        assert told.free == sum(price == 0 for price, _ in moves)
        assert told.negligible == sum(0 < price < abs(value) / 100 for price, value in moves)
        assert told.free + told.negligible + told.priced == told.rounds - 1 == len(losses) - 1
        assert told.total == pytest.approx(sum(price for price, _ in moves), abs=1e-12)
        assert told.total_lowest <= told.total <= told.total_highest
        ranked = sorted((p for p, _ in moves if p > 0), reverse=True)[:3]
        assert [one.price for one in told.costliest] == ranked
        moved = motion.variation("l1")
        for one in told.costliest:
            assert one.variation_rank == 1 + sum(other > one.variation for other in moved)
            assert one.cell is not None
            assert 0 < one.cell.paid <= one.price * (1 + 1e-12)
            assert one.price <= one.cell.paid * losses[0].size * (1 + 1e-12)  # the largest of its parts
        if told.rank_correlation is not None:
            expected = stats.spearmanr(motion.prices[1:], moved[1:]).statistic
            assert told.rank_correlation == pytest.approx(expected, abs=1e-12)


def test_the_place_is_where_the_old_plan_goes_wrong() -> None:
    """At dusk in town the old plan sleeps; today a ride home would save 4, by bus as by tram."""
    labels = Labels(("dawn", "dusk"), ("home", "town"), ("sleep", "bus", "tram"))
    mdp = nf.MDP(np.array([[0, 1, 1], [1, 0, 0]]), 0, 2, labels=labels)
    yesterday = np.zeros(mdp.shape)
    yesterday[0, 0, 0] = 10  # nobody stays at home at dawn,
    yesterday[1, 1, 1:] = 1  # nor rides at dusk
    today = yesterday.copy()
    today[1, 1] = [5, 1, 1]
    losses = nf.ArrayLosses(np.stack([yesterday, today]), round_names=("mon", "tue"))
    told = summarise(mdp, losses, nf.price_stream(mdp, losses))
    (one,) = told.costliest
    cell = one.cell
    assert cell is not None
    assert (one.name, one.price, cell.paid) == ("tue", 4.0, 4.0)
    assert (cell.step, cell.state, cell.action, cell.best_action) == ("dusk", "town", "sleep", "bus")
    text = "\n".join(summary_paragraphs(told, "€"))
    assert "The costliest round is tue, at €4." in text
    assert (
        "€4, is paid at step dusk in state town, where the old plan takes sleep and the best action is bus"
        in text
    )
    assert "free in 0 of 1" in text
    assert repr(told) == (
        "Summary: 2 rounds, 0 free, 0 negligible, 1 priced, price 4 (never changed: 4); costliest: tue (4)"
    )
    assert "<td>sleep</td><td>bus</td>" in told._repr_html_()


def test_small_prices_are_negligible_and_free_ones_free() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[100, 101.0], [100.9, 100.0], [100, 100.0], [0.0, 1.0], [1.0, 0.0]])
    motion = nf.price_stream(arms, nf.ArrayLosses(losses, axes="TA"))
    assert kinds_of_rounds(motion).tolist() == ["planless", "negligible", "free", "free", "priced"]


def test_a_single_round_and_a_still_stream_are_told_too() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    for rounds, words in ((1, "nothing to price"), (3, "free in 2 of 2")):
        losses = np.zeros((rounds, 1, 1, 2))
        told = summarise(arms, losses, nf.price_stream(arms, losses))
        assert told.costliest == ()
        assert told.rank_correlation is None
        assert words in "\n".join(summary_paragraphs(told, ""))


def test_near_ties_are_told() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[1.0, 1.0 + 3e-12], [2.0, 1.0]]).reshape(2, 1, 1, 2)
    told = summarise(arms, losses, nf.price_stream(arms, losses))
    assert told.ambiguous == 1
    assert (told.total_lowest, told.total_highest) == pytest.approx((0.0, 1.0))
    assert summary_paragraphs(told, "")[-1] == (
        "In 1 round a near-tie leaves the price, or whether the optimal face moved, open; the exact total "
        "lies between 0 and 1."
    )
    one_total = dataclasses.replace(told, total_lowest=1.0, total_highest=1.0 + 1e-15)
    assert summary_paragraphs(one_total, "€")[-1].endswith("the exact total is €1, to the digits shown.")


def test_the_interval_of_the_total_contains_the_exact_total(rng: np.random.Generator) -> None:
    """Also where the nearest float to the sum of the ends is on the wrong side of it."""
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    rounded = 0
    for _ in range(20):
        losses = rng.normal(size=(50, 1, 1, 2))
        motion = nf.price_stream(arms, losses)
        told = summarise(arms, losses, motion)
        lowest, highest = (
            sum(map(Fraction, ends.tolist())) for ends in (motion.lowest_prices, motion.highest_prices)
        )
        assert Fraction(told.total_lowest) <= lowest <= highest <= Fraction(told.total_highest)
        assert told.total_lowest <= told.total <= told.total_highest
        assert told.total_highest - told.total_lowest < 1e-12
        rounded += math.fsum(motion.lowest_prices) > lowest or math.fsum(motion.highest_prices) < highest
    assert rounded > 5  # so plain sums would have failed


def test_a_price_that_only_exact_arithmetic_sees_has_its_cell() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[1.0, 1.0 + 3e-13], [2.0, 1.0]]).reshape(2, 1, 1, 2)
    motion = nf.price_stream(arms, losses, exact_when_ambiguous=True)
    told = summarise(arms, losses, motion)
    assert [(one.price, one.cell and one.cell.paid) for one in told.costliest] == [(1.0, 1.0)]


def test_equal_variations_share_a_rank() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[0, 1.0], [1, 0.0], [0, 1.0], [0, 3.0], [0, 2.5]]).reshape(5, 1, 1, 2)
    motion = nf.price_stream(arms, losses)
    assert motion.variation("l1").tolist() == [0.0, 2.0, 2.0, 2.0, 0.5]
    assert ranks_from_largest(motion.variation("l1")).tolist() == [5, 1, 1, 1, 4]
    assert [one.variation_rank for one in summarise(arms, losses, motion).costliest] == [1, 1]


def test_control_characters_in_names_are_inert() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1, labels=Labels(actions=("stay", "\x1b[2Jgo")))
    rounds = np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    losses = nf.ArrayLosses(rounds, round_names=["one", "\u202etwo\x07"])
    motion = nf.price_stream(arms, losses)
    told = summarise(arms, losses, motion)
    for shown in (repr(motion), motion._repr_html_(), repr(told), told._repr_html_()):
        assert shown.isprintable()
        assert r"\u202etwo\x07" in shown
    assert r"\x1b[2Jgo" in told._repr_html_()


def test_prices_without_detail_are_refused() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    quick = nf.price_stream(arms, losses, detail="prices")
    check_refusal(lambda: summarise(arms, losses, quick), 'detail="prices"')


def test_losses_that_were_used_up_are_refused() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    check_refusal(lambda: summarise(arms, iter(losses), nf.price_stream(arms, losses)), "IterableLosses")


def test_slow_drift_hides_from_a_plan_one_round_old() -> None:
    """A shop whose storage grows dearer by a little each week: no week matters, all of them together do."""
    stock = np.arange(6)
    shop = nf.MDP(np.minimum(stock[:, None] + np.arange(4) * 1 - 1, 5).clip(0), initial=2, horizon=5)
    left = np.minimum(stock[:, None] + np.arange(4), 5)
    empty = (left == 0).astype(float)
    weeks = 60
    per_week = [
        np.linspace(0.06, 3, weeks)[t] * left + 20 * empty + 4.0 * (5 - left) / 5 for t in range(weeks)
    ]
    losses = nf.ArrayLosses(np.stack(per_week), axes="TSA")
    motion = nf.price_stream(shop, losses)
    told = summarise(shop, losses, motion)
    assert told.one_round_old == told.total == motion.total
    never = nf.price_stream(shop, losses, against="first")
    assert told.never_changed == never.total
    assert told.never_changed_prices.tolist() == never.prices.tolist()
    assert told.never_changed > 25 * told.total > 0
    text = " ".join(summary_paragraphs(told, "€"))
    assert f"would have cost €{told.never_changed:.4g}." in text
    # Whatever is priced, both stand beside it.
    for against, beside in (("first", "A plan one round old would have cost"), (3, "never changed, €")):
        other = summarise(shop, losses, nf.price_stream(shop, losses, against=against))
        assert (other.one_round_old, other.never_changed) == (told.one_round_old, told.never_changed)
        assert beside in " ".join(summary_paragraphs(other, "€"))


def test_other_plans_are_told_in_their_own_words() -> None:
    arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1, labels=Labels(actions=("left", "right", "stay")))
    losses = np.array([[5.0, 0.0, 6.0], [0.0, 4.0, 9.0], [0.0, 8.0, 6.0]]).reshape(3, 1, 1, 3)
    told = {
        name: summarise(arms, losses, nf.price_stream(arms, losses, against=against))
        for name, against in {"mine": [[[0.0, 0.5, 0.5]]], "forecast": losses[::-1], "two": 2}.items()
    }
    mine = " ".join(summary_paragraphs(told["mine"], ""))
    assert "Following your plan was free in 0 of 3 rounds" in mine
    assert "where your plan takes right and the best action is left" in mine  # of its two moves, the costlier
    assert told["mine"].total == pytest.approx(3 + 6.5 + 7)
    forecast = " ".join(summary_paragraphs(told["forecast"], ""))
    assert "Following the forecast's plan was free in 1 of 3 rounds" in forecast
    assert told["forecast"].costliest[0].round == 2
    assert "where the forecast's plan takes right" in forecast
    assert "Keeping the plan of 2 rounds before was free in 0 of 1 round" in " ".join(
        summary_paragraphs(told["two"], "")
    )
    young = summarise(arms, losses, nf.price_stream(arms, losses, against=3))
    assert summary_paragraphs(young, "") == [
        "There are only 3 rounds and no plan before, so there is nothing to price yet."
    ]


@pytest.mark.parametrize("factored", [False, True])
def test_rewards_stay_rewards(rng: np.random.Generator, factored: bool) -> None:
    arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    numbers, unit = rng.integers(1, 50, (8, 3)).astype(float), np.eye(3).reshape(3, 1, 1, 3)
    lost = nf.FactoredLosses(-numbers, unit) if factored else nf.ArrayLosses(-numbers, axes="TA")
    earned = nf.rewards(nf.FactoredLosses(numbers, unit) if factored else nf.ArrayLosses(numbers, axes="TA"))
    losing, earning = nf.price_stream(arms, lost), nf.price_stream(arms, earned)
    assert (losing.rewards, earning.rewards) == (False, True)
    assert earning.values.tolist() == numbers.max(axis=1).tolist()
    for name, column in losing.columns().items():
        sign = -1 if name == "value" else 1
        np.testing.assert_array_equal(earning.columns()[name], sign * column, err_msg=name)
    by_loss, by_reward = summarise(arms, lost, losing), summarise(arms, earned, earning)
    assert (by_reward.total, by_reward.value) == (by_loss.total, -by_loss.value)
    assert [one.value for one in by_reward.costliest] == [-one.value for one in by_loss.costliest]
    text = " ".join(summary_paragraphs(by_reward, "$"))
    assert f"the expected rewards of the best plans add up to ${numbers.max(axis=1).sum():.4g}." in text
    assert "loss" not in text.replace("losses", "")
    assert "by reward variation" in text
    assert "reward" not in " ".join(summary_paragraphs(by_loss, "$"))
    caption = cumulative_caption(earning, None, "$")
    kept = numbers.max(axis=1).sum() - earning.total
    assert f"the expected reward adds up to ${numbers.max(axis=1).sum():.4g}" in caption
    assert f"(dashed line), to ${kept:.4g}." in caption
    np.testing.assert_array_equal(earning.kept_values, -losing.kept_values)
    nothing = nf.price_stream(arms, nf.rewards(np.zeros((1, 1, 1, 3))))
    assert not np.signbit(nothing.values).any()  # no −0
