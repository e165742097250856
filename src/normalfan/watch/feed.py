"""Lines as they arrive.

A feed is an iterator of lines with None, a pause, wherever no further line is waiting: the moment to commit
what was priced. A feeder that writes line by line sees a pause after each; behind one that writes faster than
rounds are priced, many lines share a pause, and so a commit.

A request to stop (SIGTERM, SIGINT) ends the feed between two lines, as if the input had ended there.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 2**16
"""Bytes read at a time: what a pipe holds."""

STOPPING = (signal.SIGTERM, signal.SIGINT)


class Feed:
    """Lines from a file descriptor; in silence, a pause every `patience` seconds."""

    def __init__(self, source: int, patience: float = 1.0) -> None:
        self.source = source
        self.patience = patience
        self._stopped = False
        self._wake, self._waker = os.pipe()

    def stop(self, *_: object) -> None:
        if not self._stopped:
            self._stopped = True
            os.write(self._waker, b".")

    def __iter__(self) -> Iterator[bytes | None]:
        for lines in self._batches():
            for line in lines:
                if self._stopped:
                    return
                yield line
            yield None

    def _batches(self) -> Iterator[list[bytes]]:
        begun: list[bytes] = []
        while not self._stopped:
            # Waiting for both wakes us when a signal arrives, which reading alone would sleep through.
            ready, _, _ = select.select([self.source, self._wake], [], [], self.patience)
            if self.source not in ready:
                yield []
                continue
            chunk = os.read(self.source, CHUNK)
            if not chunk:
                # A line that its feeder did not live to finish is no JSON, and will be called that.
                yield [b"".join(begun)] if begun else []
                return
            first, *rest = chunk.split(b"\n")
            begun.append(first)
            if rest:
                yield [b"".join(begun), *rest[:-1]]
                begun = [rest[-1]] if rest[-1] else []

    def close(self) -> None:
        os.close(self._wake)
        os.close(self._waker)


@contextmanager
def listening(source: int) -> Iterator[Feed]:
    """A feed that ends when the process is asked to stop; the former signal handlers return afterwards."""
    feed = Feed(source)
    former = {number: signal.signal(number, feed.stop) for number in STOPPING}
    try:
        yield feed
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        feed.close()
