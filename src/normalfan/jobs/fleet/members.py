"""Who is in a fleet, read a slice at a time: the client never holds a million rows.

A table has one row for each member, with the columns

    member, model, losses                                 its name, and where its problem and its losses are
    features, default, axes, horizon, start, rewards      as in `normalfan price`; each may be left out, as a
                                                          column or in a row

Relative paths start at the table's folder. A dataset of streams is a folder `member=NAME` for each member,
with its losses in Parquet files; all share one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from normalfan.errors import InputError

if TYPE_CHECKING:
    import polars

REQUIRED = ("member", "model", "losses")
OPTIONAL = ("features", "default", "axes", "horizon", "start", "rewards")
PATHS = ("model", "losses", "features")

ROWS_AT_ONCE = 8192
"""Rows of a table that are read together."""

NAMES_AT_ONCE = 1_000_000
"""Names that are compared with each other together."""

PREFIX = "member="


class Members(Protocol):
    """The members of a fleet, in an order that stays."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One mapping of REQUIRED and some of OPTIONAL for each member; paths are absolute."""
        ...


def members_of_table(path: str | Path) -> Members:
    return _Table(_checked_table(Path(path)))


def members_of_dataset(
    model: str | Path,
    folder: str | Path,
    *,
    features: str | Path | None = None,
    default: float | None = None,
    horizon: int | None = None,
    start: str | None = None,
    rewards: bool = False,
) -> Members:
    root = Path(folder).absolute()
    if not root.is_dir():
        raise InputError(
            f"{root} is not a directory, but a dataset of streams is one with a folder {PREFIX}NAME for each "
            f"member: check the path."
        )
    names = sorted(entry.name for entry in root.iterdir() if entry.name.startswith(PREFIX))
    if not names:
        raise InputError(
            f"{root} holds no folder {PREFIX}NAME, but a dataset of streams has one for each member: write "
            f'it partitioned by "member".'
        )
    options = {"default": default, "horizon": horizon, "start": start, "rewards": rewards or None}
    shared = {"model": _located(str(model), Path.cwd())}
    if features is not None:
        shared["features"] = _located(str(features), Path.cwd())
    given = {name: value for name, value in options.items() if value is not None}
    return _Dataset(root, names, shared | given)


@dataclass(frozen=True, slots=True)
class _Table:
    path: Path

    def __len__(self) -> int:
        import polars

        return int(polars.scan_parquet(self.path).select(polars.len()).collect().item())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import polars

        rows = polars.scan_parquet(self.path)
        for first in range(0, len(self), ROWS_AT_ONCE):
            for row in rows.slice(first, ROWS_AT_ONCE).collect().iter_rows(named=True):
                given = {name: value for name, value in row.items() if value is not None}
                located = {name: _located(given[name], self.path.parent) for name in PATHS if name in given}
                yield given | {"member": str(row["member"])} | located


@dataclass(frozen=True, slots=True)
class _Dataset:
    root: Path
    names: list[str]
    shared: dict[str, Any]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for name in self.names:
            member = unquote(name.removeprefix(PREFIX))
            yield {"member": member, "losses": str(self.root / name), **self.shared}


def _located(path: str, folder: Path) -> str:
    """A path that does not hang on where a process was started; environments have none."""
    return path if is_environment(path) else str((folder / path).absolute())


def is_environment(path: str) -> bool:
    return path.startswith("gym:")


def missing_file(member: Mapping[str, Any]) -> str | None:
    """Which of PATHS leads nowhere, seen from this machine."""
    for name in PATHS:
        if name in member and not is_environment(member[name]) and not Path(member[name]).exists():
            return name
    return None


def _checked_table(given: Path) -> Path:
    """The table's path, if what is there can be a fleet."""
    import polars

    path = given.absolute()
    try:
        columns = polars.read_parquet_schema(path)
    except (OSError, polars.exceptions.PolarsError):
        raise InputError(
            f"{path} cannot be read as Parquet, but a fleet is a Parquet table with a row for each member: "
            f"check the path, or convert it."
        ) from None
    for name in REQUIRED:
        if name not in columns:
            raise InputError(
                f"{path} has the columns {', '.join(columns)}, but needs {', '.join(REQUIRED)}: add {name}."
            )
    for name in columns:
        if name not in (*REQUIRED, *OPTIONAL):
            raise InputError(
                f"{path} has a column {name!r}, but beside {', '.join(REQUIRED)} it may only have "
                f"{', '.join(OPTIONAL)}: rename or drop it."
            )
    for name in PATHS:
        if name in columns and columns[name] != polars.String:
            raise InputError(
                f"{path} has a column {name} of type {columns[name]}, but it must hold paths: write it as "
                f"text."
            )
    _check_rows(path)
    return path


def _check_rows(path: Path) -> None:
    """Refuse an empty table, holes in it, and two members of one name."""
    import polars

    rows = polars.scan_parquet(path)
    for name in REQUIRED:
        missing = rows.select(polars.col(name).is_null()).collect(engine="streaming")[name]
        if not len(missing):
            raise InputError(f"{path} has no rows, but a fleet needs a member: check how it was written.")
        if missing.any():
            raise InputError(
                f"{path}, row {1 + int(missing.arg_max() or 0)} has no {name}, but every member needs one: "
                f"fill it in or drop the row."
            )
    _check_names(path, rows, len(missing))


def _check_names(path: Path, rows: polars.LazyFrame, count: int) -> None:
    """Refuse two members of one name: by hashes, and of many members by a part of the hashes at a time."""
    import polars

    hashes = rows.select(polars.col("member").cast(polars.String).hash()).with_row_index("row")
    parts = 1 + count // NAMES_AT_ONCE
    for part in range(parts):
        mine = hashes.filter(polars.col("member") % parts == part).collect(engine="streaming")
        repeated = mine.filter(~mine["member"].is_first_distinct())
        if len(repeated):
            again, name = repeated.row(0)
            before = mine.filter(mine["member"] == name)["row"][0]
            raise InputError(
                f"{path}, row {1 + again} repeats the member of row {1 + before}, but each may appear once: "
                f"rename or drop one of the two."
            )
