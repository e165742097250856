"""Losses from files, and back into files. Formats: docs/how-to/files.md.

A round is priced against the round before it, so their order decides every price. Rounds that are dates or
numbers must come in order; a file in which they do not is refused until the user says which order is meant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.array_files import map_npy, read_npz, write_npy, write_npz
from normalfan.dates import rounds_between, times_of
from normalfan.errors import InputError, check_choice
from normalfan.io import cell_tables, frames, tables
from normalfan.io.frames import Dialect, TableSource
from normalfan.problem.arrays import ALL_AXES, check_axes
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import ArrayLosses, LossStream, Negated, names_of_rounds, rounds_of
from normalfan.problem.mdp import MDP

ROUND_LABELS, FEATURE_LABELS = "round_labels", "feature_labels"
REWARDS = "rewards"  # an array of this name in a .npz file has rewards
RULE = "losses are a .npy, .npz, .csv, .csv.gz or .parquet file"


def open_losses(
    source: TableSource,
    mdp: MDP | None = None,
    *,
    features: TableSource | None = None,
    default: float | None = None,
    axes: str | None = None,
    rewards: bool = False,
    order: str | None = None,
    first: object = None,
    last: object = None,
    separator: str = ",",
    decimal: str = ".",
    max_memory: int | None = None,
) -> LossStream:
    """Open the losses of a problem, round by round, from a file, a folder or a frame.

    Parameters
    ----------
    source : str, Path, or polars or pandas DataFrame
        An array (`.npy`, `.npz`) or a table (`.csv`, `.csv.gz`, `.parquet`, a folder of `.parquet` files, a
        frame, or "-" for a CSV table on standard input).
    mdp : MDP, optional
        The problem. Tables need it for its names; arrays are checked against it if it is given.
    features, default : a table, float, optional
        The features that belong to a table of coefficients; the loss of cells that a long table leaves out.
    axes : str, optional
        The axes of an array, such as "TSA" (see `ArrayLosses`).
    rewards : bool
        Whether the numbers are rewards. A table with a column `reward` instead of `loss` says so itself.
    order : {"file", "sorted"}, optional
        What to do with dates and numbers of rounds that are out of order, which are refused otherwise.
    first, last : str, date or number, optional
        Only the rounds from `first` to `last`, both included: names of rounds, or dates or numbers.
    separator, decimal : str
        How a CSV table separates entries and writes 1.5.
    max_memory : int, optional
        How many bytes they may take; by default what the machine has. `.npy` files are not read at once.

    Returns
    -------
    LossStream
        For `price_stream`.

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the problem. For a table the message names the line.

    Examples
    --------
    >>> import polars
    >>> days = polars.DataFrame({"round": ["monday", "tuesday"], "action": [1, 1], "loss": [-3, 2]})
    >>> open_losses(days, MDP([[0, 0]], initial=0, horizon=1), default=0).array
    array([[ 0., -3.], [ 0.,  2.]])
    """
    path = frames.path_of(source)
    in_table = frames.is_table(path)
    _check_options(path if in_table else frames.existing_file(path), in_table, features, default, axes)
    dialect = Dialect(separator, decimal)
    losses: LossStream
    are_rewards = False
    if in_table:
        if mdp is None:
            raise InputError(f"{path} is opened without its mdp, but a table uses its names: pass it, too.")
        if features is None:
            losses, are_rewards = cell_tables.read_loss_table(source, mdp, default, max_memory, dialect)
        else:
            losses = cell_tables.read_factored(source, features, mdp, dialect, -np.inf if rewards else np.inf)
    elif path.suffix in (".npy", ".npz"):
        is_one = path.suffix == ".npy"
        arrays = {"losses": map_npy(path)} if is_one else read_npz(path, max_memory=max_memory)
        are_rewards = REWARDS in arrays
        losses = _stored_losses(path, arrays, mdp, axes)
    else:
        raise frames.unknown_suffix(path, RULE)
    if are_rewards and rewards:
        raise InputError(
            f"{path} calls its numbers rewards itself, but they can be negated only once: leave rewards out "
            f"(--rewards)."
        )
    kept = _some_rounds(path, losses, order, first, last)
    return Negated(kept) if are_rewards or rewards else kept


def save_losses(
    losses: LossStream, mdp: MDP, path: str | Path, *, features: str | Path | None = None
) -> None:
    """Write losses to a file that `open_losses` reads back.

    Parameters
    ----------
    losses : LossStream
        Any stream. Factored losses stay factored in a `.npz` file, and in tables if `features` is given;
        rewards stay rewards, but for `.npy`, which gets losses.
    mdp : MDP
        Their problem.
    path, features : str or Path
        A `.npy`, `.npz`, `.csv`, `.csv.gz` or `.parquet` file; a table for the features of factored losses.

    Raises
    ------
    InputError
        If the file has another suffix, or `features` does not apply.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "days.npy"
    >>> save_losses(ArrayLosses([[1.0, 2.0]], axes="TA"), MDP([[0, 0]], initial=0, horizon=1), path)
    >>> open_losses(path).array
    array([[[[1., 2.]]]])
    """
    target = Path(path)
    in_table = frames.suffix_of(target) in frames.SUFFIXES
    if features is not None:
        if not (in_table and isinstance(losses, FactoredLosses)):
            raise InputError(
                f"features is {str(features)!r}, but only a table of factored losses has them: leave it out."
            )
        cell_tables.write_factored(losses, mdp, target, Path(features))
    elif in_table:
        frames.write_table(cell_tables.losses_to_frame(losses, mdp), target)
    elif target.suffix == ".npy":
        write_npy(cell_tables.every_round(losses, mdp), target)  # which has no room for the word reward
    elif target.suffix == ".npz":
        if isinstance(losses, FactoredLosses):
            dense = losses.features.toarray().reshape(-1, *mdp.shape)
            arrays = {"coefficients": losses.coefficients, "features": dense}
            if losses.feature_names is not None:
                arrays[FEATURE_LABELS] = np.array(losses.feature_names)
        elif isinstance(losses, Negated):
            arrays = {REWARDS: cell_tables.every_round(losses.stream, mdp)}
        else:
            arrays = {"losses": cell_tables.every_round(losses, mdp)}
        if (names := names_of_rounds(losses)) is not None:
            arrays[ROUND_LABELS] = np.array(names)
        write_npz(arrays, target)
    else:
        raise frames.unknown_suffix(target, RULE)


def order_rounds(path: Path, names: Sequence[str], order: str | None) -> list[int]:
    """The rounds of a file in the order in which they are priced, as indices of `names`."""
    if order is not None:
        check_choice("order", order, ("file", "sorted"))
    as_they_are = list(range(len(names)))
    times = times_of(names)
    if order == "sorted":
        if times is None:
            raise InputError(
                f"{path} has rounds like {names[0]!r}, but only dates (2021-03-14) and numbers can be "
                f"sorted: put its rows in order and leave order out."
            )
        return sorted(as_they_are, key=times.__getitem__)
    for t, (before, now) in enumerate(pairwise(times or ()), start=1):
        if order is None and now <= before:
            raise InputError(
                f"{path} has round {names[t]} after round {names[t - 1]}, but dates and numbers must come "
                f"in order: sort them with --order sorted (order='sorted'), or keep them as they are with "
                f"--order file."
            )
    return as_they_are


def _some_rounds(path: Path, losses: LossStream, order: str | None, *ends: object) -> LossStream:
    given = tables.rounds_named(losses)
    places = order_rounds(path, given, order)
    if ends != (None, None):
        first, last = (None if end is None else str(end) for end in ends)
        places = [places[t] for t in rounds_between([given[t] for t in places], first, last)]
    if places == list(range(len(given))):
        return losses
    together = places == list(range(places[0], places[-1] + 1))
    rows = slice(places[0], places[-1] + 1) if together else places  # a slice of a mapped file is mapped
    return rounds_of(losses, rows, tables.names_or_none([given[t] for t in places]))


def _stored_losses(
    path: Path, arrays: dict[str, npt.NDArray[Any]], mdp: MDP | None, axes: str | None
) -> LossStream:
    names, features = (
        None if labels is None else [str(name) for name in np.atleast_1d(labels)]
        for labels in (arrays.pop(ROUND_LABELS, None), arrays.pop(FEATURE_LABELS, None))
    )
    if set(arrays) == {"coefficients", "features"}:
        if axes is not None:
            raise InputError(
                f"axes is {axes!r}, but the features in {path} have all of [H, S, A]: leave it out."
            )
        _check_shape(path, "features", arrays["features"].shape[1:], mdp)
        return FactoredLosses(**arrays, round_names=names, feature_names=features)
    if len(arrays) != 1:
        shown = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(
            f"{path} contains {shown}, but losses are one array, or coefficients and features: save only "
            f"those."
        )
    (array,) = arrays.values()
    if array.dtype.kind not in "fiu":
        raise InputError(
            f"{path} contains an array of dtype {array.dtype}, but losses are real numbers: save it as float."
        )
    named = axes or ALL_AXES
    check_axes(str(path), array.shape, named)
    _check_shape(path, "losses", array.shape[1:], mdp, named)
    return ArrayLosses(array, named, round_names=names)


def _check_shape(
    path: Path, what: str, shape: tuple[int, ...], mdp: MDP | None, axes: str = ALL_AXES
) -> None:
    """Refuse axes after the first that are not as long as the problem's, or that it numbers otherwise."""
    if mdp is None:
        return
    for (kind, names), axis in zip(tables.names_along(mdp).items(), "HSA", strict=True):
        numbers = [str(i) for i in range(len(names))]
        if axis in axes and names != numbers and set(names) == set(numbers):
            place = next(i for i, name in enumerate(names) if name != numbers[i])
            raise InputError(
                f"{path} is an array and goes by places, but {kind} {names[place]} is the model's number "
                f"{place}: put the rows of the model in order, ends included, or give the losses as a table."
            )
    expected = tuple(size for axis, size in zip("HSA", mdp.shape, strict=True) if axis in axes)
    if shape != expected:
        raise InputError(
            f"{path} has {what} of shape [·, {', '.join(map(str, shape))}], but the model's are "
            f"[·, {', '.join(map(str, expected))}]: check the order of the axes (steps, states, actions)."
        )


def _check_options(
    path: Path, in_table: bool, features: TableSource | None, default: float | None, axes: str | None
) -> None:
    if axes is not None and in_table:
        raise InputError(f"axes is {axes!r}, but the columns of {path} name its axes: leave it out.")
    if features is not None and not in_table:
        raise InputError(
            f"features is '{frames.path_of(features)}', but only a table of coefficients takes them, and "
            f"{path} ends in {path.suffix!r}: leave it out, or give the coefficients as .csv or .parquet."
        )
    if default is None:
        return
    if isinstance(default, bool) or not isinstance(default, Real) or not math.isfinite(default):
        raise InputError(f"default is {default!r}, but a loss is a finite number: pass one, such as 0.")
    if features is not None or not in_table:
        raise InputError(
            f"default is {default:g}, but only a long table of losses can leave cells out: leave it out."
        )
