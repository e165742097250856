"""Losses and plans as tables, each cell by the names of the problem. Formats: docs/how-to/files.md."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars
from scipy import sparse

from normalfan.errors import InputError
from normalfan.files import check_memory
from normalfan.geometry.bellman import as_policy, completed_plan, occupancy
from normalfan.io import frames, tables
from normalfan.io.frames import Dialect, TableSource
from normalfan.io.tables import Names, Table
from normalfan.problem.arrays import FloatArray, expand_axes, first_index
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import ArrayLosses, LossStream, Negated, as_allowed, numbered
from normalfan.problem.mdp import MDP


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
    tables.check_columns(table.path, table.columns, ("round", column), (*tables.AXES, "allowed"))
    allowed = table.flags("allowed") if "allowed" in table.columns else None
    numbers = table.numbers(column, -np.inf if column == "reward" else np.inf, allowed)
    along = table.names_along(mdp)
    names = {"round": table.names("round")} | along
    check_memory(str(table.path), 8 * math.prod(map(len, names.values())), max_memory)
    lacking = tuple(i for i, axis in enumerate(tables.AXES) if axis not in along)
    needed = True if mdp.allowed is None else mdp.allowed.any(axis=lacking)  # at some step at least
    remedy = "add the row, or pass a default (--default)"
    array = _filled(table, column, names, numbers, remedy, default=default, needed=needed)
    axes = "T" + "".join(tables.AXES[axis] for axis in along)
    losses = ArrayLosses(array, axes, round_names=tables.names_or_none(names["round"]))
    closing = np.isinf(array.reshape(len(array), -1)).any(axis=1)
    for t in np.flatnonzero(closing).tolist():
        (loss,) = expand_axes(column, array[t : t + 1], axes, (1, *mdp.shape))
        as_allowed(mdp, np.abs(loss), f"{table.path}, round {names['round'][t]}")
    return losses, column == "reward"


def _filled(
    table: Table,
    column: str,
    names: Names,
    numbers: FloatArray,
    remedy: str,
    *,
    default: float | None = None,
    needed: Any = True,
) -> FloatArray:
    """The array with `names` along its axes; cells without a row get the default, or `needed` are refused."""
    cells, shape = table.cells(names), tuple(map(len, names.values()))
    missing = np.full(shape, needed)
    missing.reshape(-1)[cells] = False
    if default is None and missing.any():
        at = tables.labels_at(first_index(missing), names)
        raise InputError(f"{table.path} has no {column} for {at}, but every cell needs one: {remedy}.")
    array = np.full(shape, default or 0.0)
    array.reshape(-1)[cells] = numbers
    return array


def losses_to_frame(losses: LossStream, mdp: MDP) -> polars.DataFrame:
    """Write losses as a frame: the table that `open_losses` reads back.

    Parameters
    ----------
    losses : LossStream
        Any stream. Rewards get a column `reward` instead of `loss`.
    mdp : MDP

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
    column, given = ("reward", losses.stream) if isinstance(losses, Negated) else ("loss", losses)
    array = every_round(given, mdp)
    names = {"round": tables.rounds_named(losses, len(array))} | tables.names_along(mdp)
    codes = np.indices(array.shape).reshape(array.ndim, -1)
    return polars.DataFrame(tables.label_columns(names, codes) | {column: array.reshape(-1)})


def every_round(losses: LossStream, mdp: MDP) -> FloatArray:
    """[T, H, S, A]: the whole stream at once."""
    return np.concatenate([block[shared:] for _, shared, block in numbered(losses.blocks(mdp.shape, 64))])


