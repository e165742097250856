"""A file with one bit flipped: one bit of each byte, or with `SOAK=1` every bit."""

from __future__ import annotations

import os
from collections.abc import Iterator


def flips(whole: bytes) -> Iterator[bytes]:
    soak = bool(os.environ.get("SOAK"))
    for at in range(len(whole)):
        for bit in range(8) if soak else [(at + at // 8) % 8]:
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            yield bytes(flipped)
