"""Losses from files, and back into files. Formats: docs/how-to/files.md."""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.array_files import map_npy, read_npz, write_npy, write_npz
from normalfan.errors import InputError
from normalfan.io import tables
from normalfan.io.loss_tables import (
    every_round,
    read_factored,
    read_loss_table,
    write_factored,
    write_loss_table,
)
from normalfan.io.rounds import order_rounds
from normalfan.io.tables import TableSource
from normalfan.problem.losses import (
    ALL_AXES,
    ArrayLosses,
    FactoredLosses,
    LossStream,
    check_axes,
    names_of_rounds,
)
from normalfan.problem.mdp import MDP

ROUND_LABELS = "round_labels"
RULE = "losses are a .npy, .npz, .csv or .parquet file"


def open_losses(
    source: TableSource,
    mdp: MDP | None = None,
    *,
    features: str | Path | None = None,
    default: float | None = None,
    axes: str | None = None,
    order: str | None = None,
    max_memory: int | None = None,
) -> ArrayLosses | FactoredLosses:
    """Open the losses of a problem, round by round, from a file, a folder or a frame.

    Parameters
    ----------
    source : str, Path or polars.DataFrame
        An array (`.npy`, `.npz`) or a table (`.csv`, `.parquet`, a folder of `.parquet` files, a frame).
    mdp : MDP, optional
        The problem. Tables need it for its names; arrays are checked against it if it is given.
    features, default : str or Path, float, optional
        The features that belong to a table of coefficients; the loss of cells that a long table leaves out.
    axes : str, optional
        The axes of an array, such as "TSA" (see `ArrayLosses`).
    order : {"file", "sorted"}, optional
        What to do with dates and numbers of rounds that are out of order, which are refused otherwise.
    max_memory : int, optional
        How many bytes they may take; by default what the machine has. `.npy` files are not read at once.

    Returns
    -------
    ArrayLosses or FactoredLosses
        A stream for `price_stream`.

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
    path, in_table = tables.path_of(source), tables.is_table(source)
    _check_options(path if in_table else tables.existing_file(path), in_table, features, default, axes)
    losses: ArrayLosses | FactoredLosses
    if in_table:
        if mdp is None:
            raise InputError(f"{path} is opened without its mdp, but a table uses its names: pass it, too.")
        if features is None:
            losses = read_loss_table(source, mdp, default, max_memory)
        else:
            losses = read_factored(source, features, mdp)
    elif path.suffix == ".npy":
        losses = _array_losses(path, map_npy(path), mdp, axes)
    elif path.suffix == ".npz":
        losses = _stored_losses(path, read_npz(path, max_memory=max_memory), mdp, axes)
    else:
        raise tables.unknown_suffix(path, RULE)
    return _in_order(path, losses, order)


def save_losses(
    losses: LossStream, mdp: MDP, path: str | Path, *, features: str | Path | None = None
) -> None:
    """Write losses to a file that `open_losses` reads back.

    Parameters
    ----------
    losses : LossStream
        Any stream. Factored losses stay factored in a `.npz` file, and in tables if `features` is given.
    mdp : MDP
        Their problem.
    path, features : str or Path
        A `.npy`, `.npz`, `.csv` or `.parquet` file, and a table for the features of factored losses.

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
    in_table = target.suffix in tables.SUFFIXES
    if features is not None and not (in_table and isinstance(losses, FactoredLosses)):
        raise InputError(
            f"features is {str(features)!r}, but only a table of factored losses has them: leave it out."
        )
    if features is not None and isinstance(losses, FactoredLosses):
        write_factored(losses, mdp, target, Path(features))
    elif in_table:
        write_loss_table(losses, mdp, target)
    elif target.suffix == ".npy":
        write_npy(every_round(losses, mdp), target)
    elif target.suffix == ".npz":
        if isinstance(losses, FactoredLosses):
            dense = losses.features.toarray().reshape(-1, *mdp.shape)
            arrays = {"coefficients": losses.coefficients, "features": dense}
        else:
            arrays = {"losses": every_round(losses, mdp)}
        if (names := names_of_rounds(losses)) is not None:
            arrays[ROUND_LABELS] = np.array(names)
        write_npz(arrays, target)
    else:
        raise tables.unknown_suffix(target, RULE)


