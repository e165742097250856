"""Factored losses as two tables: what each round weighs, and what the weights multiply.

Features (quantities that never change), as a long table; what is not listed is 0, and a column among step,
state and action that is left out means the same along it:

    feature, step, state, action, value

Coefficients (prices, which change from round to round), one column for each feature, or long:

    round, power, wear                         round, feature, coefficient

Rounds are ordered and named as in a table of losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.io.loss_tables import cells_of, names_along
from normalfan.io.tables import Table, first_missing, in_order, names_or_none, read_table, write_table
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import FactoredLosses, names_of_rounds
from normalfan.problem.mdp import MDP


def read_features(path: str | Path, mdp: MDP) -> tuple[list[str], Any]:
    """The names of the features, and the features as scipy sparse [K, H·S·A]."""
    from scipy import sparse

    along = names_along(mdp)
    table = read_table(path, ("feature", "value"), tuple(along))
    values = table.numbers("value")
    features = in_order(table.text("feature"))
    names = {"feature": features} | {c: known for c, known in along.items() if c in table.columns}
    given = np.unravel_index(cells_of(table, names), tuple(map(len, names.values())))
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


def read_coefficients(path: str | Path, features: Sequence[str]) -> tuple[list[str], FloatArray]:
    """The names of the rounds, and their coefficients [T, K] in the order of `features`."""
    table = read_table(path, ("round",), optional=None)
    if set(table.columns) == {"round", "feature", "coefficient"}:
        return _read_long(table, features)
    return _read_wide(table, features)


def read_factored(coefficients: str | Path, features: str | Path, mdp: MDP) -> FactoredLosses:
    names, matrix = read_features(features, mdp)
    rounds, theta = read_coefficients(coefficients, names)
    return FactoredLosses(theta, matrix, round_names=names_or_none(rounds), feature_names=names)


def write_factored(losses: FactoredLosses, mdp: MDP, coefficients: Path, features: Path) -> None:
    """Two tables that `read_factored` reads; features without a name are called by their number."""
    import polars

    known = losses.feature_names or [str(k) for k in range(losses.coefficients.shape[1])]
    rounds = names_of_rounds(losses) or [str(t) for t in range(losses.n_rounds)]
    wide = {name: losses.coefficients[:, k] for k, name in enumerate(known)}
    entries = losses.features.tocoo()
    codes = (entries.row, *np.unravel_index(entries.col, mdp.shape))
    names = {"feature": known} | names_along(mdp)
    columns = {
        column: polars.Series(called, dtype=polars.String).gather(code)
        for (column, called), code in zip(names.items(), codes, strict=True)
    }
    write_table(polars.DataFrame({"round": rounds} | wide), coefficients)
    write_table(polars.DataFrame(columns | {"value": entries.data}), features)


def _read_wide(table: Table, features: Sequence[str]) -> tuple[list[str], FloatArray]:
    for name in features:
        if name not in table.columns:
            raise InputError(
                f"{table.path} has no column {name!r}, but the features need a coefficient each: add it, or "
                f"drop the feature."
            )
    for name in table.columns:
        if name != "round" and name not in features:
            raise InputError(
                f"{table.path} has a column {name!r}, but no feature is called that: rename or drop it, or "
                f"add the feature."
            )
    rounds = in_order(table.text("round"))
    order = cells_of(table, {"round": rounds})
    theta = np.empty((len(rounds), len(features)))
    for k, name in enumerate(features):
        theta[order, k] = table.numbers(name)
    return rounds, theta


def _read_long(table: Table, features: Sequence[str]) -> tuple[list[str], FloatArray]:
    names = {"round": in_order(table.text("round")), "feature": list(features)}
    cells = cells_of(table, names)
    theta = np.zeros((len(names["round"]), len(features)))
    missing = first_missing(cells, theta.shape)
    if missing is not None:
        raise InputError(
            f"{table.path} has no coefficient for round {names['round'][missing[0]]}, feature "
            f"{features[missing[1]]}, but every round needs one of each: add the row."
        )
    theta.reshape(-1)[cells] = table.numbers("coefficient")
    return names["round"], theta
