"""Lines as they arrive: in any pieces, until the input ends or a signal comes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from normalfan.watch.lines import Feed


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:  # the test has closed it
            continue


def test_lines_do_not_depend_on_the_pieces_in_which_they_are_sent(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    seen: list[bytes] = []
    with Feed(source) as feed:
        os.write(sink, b"on")
        arriving = iter(feed)
        for piece in (b"e\ntwo\n\nth", b"ree\nthe last has no en", b"d"):
            os.write(sink, piece)
            while b"\n" in piece and (line := next(arriving)) is not None:
                seen.append(line)
        os.close(sink)
        seen += [line for line in arriving if line is not None]
    assert seen == [b"one", b"two", b"", b"three", b"the last has no end"]


def test_lines_that_wait_share_a_pause(pipe: tuple[int, int]) -> None:
    source, sink = pipe
    os.write(sink, b"one\ntwo\n")
    os.close(sink)
    with Feed(source) as feed:
        assert list(feed) == [b"one", b"two", None]


def test_long_lines_that_wait_share_a_pause(tmp_path: Path) -> None:
    lines = [b"x" * 200_000, b"y" * 70_000, b"z" * 65_536]
    (tmp_path / "lines").write_bytes(b"\n".join(lines) + b"\n")
    with (tmp_path / "lines").open("rb") as source, Feed(source.fileno()) as feed:
        assert list(feed) == [*lines, None]


def test_a_line_without_end_takes_no_more_memory_than_allowed(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"x" * 500_000 + b"\nshort\n" + b"y" * 1001)
    with (tmp_path / "lines").open("rb") as source, Feed(source.fileno(), longest=1000) as feed:
        assert [line and len(line) for line in feed] == [1001, 5, 1001, None]


def test_an_idle_feed_does_not_spin(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    def counted(*arguments: Any) -> tuple[list[int], list[int], list[int]]:
        waits.append(arguments[3])
        if len(waits) == 3:
            feed.stop()
        return [], [], []

    source, _ = pipe
    with Feed(source) as feed:
        monkeypatch.setattr("select.select", counted)
        assert list(feed) == [None] * 3
    assert waits == [None] * 3  # until something happens


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_feed_between_two_lines(pipe: tuple[int, int], number: signal.Signals) -> None:
    source, sink = pipe
    former = signal.getsignal(number)
    os.write(sink, b"one\ntwo\n")  # and the input stays open
    with Feed(source) as feed:
        arriving = iter(feed)
        assert next(arriving) == b"one"
        signal.raise_signal(number)
        assert list(arriving) == []
    assert signal.getsignal(number) is former


def test_a_request_to_stop_ends_the_wait_for_a_line(pipe: tuple[int, int]) -> None:
    source, _ = pipe
    before = time.monotonic()
    with Feed(source) as feed:
        feed.patience = 300  # nothing but the request ends the wait in time
        former = signal.signal(signal.SIGALRM, feed.stop)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert not any(feed)
        signal.signal(signal.SIGALRM, former)
    assert time.monotonic() - before < 150
