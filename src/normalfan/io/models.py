"""Problems from files and environments, and back into files. Formats: docs/how-to/files.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars
from scipy import sparse

from normalfan.array_files import read_npz, write_npz
from normalfan.errors import InputError
from normalfan.files import check_memory
from normalfan.io import frames, tables
from normalfan.io.frames import Dialect, TableSource
from normalfan.io.gym import PREFIX, from_gymnasium
from normalfan.io.tables import Table
from normalfan.problem.arrays import PROBABILITY_TOLERANCE, FloatArray, first_index
from normalfan.problem.losses import LossStream
from normalfan.problem.mdp import MDP, Labels, mdp_from_arrays, mdp_to_arrays
from normalfan.problem.transitions import transitions_of_moves
from normalfan.text import counted

RULE = "a model is a .npz, .csv, .csv.gz or .parquet file or an environment gym:ID"
REQUIRED = ("state", "action", "next_state", "probability")
OPTIONAL = ("step", "start", "allowed")


def load_mdp(
    source: TableSource,
    *,
    horizon: int | None = None,
    start: str | int | None = None,
    steps: Sequence[str] | None = None,
    separator: str = ",",
    decimal: str = ".",
    max_memory: int | None = None,
) -> MDP:
    """Read a problem from a file, a frame or a Gymnasium environment.

    Parameters
    ----------
    source : str, Path, or polars or pandas DataFrame
        A `.npz` file, a table (`.csv`, `.csv.gz`, `.parquet`, a frame, or "-" for CSV on standard input), or
        "gym:ID" for an environment. See docs/how-to/files.md.
    horizon : int, optional
        The number of steps, if the source does not have it or is the same at every step.
    start : str or int, optional
        The state to start in, instead of the start of the source; an index only if states have no names.
    steps : sequence of str, optional
        Names for the steps of a source that does not name them; their number is the horizon.
    separator, decimal : str
        How a CSV table separates entries and writes 1.5.
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
    path = frames.path_of(source)
    dialect = Dialect(separator, decimal)
    length = horizon if steps is None else _count_steps(steps, horizon)
    if isinstance(source, str) and source.startswith(PREFIX):
        mdp = from_gymnasium(source.removeprefix(PREFIX), length, start)
    elif frames.is_table(path) and not path.is_dir():
        mdp = _read_model_table(source, length, start, dialect)
    elif frames.existing_file(path).suffix == ".npz":
        mdp = _read_stored(path, length, start, max_memory)
    else:
        raise frames.unknown_suffix(path, RULE)
    check_memory(f"a loss of {path}", 8 * math.prod(mdp.shape), max_memory)
    if steps is None:
        return mdp
    names = tuple(map(str, steps))
    if mdp.labels.steps not in (None, names):
        raise InputError(
            f"steps are called {names[0]}, …, but {path} has names for them itself, {mdp.labels.step(0)}, …: "
            f"leave steps out (--steps)."
        )
    labels = replace(mdp.labels, steps=names)
    return MDP(mdp.transitions, mdp.initial, mdp.horizon, labels=labels, allowed=mdp.allowed)


