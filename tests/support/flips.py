"""A file with one bit flipped: one bit of each byte, or with `SOAK=1` every bit."""

from __future__ import annotations

from collections.abc import Iterator

from soaking import SOAK


def flips(whole: bytes) -> Iterator[bytes]:
    for at in range(len(whole)):
        for bit in range(8) if SOAK else [(at + at // 8) % 8]:
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            yield bytes(flipped)
