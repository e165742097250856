"""A cell, one computation named by its content, and its result on disk, there whole or not at all.

    folder/3f/3fa94c….parquet

A file has the checksum of all our Parquet files and, in its metadata, the cell's key: one that was damaged,
emptied or renamed is no result, and is computed again.
Anything that reads Parquet may read them, during a run too; several machines may write to one store.

A worker computes a batch of cells and writes each result itself; only counts and messages travel back. A cell
that raises becomes a message; trouble with the store or with the code is trouble for every cell, and raises
`WorkStopped`.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import re
import reprlib
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars

from normalfan.errors import InputError, WorkStopped
from normalfan.files import written_atomically
from normalfan.io.frames import checksums, write_parquet
from normalfan.sources import digest_of_code

ABANDONED_AFTER = 3600.0  # seconds: a draft that nobody touched since belongs to a process that was killed

writing = threading.Lock()  # a worker that is told to end waits for it


@dataclass(frozen=True, slots=True, repr=False)
class Cell:
    """A task and what it is called with.

    Parameters
    ----------
    task : str
        ``"package.module:function"``: takes the settings, returns a ``polars.DataFrame``; random numbers come
        from seeds in the settings only.
    settings, inputs : mapping
        Plain JSON, large data named by path; and digests, by name, of the content of the files it names.

    Examples
    --------
    >>> Cell("normalfan.jobs.cells:echo", {"seed": 3}).compute()["seed"].item()
    3
    """

    task: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)
    _digest: str = field(init=False, compare=False)  # of the settings, which may be long

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+(\.\w+)*:\w+", self.task):
            raise InputError(
                f'task is {self.task!r}, but must name a function of a module as "package.module:function": '
                f"pass its name, not the function."
            )
        object.__setattr__(self, "_digest", _digest_of(self.settings))

    @property
    def key(self) -> str:
        """The name of the result: a digest of all that decides it, with the task's code in this process."""
        code = digest_of_code(self.task.partition(":")[0])
        return _digest_of([self.task, self._digest, self.inputs, code])

    def compute(self) -> polars.DataFrame:
        """Call the task, here and now."""
        module, _, function = self.task.partition(":")
        result = getattr(importlib.import_module(module), function)(self.settings)
        if not isinstance(result, polars.DataFrame):
            raise InputError(
                f"{self.task} returned {type(result).__name__}, but a task must return a polars.DataFrame: "
                f"wrap its result."
            )
        return result

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Cell({self.task!r}, {reprlib.repr(dict(self.settings))})"

    def __str__(self) -> str:
        return f"{self.task} {_canonical(self.settings)}"


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
    >>> Cell("normalfan.jobs.cells:echo", {"seed": 3}) in Store(tempfile.mkdtemp())
    False
    """

    folder: Path

    def __init__(self, folder: str | Path) -> None:
        object.__setattr__(self, "folder", Path(folder).resolve())

    def _file(self, key: str) -> str:
        # 256 folders: some file systems and most people dislike a million files in one. Not a Path, which
        # interns its parts: this is asked for every cell of a run.
        return f"{self.folder}/{key[:2]}/{key}.parquet"

    def __contains__(self, cell: Cell | str) -> bool:
        return bool(self._content(cell if isinstance(cell, str) else cell.key))

    def _content(self, key: str) -> bytes:
        """The bytes of a result; none if there is no file, or it is damaged or another cell's."""
        try:
            if not os.path.isfile(self._file(key)):  # noqa: PTH113  a pipe would be waited for
                return b""
            with open(self._file(key), "rb") as file:  # noqa: PTH123
                content = file.read()
        except OSError:
            return b""  # as good as damaged
        stored, _, digest = checksums(content)
        return content if stored and stored == digest and key.encode() in content else b""

    def read(self, cell: Cell) -> polars.DataFrame:
        """What the task of a cell that is there returned."""
        content = self._content(cell.key)
        if not content:
            raise InputError(
                f"{self._file(cell.key)} is missing or damaged, but it holds the result of {cell!r}: run the "
                f"cell again."
            )
        return polars.read_parquet(io.BytesIO(content))

    def seconds(self, cell: Cell) -> float:
        """The processor seconds that a result took, of the thread that ran the task."""
        return float(polars.read_parquet_metadata(self._file(cell.key))["seconds"])

    def _write(self, key: str, result: polars.DataFrame, seconds: float) -> None:
        path = Path(self._file(key))
        path.parent.mkdir(exist_ok=True)
        with written_atomically(path) as file:
            write_parquet(result, file, cell=key, seconds=repr(seconds))

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


@dataclass(frozen=True, slots=True)
class Batch:
    """Cells that travel together."""

    cells: tuple[tuple[Cell, str], ...]  # each with the key that the client has for it
    deaths: int = 0  # workers that died while they had these cells


@dataclass(slots=True)
class Report:
    """How a batch went."""

    finished: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # number in the batch, why
    timings: list[tuple[str, float]] = field(default_factory=list)  # task, wall-clock seconds of a cell
    deaths: int = 0  # workers that died over the batch; the client says so in their place


def run_batch(store: Store, batch: Batch) -> Report:
    report = Report()
    for i, (cell, key) in enumerate(batch.cells):
        started = time.perf_counter()
        try:
            _check_code(cell, key)
            if key in store:  # a batch that was interrupted comes again whole
                report.finished += 1
                continue
            _compute(store, cell, key)
            report.finished += 1
        except WorkStopped:
            raise
        except Exception as error:  # noqa: BLE001  one failing cell must not end the run
            plain = isinstance(error, InputError)
            report.failures.append((i, str(error) if plain else f"{type(error).__name__}: {error}"))
        report.timings.append((cell.task, time.perf_counter() - started))
    return report


def _check_code(cell: Cell, key: str) -> None:
    """A worker names the cell by its own code: another name than the client's means other code."""
    try:
        same = cell.key == key
    except InputError as error:
        raise WorkStopped(f"The run stopped: a worker cannot go on, because {error}") from None
    if not same:
        raise WorkStopped(
            "The run stopped: a worker runs other code than this process; install the same version of "
            "normalfan, and of the tasks, everywhere, restart the workers, and run the same command again."
        )


def _compute(store: Store, cell: Cell, key: str) -> None:
    started = time.thread_time()
    result = cell.compute()
    seconds = time.thread_time() - started
    try:
        with writing:
            store._write(key, result, seconds)
    except OSError as error:
        raise WorkStopped(
            f"The run stopped: a result could not be written to {store.folder} ({error.strerror or error}); "
            f"make room there or change its permissions, and run the same command again: finished cells stay."
        ) from None


def echo(settings: Mapping[str, Any]) -> polars.DataFrame:
    """The smallest task: its settings, as a frame of one row."""
    return polars.DataFrame([dict(settings)])


def _digest_of(content: Any) -> str:
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def _canonical(content: Any) -> str:
    """One text for one content, whatever the order of its keys."""
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"settings hold something that is not plain JSON ({error}), but a cell is named by them: use "
            f"finite numbers, strings, lists and mappings, and pass arrays by the path of a file."
        ) from None
