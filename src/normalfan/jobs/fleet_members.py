"""Who is in a fleet, and what the task does that prices the members of one cell.

The table is read a slice at a time: the client never holds a million rows. Results are kept under a digest
of the code that this module imports: engines and totals may change without making them stale.
"""

from __future__ import annotations

import math
import platform
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars

from normalfan.errors import InputError, check_installed
from normalfan.io import load_mdp, open_losses
from normalfan.io.frames import Dialect
from normalfan.io.models import problems_of_rounds
from normalfan.io.tables import check_columns
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import kinds_of_rounds
from normalfan.problem.losses import LossStream, rewards
from normalfan.problem.mdp import MDP
from normalfan.sources import digest_of_code

REQUIRED = ("member", "model", "losses")
LOADING = ("horizon", "start", "max_memory")
PATHS = ("model", "losses", "features", "model_of_round")

ROWS_AT_ONCE = 8192  # of a table, that are read together
NAMES_AT_ONCE = 1_000_000  # that are compared with each other together

PREFIX = "member="
ENVIRONMENT = "gym:"

TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "default": ((int, float), "a finite number"),
    "axes": ((str,), "text"),
    "order": ((str,), "text"),
    "horizon": ((int,), "a whole number"),
    "start": ((str, int), "text or a whole number"),
    "rewards": ((bool,), "a boolean, true or false"),
}

OPTIONAL = ("features", "model_of_round", *TYPES)
KINDS = ("free", "negligible", "priced")  # of rounds