def read_features(
    path: TableSource, mdp: MDP, *, separator: str = ",", decimal: str = "."
) -> tuple[list[str], Any]:
    """Read a table of features, the fixed quantities Φ_k of factored losses ℓ_t = Σ_k θ_t[k] · Φ_k.

    Parameters
    ----------
    path : str, Path, or polars or pandas DataFrame
        A table with the columns feature, value, and any of step, state, action, as the problem names them.
    mdp : MDP
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
    table = tables.read_table(path, ("feature", "value"), tuple(tables.AXES), Dialect(separator, decimal))
    rule = (
        "forbids a cell in every round, but what is never allowed is left out of the model: drop its rows "
        "there, or make the coefficient of a feature forbidden."
    )
    table.refuse(table.forbidden("value"), lambda _: rule)
    values = table.numbers("value")
    names = {"feature": table.names("feature")} | table.names_along(mdp)
    table.cells(names)  # none of them comes twice
    cells = table.cells_of(mdp)
    entries = (table.codes("feature", names["feature"])[:, None], cells, values[:, None])
    which, cells, numbers = (each.ravel() for each in np.broadcast_arrays(*entries))
    shape = (len(names["feature"]), math.prod(mdp.shape))
    matrix = sparse.csr_array((numbers, (which, cells)), shape=shape)
    matrix.eliminate_zeros()  # a feature forbids only the cells that it has
    return names["feature"], matrix


def read_factored(
    coefficients: TableSource, features: TableSource, mdp: MDP, dialect: Dialect, forbidden: float
) -> FactoredLosses:
    """Coefficients times features; `forbidden` is the coefficient of one whose cells are not allowed."""
    names, matrix = read_features(features, mdp, separator=dialect.separator, decimal=dialect.decimal)
    table = tables.read_table(coefficients, ("round",), None, dialect)
    rounds = table.names("round")
    if set(table.columns) == {"round", "feature", "coefficient"}:
        along = {"round": rounds, "feature": names}
        numbers = table.numbers("coefficient", forbidden)
        theta = _filled(table, "coefficient", along, numbers, "add the row")
    else:
        tables.check_columns(table.path, table.columns, ("round", *names), ())
        table.cells({"round": rounds})  # none of them comes twice
        theta = np.stack([table.numbers(name, forbidden) for name in names], axis=1)
    return FactoredLosses(theta, matrix, round_names=tables.names_or_none(rounds), feature_names=names)


def write_factored(losses: FactoredLosses, mdp: MDP, coefficients: Path, features: Path) -> None:
    """Two tables that `read_factored` reads; features without a name are called by their number."""
    known = list(losses.feature_names or map(str, range(losses.coefficients.shape[1])))
    wide = {name: losses.coefficients[:, k] for k, name in enumerate(known)}
    entries = losses.features.tocoo()
    codes = (entries.row, *np.unravel_index(entries.col, mdp.shape))
    columns = tables.label_columns({"feature": known} | tables.names_along(mdp), codes)
    frames.write_table(polars.DataFrame({"round": tables.rounds_named(losses)} | wide), coefficients)
    frames.write_table(polars.DataFrame(columns | {"value": entries.data}), features)


def read_plan(source: TableSource, mdp: MDP, *, separator: str = ",", decimal: str = ".") -> FloatArray:
    """Read a plan from a table of state and action, for every step or with a column step.

    Parameters
    ----------
    source : str, Path or polars.DataFrame
        With a column probability the plan may be random. States in which it never is may be left out.
    mdp : MDP
    separator, decimal : str
        How a CSV table separates entries and writes 1.5.

    Returns
    -------
    ndarray [H, S, A]
        Probabilities, for `price_stream(…, against=plan)`; uniform where the table says nothing.

    Raises
    ------
    InputError
        If a name is unknown, a row is repeated, probabilities do not sum to 1, or where the plan can be a
        state is missing or an action that the problem never allows is taken.

    Examples
    --------
    >>> import polars
    >>> always_1 = polars.DataFrame({"state": [0], "action": [1]})
    >>> read_plan(always_1, MDP([[0, 0]], initial=0, horizon=2)).tolist()
    [[[0.0, 1.0]], [[0.0, 1.0]]]
    """
    dialect = Dialect(separator, decimal)
    table = tables.read_table(source, ("state", "action"), ("step", "probability"), dialect)
    names = table.names_along(mdp)
    draws = "probability" in table.columns
    weights = table.probabilities() if draws else np.ones(len(table))
    # No two rows may say the same, or contradict each other.
    table.cells({axis: known for axis, known in names.items() if draws or axis != "action"})
    plan = np.zeros(mdp.shape)
    plan.reshape(-1)[table.cells_of(mdp)] = weights[:, None]
    sums, (steps, states, _) = plan.sum(axis=2), tables.names_along(mdp).values()
    table.check_sums(sums, sums != 0, {"step": steps, "state": states})
    return completed_plan(mdp, plan, str(table.path))


def save_plan(plan: npt.ArrayLike, mdp: MDP, path: str | Path) -> None:
    """Write a plan as a table that `read_plan` reads; states in which the plan never is are left out.

    Parameters
    ----------
    plan : array_like [H, S, A]
        Probabilities.
    mdp : MDP
    path : str or Path
        A `.csv`, `.csv.gz` or `.parquet` file.

    Raises
    ------
    InputError
        If `plan` is not a policy of the problem, or the name ends otherwise.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> _, plan = nf.optimal_face(arms, [[[1.0, 0.0]]]).minimise([[[1.0, 0.0]]])
    >>> save_plan(plan, arms, "plan.csv")  # doctest: +SKIP
    """
    target = Path(path)
    if frames.suffix_of(target) not in frames.SUFFIXES:
        raise frames.unknown_suffix(target, "a plan is a .csv, .csv.gz or .parquet table")
    policy = as_policy(mdp, plan)
    codes = np.nonzero(occupancy(mdp, policy))
    columns = tables.label_columns(tables.names_along(mdp), codes)
    weights = policy[codes]
    if (weights != 1).any():
        columns["probability"] = polars.Series(weights)
    frames.write_table(polars.DataFrame(columns), target)
