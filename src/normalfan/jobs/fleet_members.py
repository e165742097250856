"""Who is in a fleet, read a slice at a time: the client never holds a million rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from normalfan.errors import InputError
from normalfan.io.tables import check_columns

if TYPE_CHECKING:
    import polars

REQUIRED = ("member", "model", "losses")
OPTIONAL = ("features", "default", "axes", "horizon", "start", "rewards")
PATHS = ("model", "losses", "features")

ROWS_AT_ONCE = 8192  # of a table, that are read together
NAMES_AT_ONCE = 1_000_000  # that are compared with each other together

PREFIX = "member="
ENVIRONMENT = "gym:"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Members:
    """The members of a fleet, in an order that stays; see `of_table` and `of_dataset`.

    Iterating gives a mapping for each member: its name, absolute paths, and the options that it has.

    Examples
    --------
    >>> import polars, tempfile
    >>> table = Path(tempfile.mkdtemp()) / "fleet.parquet"
    >>> polars.DataFrame([{"member": "north", "model": "n.npz", "losses": "n.npy"}]).write_parquet(table)
    >>> Members.of_table(table)
    Members(1 in all)
    """

    _rows: polars.LazyFrame
    _folder: Path  # where relative paths start
    _count: int

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"Members({self._count:,} in all)"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, self._count, ROWS_AT_ONCE):
            for row in self._rows.slice(first, ROWS_AT_ONCE).collect().iter_rows(named=True):
                given = {name: value for name, value in row.items() if value is not None}
                located = {name: str(self._folder / path) for name, path in files_of(given).items()}
                yield given | {"member": str(row["member"])} | located

    @classmethod
    def of_table(cls, path: str | Path) -> Members:
        """The members that a Parquet table lists: `member`, `model`, `losses` and, if needed, `features`,
        `default`, `axes`, `horizon`, `start`, `rewards`, as in `normalfan price`; paths start at its folder.
        """
        import polars

        table = Path(path).absolute()
        try:
            columns = polars.read_parquet_schema(table)
        except (OSError, polars.exceptions.PolarsError):
            raise InputError(
                f"{table} cannot be read as Parquet, but a fleet is a Parquet table with a row for each "
                f"member: check the path, or convert it."
            ) from None
        check_columns(table, list(columns), REQUIRED, OPTIONAL)
        for name in PATHS:
            if columns.get(name, polars.String) != polars.String:
                raise InputError(
                    f"{table} has a column {name} of type {columns[name]}, but it holds paths: write it as "
                    f"text."
                )
        rows = polars.scan_parquet(table, glob=False)
        count = int(rows.select(polars.len()).collect().item())
        _check_rows(table, rows, count)
        _check_names(table, rows, count)
        return cls(rows, table.parent, count)

    @classmethod
    def of_dataset(
        cls,
        model: str | Path,
        folder: str | Path,
        *,
        features: str | Path | None = None,
        default: float | None = None,
        horizon: int | None = None,
        start: str | None = None,
        rewards: bool = False,
    ) -> Members:
        """Members that share one model and options, with streams in a dataset ``member=NAME/*.parquet``."""
        import polars

        root = Path(folder).absolute()
        if not root.is_dir():
            raise InputError(
                f"{root} is not a directory, but a dataset of streams is one with a folder {PREFIX}NAME for "
                f"each member: check the path."
            )
        names = sorted(entry.name for entry in root.iterdir() if entry.name.startswith(PREFIX))
        if not names:
            raise InputError(
                f"{root} has no folder {PREFIX}NAME, but a dataset of streams has one for each member: write "
                f'it partitioned by "member".'
            )
        paths = {"model": str(model), "features": None if features is None else str(features)}
        options = {"default": default, "horizon": horizon, "start": start, "rewards": rewards or None}
        rows = polars.LazyFrame(
            {
                "member": [unquote(name.removeprefix(PREFIX)) for name in names],
                "losses": [str(root / name) for name in names],
            }
        ).with_columns(**{name: polars.lit(value) for name, value in (paths | options).items()})
        return cls(rows, Path.cwd(), len(names))


def files_of(member: Mapping[str, Any]) -> dict[str, Path]:
    """The files that a member names, by the name of their column; environments are no files."""
    given = {name: member[name] for name in PATHS if name in member}
    return {name: Path(path) for name, path in given.items() if not path.startswith(ENVIRONMENT)}


def _check_rows(path: Path, rows: polars.LazyFrame, count: int) -> None:
    """Refuse an empty table, and a row without what every member needs."""
    import polars

    if not count:
        raise InputError(f"{path} has no rows, but a fleet needs a member: check how it was written.")
    missing = rows.select(polars.col(REQUIRED).is_null()).with_row_index("row", offset=1)
    first = missing.filter(polars.any_horizontal(REQUIRED)).head(1).collect(engine="streaming")
    for row in first.iter_rows(named=True):
        name = next(name for name in REQUIRED if row[name])
        raise InputError(
            f"{path}, row {row['row']} has no {name}, but every member needs one: fill it in or drop the row."
        )


def _check_names(path: Path, rows: polars.LazyFrame, count: int) -> None:
    """Refuse two members of one name: by hashes, and of many members by a part of the hashes at a time."""
    import polars

    hashes = rows.select(polars.col("member").cast(polars.String).hash()).with_row_index("row", offset=1)
    parts = 1 + count // NAMES_AT_ONCE
    for part in range(parts):
        mine = hashes.filter(polars.col("member") % parts == part).collect(engine="streaming")
        repeated = mine.filter(~mine["member"].is_first_distinct())
        if len(repeated):
            again, name = repeated.row(0)
            before = mine.filter(mine["member"] == name)["row"][0]
            raise InputError(
                f"{path}, row {again} repeats the member of row {before}, but each may appear once: "
                f"rename or drop one of the two."
            )
