"""Lines as they arrive.

A feed is an iterator of lines with None, a pause, wherever no further input is waiting: the moment to commit
what was priced. If lines are sent one by one, there is a pause after each. If they are sent faster than they
are priced, many lines share a pause, and so a commit.

A request to stop (SIGTERM, SIGINT) ends the feed between two lines, as if the input had ended there.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from typing import Self

CHUNK = 2**16
"""Bytes read at a time: the capacity of a pipe."""

LONGEST_LINE = 2**24
"""Bytes that a line may have, unless the user allows more."""

GRACE = 1.0
"""Seconds for which a full pipe is waited for after the request to stop."""

STOPPING = (signal.SIGTERM, signal.SIGINT)


class Feed:
    """Lines from the file descriptor `source`; while none arrive, a pause every `patience` seconds, if any.

    A longer line than `longest` is cut one byte above that, so that the rest of it takes no memory. Only the
    main thread may open it by `with`, since only that may set signal handlers; former ones come back.
    """

    def __init__(self, source: int, *, longest: int = LONGEST_LINE, patience: float | None = None) -> None:
        self.source = source
        self.longest = longest
        self.patience = patience
        self._stopped = False

    def __enter__(self) -> Self:
        self._wake, self._waker = os.pipe()
        self._former = {number: signal.signal(number, self.stop) for number in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._waker)

    def stop(self, *_: object) -> None:
        """End the feed before its next line; can be called from a signal handler."""
        if not self._stopped:
            self._stopped = True
            os.write(self._waker, b".")

    def __iter__(self) -> Iterator[bytes | None]:
        begun, paused = bytearray(), True
        while not self._stopped:
            # Waiting for both wakes us when a signal arrives; reading alone would go on waiting.
            ready, _, _ = select.select([self.source, self._wake], [], [], self.patience if paused else 0)
            if self.source not in ready:
                paused = True
                yield None
                continue
            chunk = os.read(self.source, CHUNK)
            # At the end, a line that its sender did not finish is not JSON, and is reported as that.
            *ends, rest = chunk.split(b"\n") if chunk or not begun else (b"", b"")
            for end in ends:
                if self._stopped:
                    return
                begun += end[: self.longest + 1 - len(begun)]
                yield bytes(begun)
                begun.clear()
                paused = False
            begun += rest[: self.longest + 1 - len(begun)]
            if not chunk:
                yield None
                return

    def write(self, target: int, data: bytes) -> int:
        """Write, however slow the reader is; returns how many bytes went before a request to stop."""
        done = 0
        while done < len(data):
            sources, patience = ([], GRACE) if self._stopped else ([self._wake], None)
            _, free, _ = select.select(sources, [target], [], patience)
            if free:  # a pipe with room takes so much without waiting
                done += os.write(target, data[done : done + select.PIPE_BUF])
            elif not sources:
                break
        return done
