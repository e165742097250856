"""Tables of labels and numbers, from CSV, Parquet or frames.

All tables of users are read here. Empty lines, spaces around entries and any order of columns are allowed; an
unknown column is refused: a misspelt `state` would otherwise mean "the same in every state".
Labels are text, also those that look like numbers, in the order in which they first appear. Errors name the
line of a CSV file (the header is line 1) or the row of a Parquet file (the first is row 1).
"""

from __future__ import annotations

import gzip
import math
import string
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from normalfan.errors import InputError, check_choice
from normalfan.files import written_atomically
from normalfan.io.parquet import read_parquet, write_parquet
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.mdp import MDP

if TYPE_CHECKING:
    import polars

# A .csv, .csv.gz or .parquet file, a folder of .parquet files that are one table, "-" for standard input, or
# a frame of polars or pandas.
TableSource: TypeAlias = Any

SUFFIXES = (".csv", ".csv.gz", ".parquet")
FORBIDDEN = "forbidden"  # stands for the number of a cell whose action is not allowed
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
FRAME, STDIN = Path("the frame"), Path("standard input")  # what a sentence calls a table that has no path
_PLACE = "__place__"  # the column with each row's line or row number


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV table is written; the options of every table that a user names."""

    separator: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        check_choice("decimal", self.decimal, (".", ","))
        if self.separator not in set(string.punctuation + "\t") - set("\"'.-+_"):
            raise InputError(
                f"separator is {self.separator!r}, but must be one sign that separates entries: pass one, "
                f"such as ';'."
            )
        if self.separator == self.decimal:
            raise InputError(
                f"separator and decimal are both {self.decimal!r}, but 1{self.decimal}5 could then be one "
                f"entry or two: pass the separator, such as --separator ';'."
            )


COMMAS = Dialect()


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read, and where it came from."""

    path: Path
    frame: polars.DataFrame
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        return [name for name in self.frame.columns if name != _PLACE]

    def where(self, row: int) -> str:
        """How a person finds a row again."""
        noun = "line" if _is_csv(self.path) else "row"
        return f"{self.path}, {noun} {self.frame[_PLACE][row]}"

    def text(self, column: str) -> polars.Series:
        """A column of labels, none of them missing."""
        import polars

        given = self.frame[column]
        if given.dtype.is_nested() or given.dtype in (polars.Binary, polars.Duration):
            raise self._unreadable(column, "names are text, numbers or dates")
        labels = _dates(given) if given.dtype == polars.Datetime else given.cast(polars.String)
        missing = (labels.is_null() | (labels == "")).fill_null(True)
        if missing.any():
            raise InputError(
                f"{self.where(int(missing.arg_max() or 0))} has no {column}, but every row needs one: "
                f"fill it in or drop the row."
            )
        return labels

    def flags(self, column: str) -> BoolArray:
        """A column of true and false, or 1 and 0."""
        import polars

        entries = self.text(column).str.to_lowercase()
        known = entries.replace_strict(_FLAGS, default=None, return_dtype=polars.Boolean)
        if known.has_nulls():
            row = int(known.is_null().arg_max() or 0)
            raise InputError(
                f"{self.where(row)} has {entries[row]!r} as {column}, but it is true or false, or 1 or 0: "
                f"correct it."
            )
        return known.to_numpy()

    def forbidden(self, column: str, number: float = np.inf) -> BoolArray:
        """The rows that have, instead of a number, the word forbidden or an infinite `number`."""
        import polars

        given = self.frame[column]
        if not (given.dtype.is_float() or given.dtype == polars.String):
            return np.zeros(len(given), dtype=bool)
        words = given.cast(polars.String).str.to_lowercase()
        return words.is_in([FORBIDDEN, str(number), f"{number:+}"]).fill_null(False).to_numpy()

    def numbers(self, column: str, marked: BoolArray | None = None, instead: float = np.nan) -> FloatArray:
        """A column of finite numbers; rows that are `marked` need none and get another number `instead`."""
        import polars

        given = self.frame[column]
        if not (given.dtype.is_numeric() or given.dtype in (polars.String, polars.Null)):
            raise self._unreadable(column, "it must have numbers")
        text = given
        if self.decimal == "," and given.dtype == polars.String:
            # A point could group digits, so that no number may have one.
            text = given.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
        numbers = text.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy()
        bad = ~np.isfinite(numbers)
        if marked is not None:
            bad &= ~marked
            numbers = np.where(marked, instead, numbers)
        if bad.any():
            row = int(bad.argmax())
            shown = "nothing" if given[row] is None else repr(given[row])
            remedy = "correct it or drop the row"
            if self.decimal == "." and "," in shown:
                remedy = "if the comma is a decimal one, pass --decimal , (decimal=',')"
            raise InputError(
                f"{self.where(row)} has {shown} as {column}, but every {column} must be a finite number: "
                f"{remedy}."
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

    def cells(self, names: Mapping[str, Sequence[str]]) -> IntArray:
        """[n]: each row's place in the array with these columns as axes, flattened; no two rows share one."""
        import polars

        cells = np.zeros(len(self), dtype=np.int64)
        for column, known in names.items():
            cells = cells * len(known) + self.codes(column, known)
        again = ~polars.Series(cells).is_first_distinct()
        if again.any():
            row = int(again.arg_max() or 0)
            before = int((cells == cells[row]).argmax())
            entries = ", ".join(f"{name} {self.frame[name][row]}" for name in names)
            raise InputError(
                f"{self.where(row)} repeats {entries} of {self.where(before).rpartition(', ')[2]}, but each "
                f"may appear once: drop one of the two rows."
            )
        return cells

    def _unreadable(self, column: str, rule: str) -> InputError:
        return InputError(
            f"{self.path} has a column {column!r} of type {self.frame[column].dtype}, but {rule}: convert it."
        )


def path_of(source: TableSource) -> Path:
    """The path of a table, or what stands for it in sentences."""
    if not isinstance(source, str | Path):
        return FRAME
    return STDIN if str(source) == "-" else Path(source)


def suffix_of(path: Path) -> str:
    """The suffix that decides about a format."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def _is_csv(path: Path) -> bool:
    return path is STDIN or suffix_of(path).startswith(".csv")


def is_table(source: TableSource) -> bool:
    """Whether `read_table` would read it."""
    path = path_of(source)
    return path in (FRAME, STDIN) or path.is_dir() or suffix_of(path) in SUFFIXES


def read_table(
    source: TableSource,
    required: Sequence[str],
    optional: Sequence[str] | None = (),
    dialect: Dialect = COMMAS,
) -> Table:
    """A table with a row and the `required` columns; `optional` are others it may have (None: any)."""
    import polars

    path = path_of(source)
    if not is_table(source):
        raise unknown_suffix(existing_file(path), "a table is a .csv or .parquet file")
    frame = _read_frame(source, dialect)
    entries = [name for name in frame.columns if name != _PLACE]
    check_columns(path, entries, required, optional)
    filled = frame.filter(~polars.all_horizontal(polars.col(entries).is_null()))
    if not len(filled):
        raise InputError(f"{path} has no rows, but a table needs at least one: check how it was written.")
    return Table(path, filled, dialect.decimal)


def write_table(frame: polars.DataFrame, path: Path) -> None:
    with written_atomically(path) as file:
        if path.suffix == ".gz":
            file.write(gzip.compress(frame.write_csv().encode(), mtime=0))
        else:
            frame.write_csv(file) if path.suffix == ".csv" else write_parquet(frame, file)


def existing_file(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path} is a directory, but a file is needed: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist, but a file is needed: check the path.")
    return path


def unknown_suffix(path: Path, rule: str) -> InputError:
    ending = f"ends in {suffix_of(path)!r}" if path.suffix else "has no suffix"
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


def _check_separator(path: Path, columns: Sequence[str]) -> None:
    """Refuse a header that was not taken apart."""
    sign = next((sign for sign in ";\t|," if len(columns) == 1 and sign in columns[0]), None)
    if sign:
        raise InputError(
            f"{path} has one column {columns[0]!r}, but a table has several: if {sign!r} separates them, "
            f"pass it with --separator (separator={sign!r})."
        )


def _read_frame(source: TableSource, dialect: Dialect) -> polars.DataFrame:
    import polars

    path = path_of(source)
    if path is FRAME:
        return _as_polars(source).with_row_index(_PLACE, offset=1)
    try:
        if path.is_dir():
            return _read_frame(_read_parts(path), dialect)
        if _is_csv(path):
            content = _standard_input(sys.stdin) if path is STDIN else existing_file(path)
            read = partial(
                polars.read_csv, content, separator=dialect.separator, infer_schema=False, glob=False
            )
            _check_separator(path, read(n_rows=0).columns)
            frame = read(row_index_name=_PLACE, row_index_offset=2)
            return frame.with_columns(polars.col(polars.String).str.strip_chars())
        return read_parquet(existing_file(path)).with_row_index(_PLACE, offset=1)
    except polars.exceptions.NoDataError:
        raise InputError(f"{path} is empty, but a table needs a header and rows: check the file.") from None
    except InputError:
        raise
    except (Exception, polars.exceptions.PanicException) as error:
        if isinstance(error, OSError) and path.suffix != ".gz":
            raise
        reason = (str(error) or "an error of its reader").splitlines()[0].strip().rstrip(".:")
        kind = "table of separated entries in UTF-8" if _is_csv(path) else "Parquet table"
        raise InputError(f"{path} cannot be read ({reason}), but must be a {kind}: write it again.") from None


@lru_cache(maxsize=1)
def _standard_input(stream: Any) -> bytes:
    """All of it, which can be read once only; a command may look at its losses again."""
    return bytes(stream.buffer.read())


def _as_polars(frame: Any) -> polars.DataFrame:
    """A frame of polars as it is; one of pandas column by column: polars itself would need pyarrow."""
    import polars

    if isinstance(frame, polars.DataFrame):
        return frame
    if not (hasattr(frame, "reset_index") and hasattr(frame, "columns")):
        raise InputError(
            f"a table is given as {type(frame).__name__}, but it must be a file, or a frame of polars or "
            f"pandas: convert it."
        )
    named = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    return polars.DataFrame([_column(str(name), named[name]) for name in named.columns])


def _column(name: str, given: Any) -> polars.Series:
    import polars

    values = given.to_numpy()
    if values.dtype.kind == "M":
        return polars.Series(name, values.astype("datetime64[us]"))
    if values.dtype.kind in "biuf":
        return polars.Series(name, values)
    missing = given.isna().to_numpy()
    texts = [None if lost else str(one) for one, lost in zip(values, missing, strict=True)]
    return polars.Series(name, texts, dtype=polars.String)


def _dates(times: polars.Series) -> polars.Series:
    """Days if that is all they are, else days and times, in ISO format."""
    import polars

    days = times.cast(polars.Date)
    if (days.cast(times.dtype) == times).all():
        return days.cast(polars.String)
    zone = "%:z" if getattr(times.dtype, "time_zone", None) else ""
    return times.dt.to_string("%Y-%m-%dT%H:%M:%S%.f" + zone)


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
                f"{path} has the columns {', '.join(columns)}, but needs {', '.join(required)}: add or "
                f"rename {name}."
            )
    for name in columns:
        if optional is not None and name not in {*required, *optional}:
            also = f" and may have {', '.join(optional)}" if optional else ""
            raise InputError(
                f"{path} has a column {name!r}, but it needs {', '.join(required)}{also}: "
                f"rename or drop that column."
            )
