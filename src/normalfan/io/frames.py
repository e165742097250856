"""Where tables come from: CSV and Parquet files, standard input, frames of polars and pandas.

Most Parquet files have no checksum: a flipped bit is another number, or makes the reader panic or abort.
Those written here carry a SHA-256 of all their bytes (its own 64 digits read as zeros), which is compared
before the reader sees the file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import mmap
import re
import string
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import polars

from normalfan.errors import InputError, check_choice
from normalfan.files import CHECKSUM, damaged, written_atomically

# A .csv, .csv.gz or .parquet file, a folder of .parquet files that are one table, "-" for standard input, or
# a frame of polars or pandas.
TableSource: TypeAlias = Any

SUFFIXES = (".csv", ".csv.gz", ".parquet")
FRAME, STDIN = Path("the frame"), Path("standard input")  # what a sentence calls a table that has no path
BLANK = b"0" * 64
TAIL = 2**20  # the checksum is among the last bytes of a file, this many at most
_STORED = re.compile(CHECKSUM.encode() + rb".{1,8}?([0-9a-f]{64})", flags=re.DOTALL)


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


def path_of(source: TableSource) -> Path:
    """The path of a table, or what stands for it in sentences."""
    if not isinstance(source, str | Path):
        return FRAME
    return STDIN if str(source) == "-" else Path(source)


def suffix_of(path: Path) -> str:
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def is_csv(path: Path) -> bool:
    return path is STDIN or suffix_of(path).startswith(".csv")


def is_table(path: Path) -> bool:
    """Whether `read_frame` would read it."""
    return path in (FRAME, STDIN) or path.is_dir() or suffix_of(path) in SUFFIXES


def write_table(frame: polars.DataFrame, path: Path) -> None:
    with written_atomically(path) as file:
        if path.suffix == ".gz":
            file.write(gzip.compress(frame.write_csv().encode(), mtime=0))
        else:
            frame.write_csv(file) if path.suffix == ".csv" else write_parquet(frame, file)


def existing_file(path: Path) -> Path:
    if path.is_dir():
        raise InputError(f"{path} is a directory, but a file is needed: name a file in it.")
    if not path.exists():
        raise InputError(f"{path} does not exist, but a file is needed: check the path.")
    return path


def unknown_suffix(path: Path, rule: str) -> InputError:
    ending = f"ends in {suffix_of(path)!r}" if path.suffix else "has no suffix"
    return InputError(f"{path} {ending}, but {rule}: convert it, or check the name.")


def read_frame(source: TableSource, dialect: Dialect) -> polars.DataFrame:
    """A table as it is; entries of CSV are text."""
    path = path_of(source)
    if path is FRAME:
        return _as_polars(source)
    if not is_table(path):
        raise unknown_suffix(existing_file(path), "a table is a .csv or .parquet file")
    try:
        if path.is_dir():
            return _read_parts(path)
        if not is_csv(path):
            return read_parquet(existing_file(path))
        content = _standard_input(sys.stdin) if path is STDIN else existing_file(path)
        read = partial(polars.read_csv, content, separator=dialect.separator, infer_schema=False, glob=False)
        columns = read(n_rows=0).columns
        sign = next((sign for sign in ";\t|," if len(columns) == 1 and sign in columns[0]), None)
        if sign:
            raise InputError(
                f"{path} has one column {columns[0]!r}, but a table has several: if {sign!r} separates them, "
                f"pass it with --separator (separator={sign!r})."
            )
        return read().with_columns(polars.col(polars.String).str.strip_chars())
    except polars.exceptions.NoDataError:
        raise InputError(f"{path} is empty, but a table needs a header and rows: check the file.") from None
    except InputError:
        raise
    except (Exception, polars.exceptions.PanicException) as error:
        if isinstance(error, OSError) and path.suffix != ".gz":
            raise
        reason = (str(error) or "an error of its reader").splitlines()[0].strip().rstrip(".:")
        kind = "table of separated entries in UTF-8" if is_csv(path) else "Parquet table"
        raise InputError(f"{path} cannot be read ({reason}), but must be a {kind}: write it again.") from None


@lru_cache(maxsize=1)
def _standard_input(stream: Any) -> bytes:
    """All of it, which can be read once only; a command may look at its losses again."""
    return bytes(stream.buffer.read())


def _as_polars(frame: Any) -> polars.DataFrame:
    """A frame of polars as it is; one of pandas column by column: polars itself would need pyarrow."""
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
    values = given.to_numpy()
    if values.dtype.kind == "M":
        return polars.Series(name, values.astype("datetime64[us]"))
    if values.dtype.kind in "biuf":
        return polars.Series(name, values)
    missing = given.isna().to_numpy()
    texts = [None if lost else str(one) for one, lost in zip(values, missing, strict=True)]
    return polars.Series(name, texts, dtype=polars.String)


def _read_parts(folder: Path) -> polars.DataFrame:
    """The Parquet files of a folder, in the order of their names, as one table."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise InputError(f"{folder} has no .parquet file, but a folder that is a table needs one: check it.")
    frame = polars.concat([read_parquet(file, hive_partitioning=False) for file in files])
    # A part of a partitioned dataset is called COLUMN=VALUE, and some writers leave that column in its files.
    column, is_part, _ = folder.name.partition("=")
    return frame.drop(column, strict=False) if is_part else frame


def write_parquet(frame: polars.DataFrame, file: IO[bytes], **metadata: str) -> None:
    # Into memory first: errors of the disk are then ours to meet, and few large writes reach it.
    draft = io.BytesIO()
    frame.write_parquet(draft, metadata={**metadata, CHECKSUM: BLANK.decode()})
    content = draft.getvalue()
    _, place, digest = checksums(content)
    file.write(content[: place.start] + digest + content[place.stop :])


def read_parquet(path: Path, **options: Any) -> polars.DataFrame:
    """The table of a file; one whose checksum is of other content is refused."""
    if path.stat().st_size:  # an empty file cannot be mapped
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
