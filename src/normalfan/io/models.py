"""Problems from files and environments, and back into files."""

from __future__ import annotations

from pathlib import Path

from normalfan.errors import InputError
from normalfan.io.array_files import read_npz, write_npz
from normalfan.io.gym import PREFIX, from_gymnasium
from normalfan.io.model_tables import read_model_table, write_model_table
from normalfan.io.starts import state_index
from normalfan.io.tables import existing_file, unknown_suffix
from normalfan.problem.mdp import MDP
from normalfan.problem.storage import mdp_from_arrays, mdp_to_arrays

RULE = "a model is a .npz, .csv or .parquet file or an environment gym:ID"


def load_mdp(source: str | Path, *, horizon: int | None = None, start: str | int | None = None) -> MDP:
    """A problem from a `.npz` file, a `.csv` or `.parquet` table, or an environment "gym:ID".

    `horizon`: how many steps, where the source does not say (for a stationary one it overrides).
    `start`: a state's label or index; it overrides what the source says.
    """
    if str(source).startswith(PREFIX):
        return from_gymnasium(str(source).removeprefix(PREFIX), horizon, start)
    path = existing_file(source)
    match path.suffix:
        case ".npz":
            return _read_stored(path, horizon, start)
        case ".csv" | ".parquet":
            return read_model_table(path, horizon=horizon, start=start)
    raise unknown_suffix(path, RULE)


def save_mdp(mdp: MDP, path: str | Path) -> None:
    """Write a problem, with its labels, to a `.npz`, `.csv` or `.parquet` file."""
    target = Path(path)
    match target.suffix:
        case ".npz":
            write_npz(mdp_to_arrays(mdp), target)
        case ".csv" | ".parquet":
            write_model_table(mdp, target)
        case _:
            raise unknown_suffix(target, RULE)


def _read_stored(path: Path, horizon: int | None, start: str | int | None) -> MDP:
    arrays = read_npz(path)
    try:
        stored = mdp_from_arrays(arrays)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise InputError(_blamed(path, error)) from None
    if horizon is None and start is None:
        return stored
    states = [stored.labels.state(s) for s in range(stored.n_states)]
    initial = stored.initial if start is None else state_index(start, states)
    return MDP(
        stored.transitions, initial, stored.horizon if horizon is None else horizon, labels=stored.labels
    )


def _blamed(path: Path, error: Exception) -> str:
    if isinstance(error, InputError):
        return f"{path}: {error}"
    return (
        f"{path} holds arrays that do not fit together, but a stored problem must be as save_mdp writes it: "
        f"write it again."
    )
