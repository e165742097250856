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
from normalfan.problem.labels import Labels
from normalfan.report.page_text import summary_paragraphs


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
        "Summary: 2 rounds, 0 free, 0 negligible, 1 priced, total price 4; costliest: tue (4)"
    )
    assert "<td>sleep</td><td>bus</td>" in told._repr_html_()


def test_small_prices_are_negligible_and_free_ones_free() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[100, 101.0], [100.9, 100.0], [100, 100.0], [0.0, 1.0], [1.0, 0.0]])
    motion = nf.price_stream(arms, nf.ArrayLosses(losses, axes="TA"))
    assert kinds_of_rounds(motion).tolist() == ["first", "negligible", "free", "free", "priced"]


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


def test_a_price_that_only_exact_arithmetic_sees_names_no_cell() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[1.0, 1.0 + 3e-13], [2.0, 1.0]]).reshape(2, 1, 1, 2)
    motion = nf.price_stream(arms, losses, exact_when_ambiguous=True)
    told = summarise(arms, losses, motion)
    assert [(one.price, one.cell) for one in told.costliest] == [(1.0, None)]
    assert "at 1; this price depends on a near-tie." in "\n".join(summary_paragraphs(told, ""))
    assert "<td>–</td>" in told._repr_html_()


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


def test_losses_that_were_used_up_are_refused() -> None:
    arms = nf.MDP(np.array([[0, 0]]), 0, 1)
    losses = np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    motion = nf.price_stream(arms, losses)
    check_refusal(lambda: summarise(arms, iter(losses), motion), "IterableLosses")
    quick = nf.price_stream(arms, losses, detail="prices")
    check_refusal(lambda: summarise(arms, losses, quick), 'detail="prices"')
