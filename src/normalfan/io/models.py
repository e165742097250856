"""Problems from files and environments, and back into files. Formats: docs/how-to/files.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.array_files import check_memory, read_npz, write_npz
from normalfan.errors import InputError
from normalfan.io import tables
from normalfan.io.gym import PREFIX, from_gymnasium
from normalfan.io.moves import Moves
from normalfan.io.tables import Table
from normalfan.problem.arrays import PROBABILITY_TOLERANCE, FloatArray, first_index
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP
from normalfan.problem.storage import mdp_from_arrays, mdp_to_arrays

RULE = "a model is a .npz, .csv or .parquet file or an environment gym:ID"
REQUIRED = ("state", "action", "next_state", "probability")
OPTIONAL = ("step", "start")


def load_mdp(
    source: str | Path,
    *,
    horizon: int | None = None,
    start: str | int | None = None,
    max_memory: int | None = None,
) -> MDP:
    """Read a problem from a file or from a Gymnasium environment.

    Parameters
    ----------
    source : str or Path
        A `.npz` file, a `.csv` or `.parquet` table, or "gym:ID" for an environment. See docs/how-to/files.md.
    horizon : int, optional
        The number of steps, if the source does not have it or is the same at every step.
    start : str or int, optional
        The state to start in, instead of the start of the source; an index only if states have no names.
    max_memory : int, optional
        How many bytes its arrays, or a loss [H, S, A], may take; by default what the machine has.

    Returns
    -------
    MDP
        The problem, with the labels of the source.

    Raises
    ------
    InputError
        If the source does not describe a problem. For a table the message names the line.

    Examples
    --------
    >>> load_mdp("gym:FrozenLake-v1", horizon=12)
    MDP(horizon=12, states=16, actions=4, Sparse)
    """
    if str(source).startswith(PREFIX):
        mdp = from_gymnasium(str(source).removeprefix(PREFIX), horizon, start)
    elif (path := tables.existing_file(source)).suffix == ".npz":
        mdp = _read_stored(path, horizon, start, max_memory)
    elif path.suffix in tables.SUFFIXES:
        mdp = _read_model_table(path, horizon, start)
    else:
        raise tables.unknown_suffix(path, RULE)
    check_memory(f"a loss of {source}", 8 * math.prod(mdp.shape), max_memory)
    return mdp


def save_mdp(mdp: MDP, path: str | Path) -> None:
    """Write a problem, with its labels, to a file that `load_mdp` reads back.

    Parameters
    ----------
    mdp, path : MDP, str or Path
        The problem, and a `.npz`, `.csv` or `.parquet` file, which appears complete or not at all.

    Raises
    ------
    InputError
        If the file has another suffix.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "corridor.csv"
    >>> save_mdp(MDP([[0, 1], [0, 1]], initial=0, horizon=3), path)
    >>> load_mdp(path)
    MDP(horizon=3, states=2, actions=2, Deterministic)
    """
    target = Path(path)
    if target.suffix == ".npz":
        write_npz(mdp_to_arrays(mdp), target)
    elif target.suffix in tables.SUFFIXES:
        _write_model_table(mdp, target)
    else:
        raise tables.unknown_suffix(target, RULE)


def _read_stored(path: Path, horizon: int | None, start: str | int | None, max_memory: int | None) -> MDP:
    arrays = read_npz(path, max_memory=max_memory)
    try:
        stored = mdp_from_arrays(arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, TypeError, LookupError, ArithmeticError):
        raise InputError(
            f"{path} has arrays that do not fit together, but a stored problem must be as save_mdp "
            f"writes it: write it again."
        ) from None
    if horizon is None and start is None:
        return stored
    states = tables.names_along(stored)["state"]
    initial = stored.initial if start is None else tables.state_index(start, states)
    steps = stored.horizon if horizon is None else horizon
    return MDP(stored.transitions, initial, steps, labels=stored.labels)


def _read_model_table(path: Path, horizon: int | None, start: str | int | None) -> MDP:
    import polars

    table = tables.read_table(path, REQUIRED, OPTIONAL)
    states = tables.distinct(polars.concat([table.text("state"), table.text("next_state")]))
    actions = tables.distinct(table.text("action"))
    steps = _read_steps(table) if "step" in table.columns else None
    labels = Labels(*map(tables.names_or_none, (steps or (), states, actions)))
    moves = _read_moves(table, steps or ("every step",), states, actions)
    filled = _fill_ends(table, moves, (steps, states, actions))
    initial = _read_start(table, states) if start is None else tables.state_index(start, states)
    mdp = MDP(filled.transitions(), initial, _fit_horizon(table, steps, horizon), labels=labels)
    if steps is not None:
        _check_gaps(table, mdp, moves)
    return mdp


def _write_model_table(mdp: MDP, path: Path) -> None:
    import polars

    transitions, names = mdp.transitions, tables.names_along(mdp)
    kernels = [transitions.csr(k).tocoo() for k in range(transitions.n_kernels)]
    kernels = kernels * (mdp.horizon // len(kernels))  # the steps of the table give the horizon
    steps = np.arange(mdp.horizon).repeat([kernel.nnz for kernel in kernels])
    sources, actions = np.divmod(np.concatenate([kernel.row for kernel in kernels]), mdp.n_actions)
    nexts = np.concatenate([kernel.col for kernel in kernels])
    columns = tables.label_columns(names | {"next_state": names["state"]}, (steps, sources, actions, nexts))
    probabilities = np.concatenate([kernel.data for kernel in kernels])
    numbers = {"probability": probabilities, "start": mdp.initial[sources]}
    tables.write_table(polars.DataFrame(columns | numbers), path)


def _fit_horizon(table: Table, steps: Sequence[str] | None, horizon: int | None) -> int:
    """The number of steps: that of the table, or the given one."""
    if steps is None:
        if horizon is None:
            raise InputError(
                f"{table.path} has no column step, but a problem needs a horizon: pass one (--horizon), or "
                f"add the column."
            )
        return horizon
    if horizon not in (None, len(steps)):
        raise InputError(
            f"horizon is {horizon}, but {table.path} names its steps, {len(steps)} in all: leave it out."
        )
    return len(steps)


def _read_steps(table: Table) -> list[str]:
    """The steps as they first appear; numbers that do not ascend must come one whole step after the other."""
    steps = tables.distinct(table.text("step"))
    rows = table.codes("step", steps)
    falls = np.flatnonzero(np.diff(rows) < 0)  # these rows are not grouped by step
    if len(falls) and all(map(str.isdecimal, steps)) and steps != sorted(steps, key=int):
        row = int(falls[0]) + 1
        raise InputError(
            f"{table.where(row)} goes back to step {steps[rows[row]]}, but numbered steps must ascend or "
            f"have their rows together: sort the rows by step."
        )
    return steps


def _read_moves(table: Table, steps: Sequence[str], states: Sequence[str], actions: Sequence[str]) -> Moves:
    shape = (len(steps), len(states), len(actions))
    kernel = table.codes("step", steps) if "step" in table.columns else np.int64(0)
    rows = (kernel * shape[1] + table.codes("state", states)) * shape[2] + table.codes("action", actions)
    nexts = table.codes("next_state", states)
    weights = table.numbers("probability")
    if (weights < 0).any():
        row = int((weights < 0).argmax())
        raise InputError(
            f"{table.where(row)} has the probability {weights[row]:g}, but a probability cannot be "
            f"negative: correct it."
        )
    keys = [name for name in ("step", "state", "action", "next_state") if name in table.columns]
    table.check_no_repeats(rows * len(states) + nexts, keys)
    return Moves(rows, nexts, weights, shape)


def _fill_ends(
    table: Table, moves: Moves, names: tuple[Sequence[str] | None, Sequence[str], Sequence[str]]
) -> Moves:
    """The moves, and one more for each state without any at a step: it stays where it is."""
    sums, counts = moves.sums(), moves.counts()
    resting = np.broadcast_to((counts == 0).all(axis=2, keepdims=True), sums.shape)
    wrong = ~resting & (np.abs(sums - 1) > PROBABILITY_TOLERANCE)
    if wrong.any():
        k, s, a = first_index(wrong)
        steps, states, actions = names
        at = f"state {states[s]}, action {actions[a]}" + (f" at step {steps[k]}" if steps else "")
        if counts[k, s, a] == 0:
            raise InputError(
                f"{table.path} has no row for {at}, but every state that has one action needs all of "
                f"them: add it (an impossible action may stay where it is, at a large loss)."
            )
        raise InputError(
            f"{table.path} gives {at} probabilities that sum to {sums[k, s, a]:.12g}, but they must sum to "
            f"1 within {PROBABILITY_TOLERANCE:g}: add the missing rows or more digits."
        )
    _, n_states, n_actions = moves.shape
    stays = np.flatnonzero(resting)
    return Moves(
        rows=np.concatenate([moves.rows, stays]),
        nexts=np.concatenate([moves.nexts, stays // n_actions % n_states]),
        weights=np.concatenate([moves.weights, np.ones(len(stays))]),
        shape=moves.shape,
    )


def _check_gaps(table: Table, mdp: MDP, moves: Moves) -> None:
    """Refuse a state that can be reached at a step at which it has no rows, though it has at others."""
    lacking = (moves.counts() == 0).all(axis=2)  # [K, S]
    gaps = mdp.reachable & lacking & ~lacking.all(axis=0)
    if gaps.any():
        h, s = first_index(gaps)
        raise InputError(
            f"{table.path} has no row for state {mdp.labels.state(s)} at step {mdp.labels.step(h)}, but it "
            f"can be reached then: add its rows at that step."
        )


def _read_start(table: Table, states: Sequence[str]) -> FloatArray:
    if "start" not in table.columns:
        raise InputError(
            f"{table.path} has no column start, but a problem must start somewhere: pass a start state "
            f"(--start), or add the probability of starting in each state."
        )
    weights, sources = table.numbers("start"), table.codes("state", states)
    initial = np.zeros(len(states))
    initial[sources] = weights
    other = initial[sources] != weights
    if other.any():
        row = int(other.argmax())
        raise InputError(
            f"{table.where(row)} has start {weights[row]:g} for state {states[sources[row]]}, but another of "
            f"its rows has {initial[sources[row]]:g}: give the same start in all rows of a state."
        )
    if (initial < 0).any() or abs(initial.sum() - 1) > PROBABILITY_TOLERANCE:
        raise InputError(
            f"{table.path} has a column start that sums to {initial.sum():.12g} over the states, but it must "
            f"be a probability distribution: correct it, or pass a start state (--start)."
        )
    return initial
