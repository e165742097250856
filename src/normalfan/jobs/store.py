"""Results on disk: one Parquet file per cell, there whole or not at all.

    folder/3f/3fa94c….parquet

The metadata of a file hold the cell's key and a checksum of all other bytes: a file that was damaged, emptied
or renamed is no result, and is computed again.
Anything that reads Parquet may read them, during a run too; several machines may write to one store.
"""

from __future__ import annotations

import hashlib
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

CHECKSUM = 64  # digits
ABANDONED_AFTER = 3600.0  # seconds: a draft that nobody touched since belongs to a process that was killed


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of results; ``cell in store`` says whether a cell's is there.

    Parameters
    ----------
    folder : str or Path
        Where the files are; a run creates it.

    Examples
    --------
    >>> import tempfile
    >>> Cell("normalfan.jobs.cell:echo", {"seed": 3}) in Store(tempfile.mkdtemp())
    False
    """

    folder: Path

    def __init__(self, folder: str | Path) -> None:
        object.__setattr__(self, "folder", Path(folder).resolve())

    def _file(self, key: str) -> str:
        # 256 folders: some file systems and most people dislike a million files in one. Not a Path, which
        # interns its parts: this is asked for every cell of a run.
        return f"{self.folder}/{key[:2]}/{key}.parquet"

    def _path(self, cell: Cell | str) -> Path:
        return Path(self._file(cell if isinstance(cell, str) else cell.key))

    def __contains__(self, cell: Cell | str) -> bool:
        key = cell if isinstance(cell, str) else cell.key
        return _is_sound(self._content(key), key)

    def _content(self, key: str) -> bytes:
        """The bytes of a result; none if there is no file, or none that can be read."""
        try:
            if os.path.isfile(self._file(key)):  # noqa: PTH113  a pipe would be waited for
                with open(self._file(key), "rb") as file:  # noqa: PTH123
                    return file.read()
        except OSError:
            pass  # as good as damaged
        return b""

    def read(self, cell: Cell) -> polars.DataFrame:
        """What the task of a cell that is there returned."""
        import polars

        content = self._content(cell.key)
        if not _is_sound(content, cell.key):
            raise InputError(
                f"{self._path(cell)} is missing or damaged, but it holds the result of {cell!r}: run the "
                f"cell again."
            )
        return polars.read_parquet(io.BytesIO(content))

    def seconds(self, cell: Cell) -> float:
        """The processor seconds that a result took, of the thread that ran the task."""
        import polars

        return float(polars.read_parquet_metadata(self._path(cell))["seconds"])

    def _write(self, key: str, result: polars.DataFrame, seconds: float) -> None:
        # Into memory first: errors of the disk are then ours to meet, and few large writes reach it.
        content = io.BytesIO()
        open_seal = f"{key}:{'0' * CHECKSUM}"
        result.write_parquet(content, metadata={"seconds": repr(seconds), "seal": open_seal})
        place, checksum = _seal(content.getvalue(), key)
        content.seek(place)
        content.write(checksum)
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        with written_atomically(path) as file:
            file.write(content.getbuffer())

    def _prepare(self) -> None:
        """Create the folder, check that it can be written to, and remove what killed runs left behind."""
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


def _seal(content: bytes, key: str) -> tuple[int, bytes]:
    """Where the file of the cell with this key has its checksum, and that of all other bytes."""
    place = content.rfind(f"{key}:".encode()) + len(key) + 1
    parts = memoryview(content)
    digest = hashlib.sha256(parts[:place])
    digest.update(parts[place + CHECKSUM :])
    return place, digest.hexdigest().encode()


def _is_sound(content: bytes, key: str) -> bool:
    if f"{key}:".encode() not in content:
        return False  # empty, or another cell's
    place, checksum = _seal(content, key)
    return content[place : place + CHECKSUM] == checksum