SCHEMA: dict[str, Any] = {
    "member": polars.String,
    "rounds": polars.Int64,
    **dict.fromkeys(KINDS, polars.Int64),  # the first round has no plan before it and is none of these
    "total": polars.Float64,
    "worst_price": polars.Float64,
    "worst_round": polars.String,
    "price": polars.List(polars.Float64),  # an entry for each round
    "value": polars.List(polars.Float64),
    "crossed": polars.List(polars.Boolean),
    "problem": polars.String,  # why the member could not be priced; then the rest is empty
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Members:
    """The members of a fleet, in an order that stays; see `of_table` and `of_dataset`.

    Iterating gives a mapping for each member: its name, absolute paths, and the options that it has; or its
    name and, as `problem`, why its row is of no use.

    Examples
    --------
    >>> import polars, tempfile
    >>> table = Path(tempfile.mkdtemp()) / "fleet.parquet"
    >>> polars.DataFrame([{"member": "north", "model": "n.npz", "losses": "n.npy"}]).write_parquet(table)
    >>> Members.of_table(table)
    Members(1 in all)
    """

    _rows: polars.LazyFrame
    _table: Path
    _folder: Path  # where relative paths start
    _count: int
    _gym_modules: frozenset[str]  # that may be imported
    _shared: dict[str, Any]  # what holds for every member, beside its row

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"Members({self._count:,} in all)"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, self._count, ROWS_AT_ONCE):
            with _readable(self._table):
                rows = self._rows.slice(first, ROWS_AT_ONCE).collect()
            for row in rows.iter_rows(named=True):
                entries = (row | self._shared).items()
                given = {name: value for name, value in entries if value is not None}
                named: dict[str, Any] = {"member": str(row["member"])}
                if problem := _problem_of(given, self._gym_modules):
                    yield named | {"problem": problem}
                else:
                    located = {name: str(self._folder / path) for name, path in files_of(given).items()}
                    yield given | named | located

    @classmethod
    def of_table(
        cls,
        path: str | Path,
        *,
        gym_modules: Collection[str] = (),
        first: str | None = None,
        last: str | None = None,
        against: str | int | None = None,
        max_memory: int | None = None,
    ) -> Members:
        """The members that a Parquet table lists: `member`, `model`, `losses` and, if needed, `features`,
        `model_of_round`, `default`, `axes`, `order`, `horizon`, `start`, `rewards`, as in `normalfan price`;
        paths start at its folder. Models `gym:MODULE:ID`, which import a module, are priced only if it is one
        of `gym_modules`. Of every stream the rounds from `first` to `last` are priced: against the plan
        before, or with `against` the "first" one or that of so many rounds before.
        """
        table = Path(path).absolute()
        with _readable(table):
            if not table.is_file():  # a pipe would be waited for
                raise FileNotFoundError
            columns = polars.read_parquet_schema(table)
            check_columns(table, list(columns), REQUIRED, OPTIONAL)
            for name in ("member", *PATHS):
                kind = columns.get(name, polars.String)
                if kind != polars.String and not (name == "member" and kind.is_integer()):
                    raise InputError(
                        f"{table} has a column {name} of type {kind}, but it holds "
                        f"{'names' if name == 'member' else 'paths'}: write it as text."
                    )
            rows = polars.scan_parquet(table, glob=False)
            count = int(rows.select(polars.len()).collect().item())
            _check_rows(table, rows, count)
            _check_names(table, rows, count)
        shared = {"first": first, "last": last, "against": against, "max_memory": max_memory}
        return cls(rows, table, table.parent, count, frozenset(gym_modules), shared)

    @classmethod
    def of_dataset(
        cls,
        model: str | Path,
        folder: str | Path,
        *,
        features: str | Path | None = None,
        default: float | None = None,
        order: str | None = None,
        horizon: int | None = None,
        start: str | None = None,
        rewards: bool = False,
        first: str | None = None,
        last: str | None = None,
        against: str | int | None = None,
        max_memory: int | None = None,
    ) -> Members:
        """Members that share one model and options, with streams in a dataset ``member=NAME/*.parquet``.

        NAME may be percent-encoded; if two folders would then be one member, all names stay as they are.
        """
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
        written = [name.removeprefix(PREFIX) for name in names]
        members = list(map(unquote, written))
        named = members if len(set(members)) == len(names) else written
        options = {"default": default, "order": order, "horizon": horizon, "start": start}
        options |= {"rewards": rewards or None, "model": str(model)}
        options |= {"features": None if features is None else str(features)}
        options |= {"first": first, "last": last, "against": against, "max_memory": max_memory}
        rows = polars.LazyFrame({"member": named, "losses": [str(root / name) for name in names]})
        modules = frozenset(filter(None, [gym_module_of(str(model))]))  # named by the user, not by a table
        return cls(rows, root, Path.cwd(), len(names), modules, options)


def files_of(member: Mapping[str, Any]) -> dict[str, Path]:
    """The files that a member names, by the name of their column; environments are no files."""
    given = {name: member[name] for name in PATHS if name in member}
    return {name: Path(path) for name, path in given.items() if not path.startswith(ENVIRONMENT)}


def gym_module_of(model: str) -> str | None:
    """The module that making an environment would import, if the model names one."""
    module, colon, _ = model.removeprefix(ENVIRONMENT).rpartition(":")
    return module if model.startswith(ENVIRONMENT) and colon else None


def _problem_of(member: Mapping[str, Any], gym_modules: Collection[str]) -> str | None:
    """Why a row cannot be a member, if so: nothing that follows need look at its types again."""
    for name, (types, kind) in TYPES.items():
        value = member.get(name)
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if name in member and not (type(value) in types and is_finite):
            shown = reprlib.repr(value)
            return f"{name} is {shown}, but must be {kind}: write the column {name} with that type."
    model = member["model"]
    module = gym_module_of(model)
    if module is None or module in gym_modules:
        return None
    if ":" in module:
        return f"model is {model!r}, but an environment is gym:ID or gym:MODULE:ID: correct it."
    return (
        f"model is {model!r}, but a table may not import code: register the environment, or, if you "
        f"trust the module, name it with --gym-module {module} (gym_modules in Python)."
    )


