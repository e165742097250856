"""How many threads a call takes by default."""

from __future__ import annotations

import pytest

from normalfan.cores import default_threads, usable_cores


@pytest.mark.parametrize(
    ("told", "threads"),
    [("1", 1), ("100000", usable_cores()), ("", usable_cores()), ("four", usable_cores()), ("0", 1)],
)
def test_linear_algebra_and_pricing_follow_one_setting(
    monkeypatch: pytest.MonkeyPatch, told: str, threads: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert default_threads() == threads