def save_mdp(mdp: MDP, path: str | Path) -> None:
    """Write a problem, with its labels, to a file that `load_mdp` reads back.

    Parameters
    ----------
    mdp : MDP
    path : str or Path
        A `.npz`, `.csv`, `.csv.gz` or `.parquet` file, which appears complete or not at all.

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
    elif frames.suffix_of(target) in frames.SUFFIXES:
        frames.write_table(mdp_to_frame(mdp), target)
    else:
        raise frames.unknown_suffix(target, RULE)


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
    allowed: Any = stored.allowed
    if allowed is not None and (allowed == allowed[0]).all():
        allowed = allowed[0]  # for any number of steps
    return MDP(stored.transitions, initial, steps, labels=stored.labels, allowed=allowed)


def _count_steps(steps: Sequence[str], horizon: int | None) -> int:
    if isinstance(steps, str) or not isinstance(steps, Sequence | np.ndarray) or not len(steps):
        raise InputError(
            f"steps is {steps!r}, but must be a list of names, one for each step: pass one, such as "
            f"['morning', 'evening']."
        )
    if horizon not in (None, len(steps)):
        raise InputError(
            f"horizon is {horizon}, but {counted(len(steps), 'step')} got names ({tables.first_few(steps)}): "
            f"name each step, or leave one of the two out."
        )
    return len(steps)


def _read_model_table(
    source: TableSource, horizon: int | None, start: str | int | None, dialect: Dialect
) -> MDP:
    table = tables.read_table(source, REQUIRED, OPTIONAL, dialect)
    states, actions = table.names("state", "next_state"), table.names("action")
    steps = _read_steps(table) if "step" in table.columns else []
    names = {"step": steps} if steps else {}
    names |= {"state": states, "action": actions}
    shape = tuple(map(len, names.values()))
    rows, nexts = np.divmod(table.cells(names | {"next_state": states}), len(states))
    weights = table.probabilities()
    size = math.prod(shape)
    sums = np.bincount(rows, weights, size).reshape(shape)
    absent = np.bincount(rows, minlength=size).reshape(shape) == 0
    table.check_sums(np.asarray(sums, dtype=np.float64), ~absent, names)
    lacking = absent.all(axis=-1)  # states without any row are ends, and stay where they are
    allowed = ~absent
    if "allowed" in table.columns:
        allowed = table.agreed("allowed", table.flags("allowed"), names)
    kernels = (len(steps) or 1, len(states), len(actions))
    transitions = transitions_of_moves(rows, nexts, weights, kernels, stays=absent)
    initial = _read_start(table, states) if start is None else tables.state_index(start, states)
    labels = Labels(*map(tables.names_or_none, (steps, states, actions)))
    length = _fit_horizon(table, steps, horizon)
    mdp = MDP(transitions, initial, length, labels=labels, allowed=allowed | lacking[..., None])
    if steps and (gaps := mdp.reachable & lacking & ~lacking.all(axis=0)).any():
        h, s = first_index(gaps)
        raise InputError(
            f"{table.path} has no row for state {mdp.labels.state(s)} at step {mdp.labels.step(h)}, but it "
            f"can be reached then: add its rows at that step."
        )
    return mdp


def mdp_to_frame(mdp: MDP) -> polars.DataFrame:
    """Write a problem as a frame: the table that `load_mdp` reads back.

    Parameters
    ----------
    mdp : MDP

    Returns
    -------
    polars.DataFrame
        The columns step, state, action, next_state, probability, start, and allowed if not all actions are;
        for pandas call its `to_pandas`.

    Examples
    --------
    >>> mdp_to_frame(MDP([[0, 0]], initial=0, horizon=1)).rows()
    [('0', '0', '0', '0', 1.0, 1.0), ('0', '0', '1', '0', 1.0, 1.0)]
    """
    names = tables.names_along(mdp)
    kernels = mdp.transitions.all_csr()
    kernels *= mdp.horizon // len(kernels)  # the steps of the table give the horizon
    moves = sparse.vstack(kernels, format="csr").tocoo()
    codes = np.unravel_index(moves.row, mdp.shape)
    columns = tables.label_columns(names | {"next_state": names["state"]}, (*codes, moves.col))
    numbers = {"probability": moves.data, "start": mdp.initial[codes[1]]}
    if mdp.allowed is not None:
        numbers["allowed"] = mdp.allowed[codes]
    return polars.DataFrame(columns | numbers)


def _fit_horizon(table: Table, steps: Sequence[str], horizon: int | None) -> int:
    if not steps and horizon is None:
        raise InputError(
            f"{table.path} has no column step, but a problem needs a horizon: pass one (--horizon), or "
            f"add the column."
        )
    if steps and horizon not in (None, len(steps)):
        raise InputError(
            f"horizon is {horizon}, but {table.path} names its steps, {len(steps)} in all: leave it out."
        )
    return len(steps) if horizon is None else horizon


def _read_steps(table: Table) -> list[str]:
    """The steps as they first appear; numbers that do not ascend must come one whole step after the other."""
    steps = table.names("step")
    if all(map(str.isdecimal, steps)) and steps != sorted(steps, key=int):
        rows = table.codes("step", steps)
        rule = "but numbered steps must ascend or have their rows together: sort the rows by step."
        back = np.diff(rows, prepend=0) < 0
        table.refuse(back, lambda row: f"goes back to step {steps[rows[row]]}, {rule}")
    return steps


def _read_start(table: Table, states: Sequence[str]) -> FloatArray:
    if "start" not in table.columns:
        raise InputError(
            f"{table.path} has no column start, but a problem must start somewhere: pass a start state "
            f"(--start), or add the probability of starting in each state."
        )
    initial = table.agreed("start", table.numbers("start"), {"state": states})
    if (initial < 0).any() or abs(initial.sum() - 1) > PROBABILITY_TOLERANCE:
        raise InputError(
            f"{table.path} has a column start that sums to {initial.sum():.12g} over the states, but it must "
            f"be a probability distribution: correct it, or pass a start state (--start)."
        )
    return initial


def problems_of_rounds(
    source: str | Path,
    mdp: MDP,
    stream: LossStream,
    load: Callable[[str], MDP],
    reopen: Callable[[str, MDP], LossStream],
    dialect: Dialect,
) -> tuple[list[MDP], Any, dict[str, Any]]:
    """What `price_stream` takes of a table with the model of each round, and the features if it has some.

    Rounds that it does not name have `mdp`. With features there is a stream for each problem, as `reopen`
    reads them.
    """
    table, files_of_row = _read_rounds(source, dialect)
    rounds = tables.rounds_named(stream)
    table.cells({"round": table.names("round")})  # none of them comes twice
    problems, streams, known = [mdp], [stream], dict[tuple[str, ...], int]()
    of_round = [0] * len(rounds)
    for t, files in zip(table.codes("round", rounds).tolist(), files_of_row, strict=True):
        if files not in known:
            known[files] = len(problems)
            problems.append(load(files[0]))
            streams += [reopen(features, problems[-1]) for features in files[1:]]
        of_round[t] = known[files]
    return problems, stream if len(streams) == 1 else streams, {"dynamics_of_round": of_round}


def files_of_rounds(source: str | Path) -> list[Path]:
    return list(dict.fromkeys(map(Path, chain.from_iterable(_read_rounds(source, Dialect())[1]))))


def _read_rounds(source: str | Path, dialect: Dialect) -> tuple[Table, list[tuple[str, ...]]]:
    """A table of rounds, and the model of each row and, if there is such a column, its features."""
    table = tables.read_table(source, ("round", "model"), ("features",), dialect)
    columns = [table.text(name) for name in ("model", "features") if name in table.columns]
    files = [tuple(str(table.path.parent / file) for file in row) for row in zip(*columns, strict=True)]
    return table, files
