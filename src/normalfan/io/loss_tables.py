"""Losses as tables, each cell by the names of the problem.

    a long table                        round, step, state, action, loss or reward
    factored losses, features           feature, step, state, action, value
    factored losses, coefficients       round, and one column for each feature; or round, feature, coefficient

Columns among step, state and action may be left out: the value is then the same along them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.errors import InputError
from normalfan.files import check_memory
from normalfan.io import tables
from normalfan.io.tables import Dialect, Table, TableSource
from normalfan.problem.arrays import FloatArray, IntArray, first_index
from normalfan.problem.losses import ArrayLosses, FactoredLosses, LossStream, Negated, names_of_rounds
from normalfan.problem.mdp import MDP, check_way_on

if TYPE_CHECKING:
    import polars

AXES = {"step": "H", "state": "S", "action": "A"}


def read_loss_table(
    source: TableSource, mdp: MDP, default: float | None, max_memory: int | None, dialect: Dialect
) -> tuple[ArrayLosses, bool]:
    """A long table, and whether it has rewards; `default` is the number of cells that it leaves out."""
    table = tables.read_table(source, ("round",), None, dialect)
    if {"loss", "reward"} <= set(table.columns):
        raise InputError(
            f"{table.path} has the columns loss and reward, but one is the negative of the other: drop one."
        )
    column = "reward" if "reward" in table.columns else "loss"
    tables.check_columns(table.path, table.columns, ("round", column), (*AXES, "allowed"))
    numbers = _numbers_where_allowed(table, column, -np.inf if column == "reward" else np.inf)
    rounds = tables.distinct(table.text("round"))
    names = {"round": rounds} | {
        c: names for c, names in tables.names_along(mdp).items() if c in table.columns
    }
    cells = table.cells(names)
    shape = tuple(map(len, names.values()))
    check_memory(str(table.path), 8 * math.prod(shape), max_memory)
    if default is None and (missing := _first_missing(cells, shape, names, mdp)) is not None:
        at = ", ".join(f"{column} {names[column][i]}" for column, i in zip(names, missing, strict=True))
        raise InputError(
            f"{table.path} has no {column} for {at}, but every cell needs one: add the row, or pass a "
            f"default (--default)."
        )
    array = np.full(shape, 0.0 if default is None else float(default))
    array.reshape(-1)[cells] = numbers
    axes = "T" + "".join(AXES[column] for column in names if column != "round")
    losses = ArrayLosses(array, axes, round_names=tables.names_or_none(rounds))
    _check_ways_on(f"{table.path}, round", losses, rounds, mdp)
    return losses, column == "reward"


def _numbers_where_allowed(table: Table, column: str, forbidden: float) -> FloatArray:
    """[n]: `forbidden` where a row says so, by a word or in a column called allowed."""
    marked = table.forbidden(column, forbidden)
    if "allowed" in table.columns:
        allowed = table.flags("allowed")
        if (both := marked & allowed).any():
            row = int(both.argmax())
            raise InputError(
                f"{table.where(row)} is allowed and has {table.frame[column][row]!r} as {column}, but these "
                f"are opposites: correct one of the two."
            )
        marked = ~allowed
    return table.numbers(column, marked, forbidden)


def _check_ways_on(where: str, losses: ArrayLosses, rounds: Sequence[str], mdp: MDP) -> None:
    """Refuse a round that allows no action where some policy can be, by its name."""
    closing = np.isinf(losses.array.reshape(len(rounds), -1)).any(axis=1)
    for t in np.flatnonzero(closing).tolist():
        (numbers,) = next(ArrayLosses(losses.array[t : t + 1], losses.axes).blocks(mdp.shape, 1))
        finite = np.isfinite(numbers)
        allowed = finite if mdp.allowed is None else finite & mdp.allowed
        check_way_on(mdp, allowed, f"{where} {rounds[t]}")


def _first_missing(
    cells: IntArray, shape: tuple[int, ...], names: Collection[str], mdp: MDP
) -> tuple[int, ...] | None:
    """The first cell that a table leaves out although its action is allowed, at some step at least."""
    if mdp.allowed is None:
        return tables.first_missing(cells, shape)
    lacking = tuple(i for i, column in enumerate(AXES) if column not in names)
    needed = np.array(np.broadcast_to(mdp.allowed.any(axis=lacking), shape), order="C")
    needed.reshape(-1)[cells] = False
    return first_index(needed) if needed.any() else None


def losses_to_frame(losses: LossStream, mdp: MDP) -> polars.DataFrame:
    """Write losses as a frame: the table that `open_losses` reads back.

    Parameters
    ----------
    losses, mdp : LossStream, MDP
        Any stream, and its problem. Rewards get a column `reward` instead of `loss`.

    Returns
    -------
    polars.DataFrame
        The columns round, step, state, action, and loss or reward; for pandas call its `to_pandas`.

    Raises
    ------
    InputError
        If the losses are not those of the problem.

    Examples
    --------
    >>> losses_to_frame(ArrayLosses([[1.0, 2.0]], "TA"), MDP([[0, 0]], initial=0, horizon=1)).rows()
    [('0', '0', '0', '0', 1.0), ('0', '0', '0', '1', 2.0)]
    """
    import polars

    column = "reward" if isinstance(losses, Negated) else "loss"
    array = every_round(losses.stream if isinstance(losses, Negated) else losses, mdp)
    names = {"round": _rounds_named(losses, len(array))} | tables.names_along(mdp)
    codes = np.indices(array.shape).reshape(array.ndim, -1)
    return polars.DataFrame(tables.label_columns(names, codes) | {column: array.reshape(-1)})


def every_round(losses: LossStream, mdp: MDP) -> FloatArray:
    """[T, H, S, A]: the whole stream at once."""
    return np.concatenate([block[min(i, 1) :] for i, block in enumerate(losses.blocks(mdp.shape, 64))])


def read_features(
    path: TableSource, mdp: MDP, *, separator: str = ",", decimal: str = "."
) -> tuple[list[str], Any]:
    """Read a table of features, the fixed quantities Φ_k of factored losses ℓ_t = Σ_k θ_t[k] · Φ_k.

    Parameters
    ----------
    path, mdp : str, Path, or polars or pandas DataFrame, MDP
        A table with the columns feature, value, and any of step, state, action, as the problem names them.
    separator, decimal : str
        How a CSV table separates entries and writes 1.5.

    Returns
    -------
    names, features : list of str [K], scipy.sparse.csr_array [K, H·S·A]
        What `FactoredLosses` takes.

    Raises
    ------
    InputError
        If the table has an unknown name, a repeated row or an entry that is not a finite number.

    Examples
    --------
    >>> import polars
    >>> work = polars.DataFrame({"feature": ["effort"], "action": [1], "value": [2.5]})
    >>> names, features = read_features(work, MDP([[0, 0]], initial=0, horizon=1))
    >>> names, features.toarray()
    (['effort'], array([[0. , 2.5]]))
    """
    from scipy import sparse

    along = tables.names_along(mdp)
    table = tables.read_table(path, ("feature", "value"), tuple(along), Dialect(separator, decimal))
    if (marked := table.forbidden("value")).any():
        raise InputError(
            f"{table.where(int(marked.argmax()))} forbids a cell in every round, but what is never allowed "
            f"is left out of the model: drop its rows there, or make the coefficient of a feature forbidden."
        )
    values = table.numbers("value")
    features = tables.distinct(table.text("feature"))
    names = {"feature": features} | {c: known for c, known in along.items() if c in table.columns}
    given = np.unravel_index(table.cells(names), tuple(map(len, names.values())))
    place = dict(zip(names, given, strict=True))
    # A row of a table without, say, steps stands for one entry at each step.
    entry = np.zeros((len(table), 1), dtype=np.int64)
    for column, known in along.items():
        index = place[column][:, None] if column in place else np.arange(len(known))[None, :]
        entry = (entry[:, :, None] * len(known) + index[:, None, :]).reshape(len(table), -1)
    rows = np.repeat(place["feature"], entry.shape[1])
    numbers = np.repeat(values, entry.shape[1])
    shape = (len(features), int(np.prod(mdp.shape)))
    matrix = sparse.csr_array((numbers, (rows, entry.reshape(-1))), shape=shape)
    matrix.eliminate_zeros()  # a feature forbids only the cells that it has
    return features, matrix


def read_factored(
    coefficients: TableSource, features: TableSource, mdp: MDP, dialect: Dialect, forbidden: float
) -> FactoredLosses:
    """Coefficients times features; `forbidden` is the coefficient of one whose cells are not allowed."""
    names, matrix = read_features(features, mdp, separator=dialect.separator, decimal=dialect.decimal)
    table = tables.read_table(coefficients, ("round",), None, dialect)
    is_long = set(table.columns) == {"round", "feature", "coefficient"}
    rounds, theta = (_read_long if is_long else _read_wide)(table, names, forbidden)
    return FactoredLosses(theta, matrix, round_names=tables.names_or_none(rounds), feature_names=names)


def write_factored(losses: FactoredLosses, mdp: MDP, coefficients: Path, features: Path) -> None:
    """Two tables that `read_factored` reads; features without a name are called by their number."""
    import polars

    known = list(losses.feature_names or map(str, range(losses.coefficients.shape[1])))
    wide = {name: losses.coefficients[:, k] for k, name in enumerate(known)}
    entries = losses.features.tocoo()
    codes = (entries.row, *np.unravel_index(entries.col, mdp.shape))
    columns = tables.label_columns({"feature": known} | tables.names_along(mdp), codes)
    tables.write_table(
        polars.DataFrame({"round": _rounds_named(losses, losses.n_rounds)} | wide), coefficients
    )
    tables.write_table(polars.DataFrame(columns | {"value": entries.data}), features)


def _rounds_named(losses: LossStream, n_rounds: int) -> list[str]:
    return list(names_of_rounds(losses) or map(str, range(n_rounds)))


def _read_wide(table: Table, features: Sequence[str], forbidden: float) -> tuple[list[str], FloatArray]:
    """The names of the rounds, and their coefficients [T, K] in the order of `features`."""
    for name in features:
        if name not in table.columns:
            raise InputError(
                f"{table.path} has no column {name!r}, but every feature needs a coefficient: add it, or "
                f"drop the feature."
            )
    for name in table.columns:
        if name != "round" and name not in features:
            raise InputError(
                f"{table.path} has a column {name!r}, but no feature is called that: rename or drop it, or "
                f"add the feature."
            )
    rounds = tables.distinct(table.text("round"))
    order = table.cells({"round": rounds})
    theta = np.empty((len(rounds), len(features)))
    for k, name in enumerate(features):
        theta[order, k] = table.numbers(name, table.forbidden(name, forbidden), forbidden)
    return rounds, theta


def _read_long(table: Table, features: Sequence[str], forbidden: float) -> tuple[list[str], FloatArray]:
    """The same from one row for each round and feature."""
    names = {"round": tables.distinct(table.text("round")), "feature": list(features)}
    cells = table.cells(names)
    theta = np.zeros((len(names["round"]), len(features)))
    missing = tables.first_missing(cells, theta.shape)
    if missing is not None:
        raise InputError(
            f"{table.path} has no coefficient for round {names['round'][missing[0]]}, feature "
            f"{features[missing[1]]}, but every round needs one of each: add the row."
        )
    marked = table.forbidden("coefficient", forbidden)
    theta.reshape(-1)[cells] = table.numbers("coefficient", marked, forbidden)
    return names["round"], theta
