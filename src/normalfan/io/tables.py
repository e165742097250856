"""Tables of labels and numbers, from CSV or Parquet.

All tables of users are read here. Empty lines, spaces around entries and any order of columns are allowed; an
unknown column is refused: a misspelt `state` would otherwise mean "the same in every state".
Labels are text, also those that look like numbers, in the order in which they first appear. Errors name the
line of a CSV file (the header is line 1) or the row of a Parquet file (the first is row 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.io.parquet import read_parquet, write_parquet
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.mdp import MDP

if TYPE_CHECKING:
    import polars

# A .csv or .parquet file, a folder of .parquet files that are one table, or a frame.
TableSource: TypeAlias = "str | Path | polars.DataFrame"

SUFFIXES = (".csv", ".parquet")
FRAME = Path("the frame")  # what a sentence calls a table that has no path
_PLACE = "__place__"  # the column with each row's line or row number


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read, and where it came from."""

    path: Path
    frame: polars.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        return [name for name in self.frame.columns if name != _PLACE]

    def where(self, row: int) -> str:
        """How a person finds a row again."""
        noun = "line" if self.path.suffix == ".csv" else "row"
        return f"{self.path}, {noun} {self.frame[_PLACE][row]}"

    def text(self, column: str) -> polars.Series:
        """A column of labels, none of them missing."""
        import polars

        given = self.frame[column]
        if given.dtype.is_nested() or given.dtype in (polars.Binary, polars.Duration):
            raise self._unreadable(column, "names are text, numbers or dates")
        labels = given.cast(polars.String)
        missing = (labels.is_null() | (labels == "")).fill_null(True)
        if missing.any():
            raise InputError(
                f"{self.where(int(missing.arg_max() or 0))} has no {column}, but every row needs one: "
                f"fill it in or drop the row."
            )
        return labels

    def numbers(self, column: str) -> FloatArray:
        """A column of finite numbers."""
        import polars

        given = self.frame[column]
        if not (given.dtype.is_numeric() or given.dtype in (polars.String, polars.Null)):
            raise self._unreadable(column, "it must have numbers")
        numbers = given.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy()
        bad = ~np.isfinite(numbers)
        if bad.any():
            row = int(bad.argmax())
            shown = "nothing" if given[row] is None else repr(given[row])
            raise InputError(
                f"{self.where(row)} has {shown} as {column}, but every {column} must be a finite number: "
                f"correct it or drop the row."
            )
        return np.ascontiguousarray(numbers)

    def codes(self, column: str, names: Sequence[str]) -> IntArray:
        """The index in `names` of each label of a column; a label that is not there is refused."""
        import polars

        labels = self.text(column)
        codes = labels.cast(polars.Enum(names), strict=False).to_physical()
        unknown = codes.is_null()
        if unknown.any():
            row = int(unknown.arg_max() or 0)
            raise InputError(
                f"{self.where(row)} names the {column} {labels[row]!r}, but the known ones are "
                f"{_first_few(names)}: correct the label."
            )
        return codes.cast(polars.Int64).to_numpy()

    def check_no_repeats(self, cells: IntArray, columns: Sequence[str]) -> None:
        """Refuse two rows for one cell, given each row's cell as a number; `columns` name it."""
        import polars

        again = ~polars.Series(cells).is_first_distinct()
        if not again.any():
            return
        row = int(again.arg_max() or 0)
        before = int((cells == cells[row]).argmax())
        entries = ", ".join(f"{name} {self.frame[name][row]}" for name in columns)
        raise InputError(
            f"{self.where(row)} repeats {entries} of {self.where(before).rpartition(', ')[2]}, but each may "
            f"appear once: drop one of the two rows."
        )

    def _unreadable(self, column: str, rule: str) -> InputError:
        return InputError(
            f"{self.path} has a column {column!r} of type {self.frame[column].dtype}, but {rule}: convert it."
        )


def path_of(source: TableSource) -> Path:
    """The path of a table, or what stands for it in sentences."""
    return Path(source) if isinstance(source, str | Path) else FRAME


def is_table(source: TableSource) -> bool:
    """Whether `read_table` would read it."""
    path = path_of(source)
    return path is FRAME or path.is_dir() or path.suffix in SUFFIXES


def read_table(source: TableSource, required: Sequence[str], optional: Sequence[str] | None = ()) -> Table:
    """A table with a row and the `required` columns; `optional` are others it may have (None: any)."""
    import polars

    path = path_of(source)
    if not is_table(source):
        raise unknown_suffix(existing_file(path), "a table is a .csv or .parquet file")
    frame = _read_frame(source)
    entries = [name for name in frame.columns if name != _PLACE]
    check_columns(path, entries, required, optional)
    filled = frame.filter(~polars.all_horizontal(polars.col(entries).is_null()))
    if not len(filled):
        raise InputError(f"{path} has no rows, but a table needs at least one: check how it was written.")
    return Table(path, filled)


