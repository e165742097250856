"""Losses as a long table: one row for each round, step, state and action.

    round, step, state, action, loss

Columns among step, state and action may be left out: the loss is then the same along them. Those that are
there must be filled in for every cell, unless a default stands for what is missing. Steps, states and actions
go by the names of the problem; rounds by any name. Rounds that are whole numbers are taken in the order of
the numbers, others (dates, say) in the order in which the file first names them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from normalfan.errors import InputError
from normalfan.io.tables import Table, first_missing, in_order, names_or_none, read_table, write_table
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.losses import ArrayLosses, LossStream, names_of_rounds
from normalfan.problem.mdp import MDP

AXES = {"step": "H", "state": "S", "action": "A"}


def read_loss_table(path: str | Path, mdp: MDP, default: float | None = None) -> ArrayLosses:
    table = read_table(path, ("round", "loss"), tuple(AXES))
    losses = table.numbers("loss")
    rounds = in_order(table.text("round"))
    names = {"round": rounds} | {c: names for c, names in names_along(mdp).items() if c in table.columns}
    cells = cells_of(table, names)
    shape = tuple(map(len, names.values()))
    missing = first_missing(cells, shape)
    if missing is not None and default is None:
        at = ", ".join(f"{column} {names[column][i]}" for column, i in zip(names, missing, strict=True))
        raise InputError(
            f"{table.path} has no loss for {at}, but every cell needs one: add the row, or pass a default "
            f"(--default)."
        )
    array = np.full(shape, 0.0 if default is None else default)
    array.reshape(-1)[cells] = losses
    axes = "T" + "".join(AXES[column] for column in names if column != "round")
    return ArrayLosses(array, axes, round_names=names_or_none(rounds))


def write_loss_table(losses: LossStream, mdp: MDP, path: Path) -> None:
    """Every cell of every round as a row of a table that `read_loss_table` reads."""
    import polars

    array = every_round(losses, mdp)
    rounds = names_of_rounds(losses) or [str(t) for t in range(len(array))]
    names = {"round": rounds} | names_along(mdp)
    codes = np.indices(array.shape).reshape(array.ndim, -1)
    columns = {
        column: polars.Series(known, dtype=polars.String).gather(code)
        for (column, known), code in zip(names.items(), codes, strict=True)
    }
    write_table(polars.DataFrame(columns | {"loss": array.reshape(-1)}), path)


def every_round(losses: LossStream, mdp: MDP) -> FloatArray:
    """[T, H, S, A]: the whole stream at once."""
    blocks = [block[min(i, 1) :] for i, block in enumerate(losses.blocks(mdp.shape, 64))]
    return np.concatenate(blocks)


def names_along(mdp: MDP) -> dict[str, list[str]]:
    """What the steps, states and actions of a problem are called, in order."""
    labels = mdp.labels
    horizon, n_states, n_actions = mdp.shape
    return {
        "step": [labels.step(h) for h in range(horizon)],
        "state": [labels.state(s) for s in range(n_states)],
        "action": [labels.action(a) for a in range(n_actions)],
    }


def cells_of(table: Table, names: dict[str, list[str]]) -> IntArray:
    """[n]: each row's place in the array with these axes, flattened; no two rows share one."""
    cells = np.zeros(len(table), dtype=np.int64)
    for column, known in names.items():
        cells = cells * len(known) + table.codes(column, known)
    table.check_no_repeats(cells, list(names))
    return cells
