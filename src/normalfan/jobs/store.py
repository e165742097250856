"""Results on disk: one Parquet file per cell, there whole or not at all.

    folder/3f/3fa94c….parquet

Files may be read while a sweep goes on, by anything that reads Parquet; a folder may hold the results of many
sweeps. Several machines write to one store through a shared file system.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.jobs.cell import Cell

if TYPE_CHECKING:
    import polars

ABANDONED_AFTER = 3600.0
"""Seconds after which a draft that nobody touched belongs to a process that was killed."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of results."""

    folder: Path

    def __init__(self, folder: str | Path) -> None:
        object.__setattr__(self, "folder", Path(folder).resolve())

    def path(self, cell: Cell) -> Path:
        return self.path_of(cell.key)

    def path_of(self, key: str) -> Path:
        # 256 folders: some file systems and most people dislike a million files in one.
        return self.folder / key[:2] / f"{key}.parquet"

    def __contains__(self, cell: Cell) -> bool:
        return self.holds(cell.key)

    def holds(self, key: str) -> bool:
        # Not by pathlib, which interns the parts of every path: this is asked about every cell of a sweep.
        return os.path.exists(f"{self.folder}/{key[:2]}/{key}.parquet")  # noqa: PTH110

    def read(self, cell: Cell) -> polars.DataFrame:
        import polars

        return polars.read_parquet(self.path(cell))

    def seconds(self, cell: Cell) -> float:
        """CPU seconds that the task took, on the thread that ran it."""
        import polars

        return float(polars.read_parquet_metadata(self.path(cell))["seconds"])

    def write(self, key: str, result: polars.DataFrame, seconds: float) -> None:
        # Into memory first: errors of the disk are then ours to meet, and few large writes reach it.
        content = io.BytesIO()
        result.write_parquet(content, metadata={"seconds": repr(seconds)})
        path = self.path_of(key)
        path.parent.mkdir(exist_ok=True)
        with written_atomically(path) as file:
            file.write(content.getbuffer())

    def prepare(self) -> None:
        """Create the folder, make sure that it can be written to, and drop what killed runs left behind."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise InputError(
                f"{self.folder} cannot be written to ({error.strerror}), but results are kept there: choose "
                f"another folder, or change its permissions."
            ) from None
        for draft in self.folder.glob("??/.*.parquet.*"):
            try:
                if time.time() - draft.stat().st_mtime > ABANDONED_AFTER:
                    draft.unlink()
            except FileNotFoundError:
                continue  # its writer has just finished
