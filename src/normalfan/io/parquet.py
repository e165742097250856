"""Parquet files that tell when they are damaged.

Most Parquet files have no checksum: a flipped bit is another number, or makes the reader panic or abort.
Those written here carry a SHA-256 of all their bytes (its own 64 digits read as zeros), which is compared
before the reader sees the file.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import re
from pathlib import Path
from typing import IO, Any

import polars

from normalfan.files import damaged

CHECKSUM = "normalfan_sha256"  # its name in the metadata of a Parquet file
BLANK = b"0" * 64
TAIL = 2**20  # the checksum is among the last bytes of a file, this many at most
_STORED = re.compile(CHECKSUM.encode() + rb".{1,8}?([0-9a-f]{64})", flags=re.DOTALL)


def write_parquet(frame: polars.DataFrame, file: IO[bytes]) -> None:
    draft = io.BytesIO()
    frame.write_parquet(draft, metadata={CHECKSUM: BLANK.decode()})
    content = draft.getvalue()
    _, place, digest = checksums(content)
    file.write(content[: place.start] + digest + content[place.stop :])


def read_parquet(path: Path, **options: Any) -> polars.DataFrame:
    """The table of a file; one whose checksum is of other content is refused."""
    if path.stat().st_size:  # nothing cannot be mapped
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            stored, _, digest = checksums(content)
        if stored != digest:
            raise damaged(path)
    return polars.read_parquet(path, glob=False, **options)


def checksums(content: bytes | mmap.mmap) -> tuple[bytes, slice, bytes]:
    """The checksum that a file has, where it is, and what it should be; empty if the file has none."""
    tail = max(len(content) - TAIL, 0)
    found = _STORED.search(content[tail:])
    if found is None:
        return b"", slice(0, 0), b""
    start, stop = (tail + place for place in found.span(1))
    digest = hashlib.sha256()
    with memoryview(content) as view, view[:start] as before, view[stop:] as after:
        for part in (before, BLANK, after):
            digest.update(part)
    return found[1], slice(start, stop), digest.hexdigest().encode()
