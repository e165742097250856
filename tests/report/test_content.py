"""What charts draw: outlines, dates and thin rounds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from normalfan.report.content import are_dates, outline, thin_rounds


def test_an_outline_keeps_every_bin_s_extremes_and_is_short() -> None:
    column = np.random.default_rng(3).normal(size=100_000)
    column[77_777], column[5] = 99.0, -99.0
    kept = outline(column, most=5000)
    assert len(kept) <= 5000
    assert {77_777, 5} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    edges = np.linspace(0, 100_000, 2501).astype(int)
    for start, end in pairwise(edges):
        here = column[kept[(kept >= start) & (kept < end)]]
        assert (here.min(), here.max()) == (column[start:end].min(), column[start:end].max())
    assert outline(column[:5000]).tolist() == list(range(5000))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("2021-02-14", "2021-02-15"), True),
        (("2021-02-14 23:00", "2021-02-15 00:00"), True),
        (("2021-02-15", "2021-02-14"), False),
        (("2021-02-14", "monday"), False),
        (None, False),
    ],
)
def test_dates_are_told_from_other_names(names: tuple[str, ...] | None, expected: bool) -> None:
    assert are_dates(names) is expected


def test_thin_rounds_are_the_twentieth_with_the_smallest_gaps() -> None:
    gaps = np.random.default_rng(2).permutation(np.r_[np.arange(1.0, 101.0), np.inf, np.inf])
    assert sorted(gaps[thin_rounds(gaps)]) == [1, 2, 3, 4, 5]
    assert not thin_rounds(np.array([np.inf, np.inf])).any()
