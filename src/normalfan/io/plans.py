"""Plans as tables: state, action, and any of step and probability, by the names of the problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_policy, occupancy
from normalfan.io import tables
from normalfan.io.tables import TableSource
from normalfan.pricing.plans import completed_plan
from normalfan.problem.arrays import PROBABILITY_TOLERANCE, FloatArray, first_index
from normalfan.problem.mdp import MDP


def read_plan(source: TableSource, mdp: MDP, *, separator: str = ",", decimal: str = ".") -> FloatArray:
    """Read a plan from a table of state and action, for every step or with a column step.

    Parameters
    ----------
    source : str, Path or polars.DataFrame
        A column probability lets a plan draw lots. States in which the plan never is may be left out.
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
    dialect = tables.Dialect(separator, decimal)
    table = tables.read_table(source, ("state", "action"), ("step", "probability"), dialect)
    names = {c: known for c, known in tables.names_along(mdp).items() if c in table.columns}
    places = {c: known for c, known in names.items() if c != "action"}
    draws = "probability" in table.columns
    table.cells(names if draws else places)  # no two rows may say the same, or contradict each other
    weights = table.numbers("probability") if draws else np.ones(len(table))
    if (weights < 0).any():
        row = int((weights < 0).argmax())
        raise InputError(
            f"{table.where(row)} has probability {weights[row]:g}, but none is below 0: correct it."
        )
    steps = table.codes("step", names["step"]) if "step" in names else slice(None)
    plan = np.zeros(mdp.shape)
    plan[steps, table.codes("state", names["state"]), table.codes("action", names["action"])] = weights
    sums = plan.sum(axis=2)
    wrong = (sums != 0) & (np.abs(sums - 1) > PROBABILITY_TOLERANCE)
    if wrong.any():
        h, s = first_index(wrong)
        raise InputError(
            f"{table.path} gives state {mdp.labels.state(s)} at step {mdp.labels.step(h)} probabilities that "
            f"sum to {sums[h, s]:.12g}, but they must sum to 1: add the missing rows."
        )
    return completed_plan(mdp, plan, str(table.path))


def save_plan(plan: npt.ArrayLike, mdp: MDP, path: str | Path) -> None:
    """Write a plan as a table that `read_plan` reads; states in which the plan never is are left out.

    Parameters
    ----------
    plan : array_like [H, S, A]
        Probabilities.
    mdp : MDP
    path : str or Path
        A .csv or .parquet file.

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
    import polars

    target = Path(path)
    if target.suffix not in tables.SUFFIXES:
        raise tables.unknown_suffix(target, "a plan is a .csv or .parquet table")
    policy = as_policy(mdp, plan)
    codes = np.nonzero(occupancy(mdp, policy))
    columns = tables.label_columns(tables.names_along(mdp), codes)
    weights = policy[codes]
    if (weights != 1).any():
        columns["probability"] = polars.Series(weights)
    tables.write_table(polars.DataFrame(columns), target)
