"""Losses as tables, each cell by the names of the problem.

    a long table                        round, step, state, action, loss
    factored losses, features           feature, step, state, action, value
    factored losses, coefficients       round, and one column for each feature; or round, feature, coefficient

Columns among step, state and action may be left out: the value is then the same along them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.array_files import check_memory
from normalfan.errors import InputError
from normalfan.io import tables
from normalfan.io.tables import Table, TableSource
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.losses import ArrayLosses, FactoredLosses, LossStream, names_of_rounds
from normalfan.problem.mdp import MDP

AXES = {"step": "H", "state": "S", "action": "A"}


def read_loss_table(
    source: TableSource, mdp: MDP, default: float | None = None, max_memory: int | None = None
) -> ArrayLosses:
    """A long table of losses; `default` is the loss of cells that it leaves out."""
    table = tables.read_table(source, ("round", "loss"), tuple(AXES))
    losses = table.numbers("loss")
    rounds = tables.distinct(table.text("round"))
    names = {"round": rounds} | {
        c: names for c, names in tables.names_along(mdp).items() if c in table.columns
    }
    cells = _cells_of(table, names)
    shape = tuple(map(len, names.values()))
    missing = tables.first_missing(cells, shape)
    if missing is not None and default is None:
        at = ", ".join(f"{column} {names[column][i]}" for column, i in zip(names, missing, strict=True))
        raise InputError(
            f"{table.path} has no loss for {at}, but every cell needs one: add the row, or pass a default "
            f"(--default)."
        )
    check_memory(str(table.path), 8 * math.prod(shape), max_memory)
    array = np.full(shape, 0.0 if default is None else float(default))
    array.reshape(-1)[cells] = losses
    axes = "T" + "".join(AXES[column] for column in names if column != "round")
    return ArrayLosses(array, axes, round_names=tables.names_or_none(rounds))


def write_loss_table(losses: LossStream, mdp: MDP, path: Path) -> None:
    """Every cell of every round as a row of a table that `read_loss_table` reads."""
    import polars

    array = every_round(losses, mdp)
    names = {"round": _rounds_named(losses, len(array))} | tables.names_along(mdp)
    codes = np.indices(array.shape).reshape(array.ndim, -1)
    tables.write_table(
        polars.DataFrame(tables.label_columns(names, codes) | {"loss": array.reshape(-1)}), path
    )


def every_round(losses: LossStream, mdp: MDP) -> FloatArray:
    """[T, H, S, A]: the whole stream at once."""
    return np.concatenate([block[min(i, 1) :] for i, block in enumerate(losses.blocks(mdp.shape, 64))])


def read_features(path: TableSource, mdp: MDP) -> tuple[list[str], Any]:
    """Read a table of features, the fixed quantities Φ_k of factored losses ℓ_t = Σ_k θ_t[k] · Φ_k.

    Parameters
    ----------
    path, mdp : str, Path or polars.DataFrame, MDP
        A table with the columns feature, value, and any of step, state, action, as the problem names them.

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
    table = tables.read_table(path, ("feature", "value"), tuple(along))
    values = table.numbers("value")
    features = tables.distinct(table.text("feature"))
    names = {"feature": features} | {c: known for c, known in along.items() if c in table.columns}
    given = np.unravel_index(_cells_of(table, names), tuple(map(len, names.values())))
    place = dict(zip(names, given, strict=True))
    # A row of a table without, say, steps stands for one entry at each step.
    entry = np.zeros((len(table), 1), dtype=np.int64)
    for column, known in along.items():
        index = place[column][:, None] if column in place else np.arange(len(known))[None, :]
        entry = (entry[:, :, None] * len(known) + index[:, None, :]).reshape(len(table), -1)
    rows = np.repeat(place["feature"], entry.shape[1])
    numbers = np.repeat(values, entry.shape[1])
    shape = (len(features), int(np.prod(mdp.shape)))
    return features, sparse.csr_array((numbers, (rows, entry.reshape(-1))), shape=shape)


def read_factored(coefficients: TableSource, features: str | Path, mdp: MDP) -> FactoredLosses:
    """Factored losses from their two tables."""
    names, matrix = read_features(features, mdp)
    table = tables.read_table(coefficients, ("round",), optional=None)
    is_long = set(table.columns) == {"round", "feature", "coefficient"}
    rounds, theta = _read_long(table, names) if is_long else _read_wide(table, names)
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


def _cells_of(table: Table, names: dict[str, list[str]]) -> IntArray:
    """[n]: each row's place in the array with these axes, flattened; no two rows share one."""
    cells = np.zeros(len(table), dtype=np.int64)
    for column, known in names.items():
        cells = cells * len(known) + table.codes(column, known)
    table.check_no_repeats(cells, list(names))
    return cells


def _read_wide(table: Table, features: Sequence[str]) -> tuple[list[str], FloatArray]:
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
    order = _cells_of(table, {"round": rounds})
    theta = np.empty((len(rounds), len(features)))
    for k, name in enumerate(features):
        theta[order, k] = table.numbers(name)
    return rounds, theta


def _read_long(table: Table, features: Sequence[str]) -> tuple[list[str], FloatArray]:
    """The same from one row for each round and feature."""
    names = {"round": tables.distinct(table.text("round")), "feature": list(features)}
    cells = _cells_of(table, names)
    theta = np.zeros((len(names["round"]), len(features)))
    missing = tables.first_missing(cells, theta.shape)
    if missing is not None:
        raise InputError(
            f"{table.path} has no coefficient for round {names['round'][missing[0]]}, feature "
            f"{features[missing[1]]}, but every round needs one of each: add the row."
        )
    theta.reshape(-1)[cells] = table.numbers("coefficient")
    return names["round"], theta
