"""Plans as tables: state, action, and any of step and probability, by the names of the problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars

from normalfan.geometry.bellman import as_policy, occupancy
from normalfan.io import frames, tables
from normalfan.io.frames import Dialect, TableSource
from normalfan.pricing.plans import completed_plan
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


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
    codes = {axis: table.codes(axis, known) for axis, known in names.items()}
    plan = np.zeros(mdp.shape)
    plan[codes.get("step", slice(None)), codes["state"], codes["action"]] = weights
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
