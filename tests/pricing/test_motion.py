"""The result of a priced stream: names, frames, refusals, figures."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf

STEPS = ("morning", "evening")
DAYS = ("2021-02-14", "2021-02-15", "2021-02-16")
SHOP = nf.MDP(np.array([[0, 0]]), 0, horizon=2, labels=nf.Labels(steps=STEPS))
ROUNDS = np.array([[[0, 1], [0, 1]], [[2, 0], [0, 1]], [[0, 1], [3, 0]]], dtype=float).reshape(3, 2, 1, 2)

FULL = [
    "by_step",
    "variations",
    "margins",
    "margin_exact",
    "advantage_gaps",
]


@pytest.fixture(scope="module")
def named() -> nf.PricedMotion:
    return nf.price_stream(SHOP, nf.ArrayLosses(ROUNDS, round_names=DAYS))


def test_frames_carry_the_names_of_rounds_and_steps(named: nf.PricedMotion) -> None:
    frame = named.to_frame()
    assert frame["round"].to_list() == list(DAYS)
    assert frame["price"].to_list() == [0.0, 2.0, 4.0]
    by_step = named.to_frame(long=True)
    assert by_step.rows() == [
        (day, step, part)
        for day, parts in zip(DAYS, ((0.0, 0.0), (2.0, 0.0), (1.0, 3.0)), strict=True)
        for step, part in zip(STEPS, parts, strict=True)
    ]
    assert by_step.columns == ["round", "step", "price"]


def test_frames_number_what_has_no_name(named: nf.PricedMotion) -> None:
    motion = nf.price_stream(nf.MDP(np.array([[0, 0]]), 0, horizon=2), ROUNDS)
    assert motion.to_frame()["round"].to_list() == [0, 1, 2]
    assert motion.to_frame(long=True).rows()[3:] == [(1, 1, 0.0), (2, 0, 1.0), (2, 1, 3.0)]
    assert motion.round_names is motion.labels.steps is None
    assert (motion.round_name(2), named.round_name(2)) == ("2", "2021-02-16")


@pytest.mark.parametrize("name", FULL)
def test_prices_alone_refuse_the_rest(name: str, named: nf.PricedMotion) -> None:
    motion = nf.price_stream(SHOP, ROUNDS, detail="prices")
    for one in (motion, pickle.loads(pickle.dumps(motion))):  # noqa: S301
        np.testing.assert_array_equal(one.prices, named.prices)
        with pytest.raises(nf.InputError, match=r'detail="prices", .* again with detail="full"'):
            getattr(one, name)
    assert set(named.columns()) - set(motion.columns()) == {
        "variation_l1", "variation_l2", "variation_linf", "margin", "margin_exact", "advantage_gap",
    }  # fmt: skip


def test_results_cannot_be_changed(named: nf.PricedMotion) -> None:
    with pytest.raises(FrozenInstanceError):
        named.margins = named.prices  # type: ignore[misc]
    for name in (*FULL, "prices", "values", "crossed", "dimensions"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(named, name)[0] = 0


def test_the_costliest_rounds_come_first_and_free_ones_not_at_all(named: nf.PricedMotion) -> None:
    assert named.costliest(1).tolist() == [2]
    assert named.costliest(9).tolist() == [2, 1]
    assert repr(named) == (
        "PricedMotion: 3 rounds, 2 crossed, 2 with a price, total 6; "
        "costliest: 2021-02-16 (4), 2021-02-15 (2)"
    )
    assert "<td>2021-02-16</td><td>4</td>" in named._repr_html_()


def test_figures_have_dates_where_names_are_dates(named: nf.PricedMotion) -> None:
    prices, moved = named.plot().axes
    assert [path.vertices[1, 1] for path in prices.collections[0].get_paths()] == named.prices.tolist()
    assert [path.vertices[1, 1] for path in moved.collections[0].get_paths()] == named.variation().tolist()
    assert moved.get_xlim()[0] > 1e4  # days since 1970
    numbered = nf.price_stream(SHOP, nf.ArrayLosses(ROUNDS, round_names=("a", "b", "c"))).plot(norm=2)
    assert numbered.axes[1].get_xlim()[1] < 4
    assert numbered.axes[1].get_ylabel() == "variation (l2)"


def test_the_figure_of_a_crossing_shows_its_steps() -> None:
    crossing = nf.price(nf.optimal_face(SHOP, ROUNDS[1]), ROUNDS[2])
    (axes,) = crossing.plot().axes
    assert [bar.get_height() for bar in axes.patches] == crossing.by_step.tolist() == [1.0, 3.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(STEPS)
    assert repr(crossing) == "Crossing: price 4 on a value of 0; most at step evening (3)"


def test_prices_by_period_add_up() -> None:
    days = [f"2020-12-{day}" for day in range(26, 32)] + [f"2021-01-0{day} 12:00" for day in range(1, 6)]
    losses = nf.ArrayLosses(np.random.default_rng(4).normal(size=(11, 2, 1, 2)), round_names=days)
    motion = nf.price_stream(SHOP, losses)
    weeks = motion.by_period("week")
    assert weeks.columns == ["period", "price", "value", "rounds"]
    # The first of January 2021 is a Friday of the last week of 2020.
    assert weeks["period"].to_list() == ["2020-W52", "2020-W53", "2021-W01"]
    assert weeks["rounds"].to_list() == [2, 7, 2]
    for column, array in (("price", motion.prices), ("value", motion.values)):
        assert weeks[column].to_list() == pytest.approx(
            [array[:2].sum(), array[2:9].sum(), array[9:].sum()], abs=1e-12
        )
    months, years = motion.by_period("month"), motion.by_period("year")
    assert months.drop("period").rows() == years.drop("period").rows()
    assert (months["period"].to_list(), years["period"].to_list()) == (
        ["2020-12", "2021-01"],
        ["2020", "2021"],
    )
    check_refusal(lambda: motion.by_period("decade"), "period is 'decade'")
    check_refusal(lambda: nf.price_stream(SHOP, ROUNDS).by_period("week"), "rounds are called 0")
