"""Lines as they arrive.

A feed is an iterator of lines with None, a pause, wherever no further line is waiting: the moment to commit
what was priced. If lines are sent one by one, there is a pause after each. If they are sent faster than they
are priced, many lines share a pause, and so a commit.

A request to stop (SIGTERM, SIGINT) ends the feed between two lines, as if the input had ended there.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 2**16
"""Bytes read at a time: the capacity of a pipe."""

STOPPING = (signal.SIGTERM, signal.SIGINT)


class Feed:
    """Lines from the file descriptor `source`; while none arrive, a pause every `patience` seconds."""

    def __init__(self, source: int, patience: float = 1.0) -> None:
        self.source = source
        self.patience = patience
        self._stopped = False
        self._wake, self._waker = os.pipe()

    def stop(self, *_: object) -> None:
        """End the feed before its next line; can be called from a signal handler."""
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
            # Waiting for both wakes us when a signal arrives; reading alone would go on waiting.
            ready, _, _ = select.select([self.source, self._wake], [], [], self.patience)
            if self.source not in ready:
                yield []
                continue
            chunk = os.read(self.source, CHUNK)
            if not chunk:
                # A line that its sender did not finish is not JSON, and is reported as that.
                yield [b"".join(begun)] if begun else []
                return
            first, *rest = chunk.split(b"\n")
            begun.append(first)
            if rest:
                yield [b"".join(begun), *rest[:-1]]
                begun = [rest[-1]] if rest[-1] else []

    def close(self) -> None:
        """Give back the pipe that `stop` writes to; `source` stays open."""
        os.close(self._wake)
        os.close(self._waker)


@contextmanager
def open_feed(source: int) -> Iterator[Feed]:
    """Read lines until the input ends or the process is asked to stop (SIGTERM, SIGINT).

    Only the main thread may call it, since only that may set signal handlers; former ones come back.

    Parameters
    ----------
    source : int
        A file descriptor.

    Yields
    ------
    Feed
        An iterator of lines (bytes), with None wherever no further line is waiting.

    Examples
    --------
    >>> with open("/dev/null") as source, open_feed(source.fileno()) as feed:
    ...     print(list(feed))
    [None]
    """
    feed = Feed(source)
    former = {number: signal.signal(number, feed.stop) for number in STOPPING}
    try:
        yield feed
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        feed.close()
