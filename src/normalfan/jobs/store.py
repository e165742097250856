"""Results on disk: one Parquet file per cell, there whole or not at all.

    folder/3f/3fa94c….parquet

Anything that reads Parquet may read them, during a run too; several machines may write to one store.
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

    def _path(self, cell: Cell | str) -> Path:
        key = cell if isinstance(cell, str) else cell.key
        # 256 folders: some file systems and most people dislike a million files in one.
        return self.folder / key[:2] / f"{key}.parquet"

    def __contains__(self, cell: Cell | str) -> bool:
        key = cell if isinstance(cell, str) else cell.key
        # Not by pathlib, which interns the parts of every path: this is asked about every cell of a run.
        return os.path.exists(f"{self.folder}/{key[:2]}/{key}.parquet")  # noqa: PTH110

    def read(self, cell: Cell) -> polars.DataFrame:
        """What the task of a cell that is there returned."""
        import polars

        return polars.read_parquet(self._path(cell))

    def seconds(self, cell: Cell) -> float:
        """The processor seconds that a result took, of the thread that ran the task."""
        import polars

        return float(polars.read_parquet_metadata(self._path(cell))["seconds"])

    def _write(self, key: str, result: polars.DataFrame, seconds: float) -> None:
        """Keep the result of the cell with this key."""
        # Into memory first: errors of the disk are then ours to meet, and few large writes reach it.
        content = io.BytesIO()
        result.write_parquet(content, metadata={"seconds": repr(seconds)})
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