def _in_order(
    path: Path, losses: ArrayLosses | FactoredLosses, order: str | None
) -> ArrayLosses | FactoredLosses:
    given = losses.round_names or [str(t) for t in range(losses.n_rounds)]
    places = order_rounds(path, given, order)
    if places == list(range(len(given))):
        return losses
    names = tables.names_or_none([given[t] for t in places])
    if isinstance(losses, ArrayLosses):
        return ArrayLosses(losses.array[places], losses.axes, round_names=names)
    theta, known = losses.coefficients[places], losses.feature_names
    return FactoredLosses(theta, losses.features, round_names=names, feature_names=known)


def _stored_losses(
    path: Path, arrays: dict[str, npt.NDArray[Any]], mdp: MDP | None, axes: str | None
) -> ArrayLosses | FactoredLosses:
    labels = arrays.pop(ROUND_LABELS, None)
    names = None if labels is None else [str(name) for name in np.atleast_1d(labels)]
    if set(arrays) == {"coefficients", "features"}:
        if axes is not None:
            raise InputError(
                f"axes is {axes!r}, but the features in {path} have all of [H, S, A]: leave it out."
            )
        _check_shape(path, "features", arrays["features"].shape[1:], mdp)
        return FactoredLosses(arrays["coefficients"], arrays["features"], round_names=names)
    if len(arrays) != 1:
        shown = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(
            f"{path} contains {shown}, but losses are one array, or coefficients and features: save only "
            f"those."
        )
    (array,) = arrays.values()
    return _array_losses(path, array, mdp, axes, names)


def _array_losses(
    path: Path,
    array: npt.NDArray[Any],
    mdp: MDP | None,
    axes: str | None,
    names: list[str] | None = None,
) -> ArrayLosses:
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
    """Refuse an array whose axes after the first are not as long as the problem's."""
    if mdp is None:
        return
    _check_places(path, mdp, axes)
    expected = tuple(size for axis, size in zip("HSA", mdp.shape, strict=True) if axis in axes)
    if shape != expected:
        raise InputError(
            f"{path} has {what} of shape [·, {', '.join(map(str, shape))}], but the model's are "
            f"[·, {', '.join(map(str, expected))}]: check the order of the axes (steps, states, actions)."
        )


def _check_places(path: Path, mdp: MDP, axes: str) -> None:
    """Refuse an array for a problem whose names are the numbers of other places."""
    for (kind, names), axis in zip(tables.names_along(mdp).items(), "HSA", strict=True):
        numbers = [str(i) for i in range(len(names))]
        if axis in axes and names != numbers and set(names) == set(numbers):
            place = next(i for i, name in enumerate(names) if name != numbers[i])
            raise InputError(
                f"{path} is an array and goes by places, but {kind} {names[place]} is the model's number "
                f"{place}: put the rows of the model in order, ends included, or give the losses as a table."
            )


def _check_options(
    path: Path, in_table: bool, features: str | Path | None, default: float | None, axes: str | None
) -> None:
    if axes is not None and in_table:
        raise InputError(f"axes is {axes!r}, but the columns of {path} name its axes: leave it out.")
    if features is not None and not in_table:
        raise InputError(
            f"features is {str(features)!r}, but only a table of coefficients takes them, and {path} ends "
            f"in {path.suffix!r}: leave it out, or give the coefficients as .csv or .parquet."
        )
    if default is not None and (isinstance(default, bool) or not isinstance(default, Real)):
        raise InputError(f"default is {default!r}, but a loss is a number: pass one, such as 0.")
    if default is not None and (features is not None or not in_table):
        raise InputError(
            f"default is {default:g}, but only a long table of losses can leave cells out: leave it out."
        )
    if default is not None and not np.isfinite(default):
        raise InputError(f"default is {default:g}, but a loss must be finite: choose a number.")