def write_table(frame: polars.DataFrame, path: Path) -> None:
    with written_atomically(path) as file:
        frame.write_csv(file) if path.suffix == ".csv" else write_parquet(frame, file)


def existing_file(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path} is a directory, but a file is needed: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist, but a file is needed: check the path.")
    return path


def unknown_suffix(path: Path, rule: str) -> InputError:
    ending = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
    return InputError(f"{path} {ending}, but {rule}: convert it, or check the name.")


def distinct(labels: polars.Series) -> list[str]:
    """Each label once, as they first appear."""
    names: list[str] = labels.unique(maintain_order=True).to_list()
    return names


def state_index(start: str | int, states: Sequence[str]) -> int:
    """A state by its label; states without labels go by their index, as text."""
    if str(start) not in states:
        raise InputError(
            f"start is {start!r}, but the states are called {_first_few(states)}: name one of them."
        )
    return list(states).index(str(start))


def names_or_none(names: Sequence[str]) -> tuple[str, ...] | None:
    """None where the names say no more than the indices do."""
    return None if list(names) == [str(i) for i in range(len(names))] else tuple(names)


def names_along(mdp: MDP) -> dict[str, list[str]]:
    """What the steps, states and actions of a problem are called, in order."""
    called = {"step": mdp.labels.step, "state": mdp.labels.state, "action": mdp.labels.action}
    return {
        kind: [name(i) for i in range(size)]
        for (kind, name), size in zip(called.items(), mdp.shape, strict=True)
    }


def label_columns(names: Mapping[str, Sequence[str]], codes: Iterable[IntArray]) -> dict[str, polars.Series]:
    """A column of labels for each kind of name, from their indices: what `Table.codes` reads back."""
    import polars

    return {
        column: polars.Series(known, dtype=polars.String).gather(code)
        for (column, known), code in zip(names.items(), codes, strict=True)
    }


def first_missing(cells: IntArray, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The first index of an array of this shape that is not among the distinct (flat) `cells`."""
    if len(cells) == math.prod(shape):
        return None
    gaps = np.flatnonzero(np.sort(cells) != np.arange(len(cells)))
    first = gaps[0] if len(gaps) else len(cells)
    return tuple(int(i) for i in np.unravel_index(first, shape))


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")


def _read_frame(source: TableSource) -> polars.DataFrame:
    import polars

    if isinstance(source, polars.DataFrame):
        return source.with_row_index(_PLACE, offset=1)
    path = Path(source)
    try:
        if path.is_dir():
            return _read_frame(_read_parts(path))
        if existing_file(path).suffix == ".csv":
            frame = polars.read_csv(
                path, infer_schema=False, row_index_name=_PLACE, row_index_offset=2, glob=False
            )
            return frame.with_columns(polars.col(polars.String).str.strip_chars())
        return read_parquet(path).with_row_index(_PLACE, offset=1)
    except polars.exceptions.NoDataError:
        raise InputError(f"{path} is empty, but a table needs a header and rows: check the file.") from None
    except (InputError, OSError):
        raise
    except (Exception, polars.exceptions.PanicException) as error:  # noqa: BLE001  panics are no Exception
        reason = (str(error) or "an error of its reader").splitlines()[0].strip().rstrip(".:")
        kind = "comma-separated table in UTF-8" if path.suffix == ".csv" else "Parquet table"
        raise InputError(f"{path} cannot be read ({reason}), but must be a {kind}: write it again.") from None


def _read_parts(folder: Path) -> polars.DataFrame:
    """The Parquet files of a folder, in the order of their names, as one table."""
    import polars

    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise InputError(f"{folder} has no .parquet file, but a folder that is a table needs one: check it.")
    frame = polars.concat([read_parquet(file, hive_partitioning=False) for file in files])
    # A part of a partitioned dataset is called COLUMN=VALUE, and some writers leave that column in its files.
    column, is_part, _ = folder.name.partition("=")
    return frame.drop(column, strict=False) if is_part else frame


def check_columns(
    path: Path, columns: Sequence[str], required: Sequence[str], optional: Sequence[str] | None
) -> None:
    """Refuse a table without a column that it needs, and one with a column that nobody asked for."""
    for name in required:
        if name not in columns:
            raise InputError(
                f"{path} has the columns {', '.join(columns)}, but needs {', '.join(required)}, separated by "
                f"commas: add or rename {name}."
            )
    for name in columns:
        if optional is not None and name not in {*required, *optional}:
            also = f" and may have {', '.join(optional)}" if optional else ""
            raise InputError(
                f"{path} has a column {name!r}, but it needs {', '.join(required)}{also}: "
                f"rename or drop that column."
            )
