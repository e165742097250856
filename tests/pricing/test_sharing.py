"""Blocks shared out among threads: evenly, in any order, and refused as one thread would refuse them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import normalfan as nf
from normalfan.pricing.sharing import Block, Gathered, share_out

ROUNDS = 5


def blocks(count: int) -> Iterator[Block]:
    """As `numbered` yields them: all but the first begin with the last round of the one before."""
    for first in range(0, count * ROUNDS, ROUNDS):
        shared = min(first, 1)
        yield first - shared, shared, np.arange(first - shared, first + ROUNDS, dtype=float)


def told(_first: int, shared: int, losses: np.ndarray) -> dict[str, Any]:
    return {"prices": losses[shared:], "by_step": np.stack([losses[shared:]] * 20, axis=1)}


def shared_out(price: Any, count: int, threads: int, n_rounds: int | None = None) -> dict[str, Any]:
    out = Gathered(n_rounds, lambda _: None)
    share_out(price, blocks(count), threads, out)
    return out.columns


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_every_round_is_put_in_its_place(count: int, is_counted: bool, threads: int) -> None:
    late = threading.Event()

    def price(first: int, shared: int, losses: np.ndarray) -> dict[str, Any]:
        if threads > 1 and first == 0:  # the first block comes last, if others are priced meanwhile
            late.wait(0.2)
        elif first > 2 * ROUNDS:
            late.set()
        return told(first, shared, losses)

    columns = shared_out(price, count, threads, count * ROUNDS if is_counted else None)
    np.testing.assert_array_equal(columns["prices"], np.arange(count * ROUNDS))
    np.testing.assert_array_equal(columns["by_step"], np.arange(count * ROUNDS)[:, None].repeat(20, axis=1))


@pytest.mark.parametrize("threads", [2, 3])
def test_no_thread_is_left_without_work(threads: int) -> None:
    """Each block waits until every thread has one: a thread that gets none would break the barrier."""
    together = threading.Barrier(threads, timeout=30)

    def price(*block: Any) -> dict[str, Any]:
        together.wait()
        return told(*block)

    for _ in range(50):
        shared_out(price, 6 * threads, threads)
    assert not together.broken


def test_the_stream_is_read_by_the_thread_that_asked_and_not_far_ahead() -> None:
    here, priced = threading.get_ident(), []

    def price(*block: Any) -> dict[str, Any]:
        priced.append(threading.get_ident())
        return told(*block)

    def watched() -> Iterator[Block]:
        for read, block in enumerate(blocks(200)):
            assert threading.get_ident() == here
            assert read - len(priced) <= 3  # one in each thread's hands, and one that lies ready
            yield block

    share_out(price, watched(), 2, Gathered(None, lambda _: None))
    assert len(priced) == 200


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("seed", range(8))
def test_the_first_block_that_is_refused_is_told(seed: int, threads: int) -> None:
    """Whichever thread meets which one first, and though the source gives out soon after."""
    rng = np.random.default_rng(seed)
    bad = {int(first) for first in rng.integers(0, 12, 3)}
    slow = {first: float(rng.random()) / 100 for first in range(12)}

    def price(first: int, shared: int, losses: np.ndarray) -> dict[str, Any]:
        number = (first + shared) // ROUNDS
        threading.Event().wait(slow[number])
        if number in bad:
            raise nf.InputError(f"block {number} is bad.")
        return told(first, shared, losses)

    def giving_out() -> Iterator[Block]:
        for number, block in enumerate(blocks(12)):
            if number == min(bad) + 2:
                raise OSError("the source is gone")
            yield block

    for source in (blocks(12), giving_out()):
        with pytest.raises(nf.InputError, match=f"block {min(bad)} is bad"):
            share_out(price, source, threads, Gathered(None, lambda _: None))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_source_that_gives_out_says_so(threads: int) -> None:
    def giving_out() -> Iterator[Block]:
        yield from blocks(5)
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        share_out(told, giving_out(), threads, Gathered(None, lambda _: None))
