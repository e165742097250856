"""The order of rounds: required, or told; and what is missing from it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.dates import gaps_between, periods_of, rounds_between
from normalfan.io.loss_files import order_rounds
from normalfan.problem.losses import names_of_rounds

ARMS = nf.MDP(np.array([[0, 0]]), 0, 1)
DAYS = ["2021-03-12", "2021-03-14", "2021-03-13"]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_dates_out_of_order_are_refused_unless_told(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"days{suffix}"
    array = np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0]])
    nf.io.save_losses(nf.ArrayLosses(array, "TA", round_names=DAYS), ARMS, path)
    check_refusal(lambda: nf.io.open_losses(path, ARMS), "has round 2021-03-13 after round 2021-03-14")
    kept = nf.io.open_losses(path, ARMS, order="file")
    assert names_of_rounds(kept) == tuple(DAYS)
    in_order = nf.io.open_losses(path, ARMS, order="sorted")
    assert names_of_rounds(in_order) == tuple(sorted(DAYS))
    assert next(in_order.blocks(ARMS.shape, 9))[:, 0, 0, 1].tolist() == [1, 2, 3]
    check_refusal(lambda: nf.io.open_losses(path, ARMS, order="newest"), "order is 'newest'")


def test_factored_losses_are_put_in_order_too(tmp_path: Path) -> None:
    losses = nf.FactoredLosses([[1.0], [3.0], [2.0]], np.ones((1, *ARMS.shape)), round_names=DAYS)
    nf.io.save_losses(losses, ARMS, tmp_path / "days.npz")
    in_order = nf.io.open_losses(tmp_path / "days.npz", ARMS, order="sorted")
    assert isinstance(in_order, nf.FactoredLosses)
    assert in_order.coefficients[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (["1", "2", "10"], False),
        (["0.5", "-1"], True),
        (["2021-03-12T23:00", "2021-03-13T00:00"], False),
        (["2021-03-12", "2021-03-12"], True),
        (["wed", "mon", "2021-03-12"], False),  # no dates: they stay as they are
        (["2021-03-13T00:00+01:00", "2021-03-12T00:00"], False),  # cannot be compared
        (["nan", "1"], False),
    ],
)
def test_what_has_an_order(names: list[str], refused: bool) -> None:
    if refused:
        check_refusal(lambda: order_rounds(Path("x"), names, None), "x has round")
    else:
        assert order_rounds(Path("x"), names, None) == list(range(len(names)))


def test_text_cannot_be_sorted() -> None:
    check_refusal(lambda: order_rounds(Path("x"), ["mon", "tue"], "sorted"), "rounds like 'mon'")


def test_gaps() -> None:
    days = [f"2021-03-{d:02}" for d in (1, 2, 3, 5, 6, 10)]
    assert gaps_between(days) == [("2021-03-05", "2021-03-03"), ("2021-03-10", "2021-03-06")]
    assert gaps_between(days[::-1]) == []  # in an order of the user's own
    assert gaps_between(["2021-01-31", "2021-02-28", "2021-03-31", "2021-04-30"]) == []  # months
    assert gaps_between(["mon", "wed", "fri"]) == gaps_between(None) == []
    hours = ["2021-03-14T00:00", "2021-03-14T01:00", "2021-03-14T03:00"]  # the clocks go forward
    assert gaps_between(hours) == [(hours[2], hours[1])]


HOURS = [f"2021-03-{d}T{h:02}:00" for d in (13, 14) for h in (0, 12, 23)]


@pytest.mark.parametrize(
    ("names", "first", "last", "kept"),
    [
        (HOURS, "2021-03-14", None, [3, 4, 5]),
        (HOURS, None, "2021-03-13", [0, 1, 2]),  # all hours of the day
        (HOURS, "2021-03-13T12:00", "2021-03-14T00:00", [1, 2, 3]),
        (HOURS, "2020-01-01", "2022-01-01", [0, 1, 2, 3, 4, 5]),
        (["8", "9", "10"], "9", "10", [1, 2]),
        (["20210313", "20210314", "20240000"], None, "20210314", [0, 1]),  # numbers, whatever they look like
        (["20210313", "20210314", "20210315"], "2021-03-14", "2021-03-14", [1]),  # dates beside a date
        (["8", "9.5", "10"], "8.5", None, [1, 2]),
        (
            ["2021-03-14", "2021-03-12", "2021-03-13"],
            "2021-03-13",
            None,
            [0, 2],
        ),  # an order of the user's own
        (["mon", "tue", "wed"], "tue", "tue", [1]),
    ],
)
def test_rounds_from_and_to(names: list[str], first: str | None, last: str | None, kept: list[int]) -> None:
    assert rounds_between(names, first, last) == kept


@pytest.mark.parametrize(
    ("names", "first", "last", "where"),
    [
        (["mon", "tue"], "sun", None, "first (--from) is 'sun'"),
        (["mon", "tue"], None, "2021-03-14", "last (--to) is '2021-03-14'"),
        (["mon", "tue"], "tue", "mon", "no round lies from tue to mon"),
        (["1", "2"], "2021-03-14", None, "first (--from) is '2021-03-14'"),
        (HOURS, "2021-03-14", "14.3.2021", "last (--to) is '14.3.2021'"),
        (["20210313"], "20210312.5", "2021-03-14", "first (--from) is '20210312.5'"),
        (HOURS, "14.3.2021", None, "first (--from) is '14.3.2021'"),
        (HOURS, "2021-03-14T00:00+01:00", None, "first (--from) is"),
        (HOURS, "2022-03-14", None, "no round lies from 2022-03-14 to 2021-03-14T23:00"),
    ],
)
def test_rounds_that_are_not_there(names: list[str], first: str | None, last: str | None, where: str) -> None:
    check_refusal(lambda: rounds_between(names, first, last), where)


def test_a_stream_of_some_days(tmp_path: Path) -> None:
    """The prices of the days kept are those of the whole stream, but for the first, which is not priced."""
    rng = np.random.default_rng(3)
    days = [f"2021-03-{d:02}" for d in range(1, 11)]
    whole = nf.ArrayLosses(rng.normal(size=(10, 2)), "TA", round_names=days)
    np.save(tmp_path / "days.npy", whole.array)
    for suffix in (".csv", ".npz"):
        nf.io.save_losses(whole, ARMS, tmp_path / f"days{suffix}")
        some = nf.io.open_losses(tmp_path / f"days{suffix}", ARMS, first=date(2021, 3, 4), last="2021-03-08")
        assert names_of_rounds(some) == tuple(days[3:8])
        prices = nf.price_stream(ARMS, some).prices
        assert prices[0] == 0
        assert np.array_equal(prices[1:], nf.price_stream(ARMS, whole).prices[4:8])
    numbered = nf.io.open_losses(tmp_path / "days.npy", ARMS, axes="TA", first=3, last="7")
    assert names_of_rounds(numbered) == ("3", "4", "5", "6", "7")
    assert not numbered.array.flags.owndata  # type: ignore[attr-defined]  # mapped, not read


def test_weeks_and_months() -> None:
    days = ["2020-12-31", "2021-01-03", "2021-01-04T23:00", "2021-02-01"]
    assert periods_of(days, "week") == ["2020-W53", "2020-W53", "2021-W01", "2021-W05"]
    assert periods_of(days, "month") == ["2020-12", "2021-01", "2021-01", "2021-02"]
    check_refusal(lambda: periods_of(["2021-01-01", "tue"], "week"), "rounds are called 2021-01-01, …, tue")
    assert periods_of(days, "year") == ["2020", "2021", "2021", "2021"]
    check_refusal(lambda: periods_of(days, "decade"), "period is 'decade'")