@contextmanager
def _readable(table: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, polars.exceptions.PolarsError, polars.exceptions.PanicException):
        raise InputError(
            f"{table} cannot be read as Parquet, but a fleet is a Parquet table with a row for each member: "
            f"check the path, or convert it."
        ) from None


def _check_rows(path: Path, rows: polars.LazyFrame, count: int) -> None:
    """Refuse an empty table, and a row without what every member needs."""
    if not count:
        raise InputError(f"{path} has no rows, but a fleet needs a member: check how it was written.")
    lacks = [polars.when(polars.col(name).is_null()).then(polars.lit(name)) for name in REQUIRED]
    named = rows.select(lacks=polars.coalesce(lacks)).with_row_index("row", offset=1)
    for row, name in named.drop_nulls().head(1).collect(engine="streaming").iter_rows():
        raise InputError(
            f"{path}, row {row} has no {name}, but every member needs one: fill it in or drop the row."
        )


def _check_names(path: Path, rows: polars.LazyFrame, count: int) -> None:
    """Refuse two members of one name: by hashes, and of many members by a part of the hashes at a time."""
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


def price_members(settings: Mapping[str, Any]) -> polars.DataFrame:
    for module, digest in settings.get("gym_modules", {}).items():
        # The module that registers environments must be the client's.
        with suppress(InputError):
            if digest_of_code(module) == digest:
                continue
        raise InputError(
            f"the worker on {platform.node()} has no module {module} or another one, but results must come "
            f"from the same code everywhere: install it there, and restart the worker."
        )
    # Members often share a model; remembered for this cell only, since files may change between cells.
    load = lru_cache(maxsize=8)(load_mdp)
    return polars.DataFrame([_priced(member, load) for member in settings["members"]], schema=SCHEMA)


def read_member(member: Mapping[str, Any], load: Callable[..., MDP] = load_mdp) -> tuple[MDP, LossStream]:
    mdp = load(member["model"], **{name: member.get(name) for name in LOADING})
    names = ("features", "default", "axes", "order", "first", "last", "max_memory")
    options: dict[str, Any] = {name: member.get(name) for name in names}
    stream = open_losses(member["losses"], mdp, **options)
    return mdp, rewards(stream) if member.get("rewards") else stream


def _priced(member: Mapping[str, Any], load: Callable[..., MDP]) -> dict[str, Any]:
    if "problem" in member:
        return {"member": member["member"], "problem": member["problem"]}
    # What this machine lacks raises, so that nothing is kept: the next one may have it.
    for path in files_of(member).values():
        if not path.exists():
            raise InputError(
                f"{path} is not there for the worker on {platform.node()}, but the client sees it: put the "
                f"files of a fleet where all machines see them under one path."
            )
    if member["model"].startswith(ENVIRONMENT):
        check_installed("gymnasium", f"{member['model']} needs it on {platform.node()}", "gym")
    try:
        mdp, stream = read_member(member, load)
        given: list[Any] = [mdp, stream]
        # One thread: the other cores are taken by other members.
        options: dict[str, Any] = {"against": member.get("against", "previous"), "threads": 1}
        if "model_of_round" in member:
            *given, moving = problems_of_rounds(
                member["model_of_round"],
                mdp,
                stream,
                partial(load, **{name: member.get(name) for name in LOADING}),
                lambda features, _: read_member({**member, "features": features}, load)[1],
                Dialect(),
            )
            options |= moving
        motion = price_stream(*given, detail="prices", **options)
    except InputError as error:
        return {"member": member["member"], "problem": str(error)}
    kinds = kinds_of_rounds(motion)
    worst = int(motion.prices.argmax())
    return {
        "member": member["member"],
        "rounds": len(motion.prices),
        **{kind: int(np.count_nonzero(kinds == kind)) for kind in KINDS},
        "total": motion.total,
        "worst_price": float(motion.prices[worst]),
        "worst_round": motion.round_name(worst),
        "price": motion.prices.tolist(),
        "value": motion.values.tolist(),
        "crossed": motion.crossed.tolist(),
    }
