"""The order of rounds: required, or told; and what is missing from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.io.rounds import gaps_between, order_rounds
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
