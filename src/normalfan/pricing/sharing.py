"""Blocks of a stream shared out among threads; each puts what its rounds cost where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from normalfan.pricing.blocks import Columns
from normalfan.problem.arrays import release_pages

Block: TypeAlias = tuple[Any, ...]
"""The number of its first row, two arguments of a pricer, the second of them losses, and maybe more."""


class Gathered:
    """The columns of a stream, filled part by part in any order.

    A part is copied by the thread that priced it, and let go of: its memory is still in the cache of that
    core, and the next part is priced into it.
    """

    def __init__(self, n_rounds: int | None, advance: Callable[[int], object]) -> None:
        self._columns: Columns = {}
        self._room = self._filled = 0
        self._n_rounds = n_rounds
        self._advance = advance
        self._lock = Lock()

    def put(self, part: Columns, stop: int) -> None:
        """Put in place what was told of the rounds before round `stop`."""
        start = stop - len(part["prices"])
        with self._lock:
            if stop > self._room:
                self._room = max(stop, self._n_rounds or 2 * self._filled)
                self._columns = _lengthened(self._columns, part, self._room)
            for name, column in part.items():
                self._columns[name][start:stop] = column
            self._filled = max(self._filled, stop)
            self._advance(stop - start)

    @property
    def columns(self) -> Columns:
        """All that was put in place, by name; empty if nothing was."""
        return {name: column[: self._filled] for name, column in self._columns.items()}


def share_out(price: Callable[..., Columns], blocks: Iterable[Block], threads: int, out: Gathered) -> None:
    """Price blocks by `threads` threads, of which this is one and alone reads the stream.

    One block lies ready for each of the others, and what comes beyond these is priced here: so nobody waits,
    and nothing is read further ahead. Of several blocks that are refused, the first one is told.
    """

    def settle(*block: Any) -> None:
        out.put(price(*block), block[0] + len(block[2]))

    def settle_elsewhere(*block: Any) -> None:
        settle(*block)
        release_pages(block[2])  # the stream let go of them when asked for the next block: too early here

    if threads == 1:
        for block in blocks:
            settle(*block)
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        handed: dict[Future[None], Block] = {}  # in order, and all of them before the block at hand
        try:
            for block in blocks:
                handed = {one: of for one, of in handed.items() if not one.done() or _has_failed(one)}
                if any(map(_has_failed, handed)):
                    break
                if sum(not (one.running() or one.done()) for one in handed) < threads - 1:
                    handed[pool.submit(settle_elsewhere, *block)] = block
                else:
                    settle(*block)
            else:
                while handed and [*handed][-1].cancel():  # no other has begun it
                    settle_elsewhere(*handed.popitem()[1])
        finally:
            for one in handed:
                one.result()


def _has_failed(one: Future[None]) -> bool:
    return one.done() and one.exception() is not None


def _lengthened(columns: Columns, like: Columns, length: int) -> Columns:
    """Longer columns that begin as these, of the kinds of others."""
    from normalfan._kernels.buffers import LINE, in_one_piece

    kinds = {name: ((length, *one.shape[1:]), one.dtype) for name, one in like.items()}
    # Those with many numbers a round stand alone: who keeps the prices need not keep them.
    wide = {name for name, one in like.items() if one[0].nbytes > LINE}
    longer = in_one_piece({name: kind for name, kind in kinds.items() if name not in wide}, zeros=False)
    longer |= {name: np.empty(*kinds[name]) for name in wide}
    for name, column in columns.items():
        longer[name][: len(column)] = column
    return longer
