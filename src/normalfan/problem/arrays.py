"""Array types, and the few checks that every array from outside passes through.

Axis legend, everywhere in the package: T rounds, H steps, S states, A actions, K factors.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Shape: TypeAlias = tuple[int, int, int]  # H, S, A
SparseMatrix: TypeAlias = Any  # a scipy.sparse array or matrix: scipy has no types

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])

ALL_AXES = "THSA"

CACHE_LINE = 64  # bytes

PROBABILITY_TOLERANCE = 1e-6
"""How far a row of probabilities may be from 1: float32 rounds by some 1e-7, but 0.9999 lacks something."""

LEFT_ALONE = 16 * 2.0**-52
"""Rows this near to summing to 1 are not divided: what was divided once stays the same for ever."""


def read_numbers(name: str, array: npt.ArrayLike) -> npt.NDArray[Any]:
    """`array` as a NumPy array of real numbers, without a copy where none is needed."""
    _check_unmasked(name, array)
    try:
        numbers = np.asarray(array)
    except ValueError as error:
        raise InputError(
            f"{name} has rows of different lengths, but must be one array: make them equally long."
        ) from error
    check_dtype(name, numbers.dtype)
    if numbers.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            doubles = numbers.astype(np.float64)
        fits = np.isfinite(doubles) | ~np.isfinite(numbers)
        check_entries(name, numbers, fits, "must fit into 64 bits: use a larger unit")
        return doubles
    return numbers


def check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub":
        raise InputError(
            f"{name} has dtype {dtype}, but must hold real numbers: "
            f"convert it first, e.g. with np.asarray({name}, dtype=float)."
        )


def _check_unmasked(name: str, array: object, place: tuple[int, ...] = ()) -> None:
    """Refuse masked entries: NumPy would use what is under the mask."""
    if isinstance(array, list | tuple):
        for i, item in enumerate(array):
            if isinstance(item, list | tuple | np.ma.MaskedArray):
                _check_unmasked(name, item, (*place, i))
    elif isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        where = [*place, *first_index(np.ma.getmaskarray(array))]
        raise InputError(
            f"{name}{where} is masked, but every entry must be a number: fill it, or drop its row."
        )


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...], remedy: str) -> None:
    if shape != expected:
        raise InputError(f"{name} has shape {list(shape)}, but the problem needs {list(expected)}: {remedy}.")


def check_axes(name: str, shape: tuple[int, ...], axes: str) -> None:
    check_order(axes, ALL_AXES, first="T")
    if len(shape) != len(axes):
        raise InputError(
            f"{name} has shape {list(shape)}, but must have the axes [{', '.join(axes)}]: if it lacks some "
            f'of [T, H, S, A], name those it has, as in ArrayLosses(array, axes="TSA") or --axes TSA.'
        )


def check_order(axes: str, among: str, first: str = "") -> None:
    ordered = "".join(axis for axis in among if axis in axes)
    if not axes or axes != ordered or not axes.startswith(first):
        raise InputError(
            f"axes is {axes!r}, but must name, in this order and without repeats, some of {among}"
            f"{' and begin with ' + first if first else ''}: transpose the array if need be."
        )


def expand_axes(name: str, array: npt.NDArray[Any], axes: str, shape: tuple[int, ...]) -> FloatArray:
    """`array`, which has the named axes, as a view [T, H, S, A] or [H, S, A] of this shape."""
    sizes = dict(zip(ALL_AXES[-len(shape) :], shape, strict=True))
    remedy = f"put its axes in the order [{', '.join(axes)}], or name those it has with axes="
    check_shape(name, array.shape, tuple(sizes[axis] for axis in axes), remedy)
    lacking = tuple(i for i, axis in enumerate(sizes) if axis not in axes)
    return np.broadcast_to(np.expand_dims(array, lacking), shape)


def check_finite(name: str, numbers: npt.NDArray[Any], offset: tuple[int, ...] = ()) -> None:
    if numbers.dtype.kind == "f":
        rule = "every entry must be finite: replace or drop it"
        check_entries(name, numbers, np.isfinite(numbers), rule, offset)


def check_losses(name: str, losses: npt.NDArray[Any], offset: tuple[int, ...] = ()) -> None:
    rule = "every loss must be a number, or inf where an action is not allowed: replace or drop it"
    check_entries(name, losses, losses > -np.inf, rule, offset)


def check_entries(
    name: str, numbers: npt.NDArray[Any], sound: BoolArray, rule: str, offset: tuple[int, ...] = ()
) -> None:
    """Refuse the first entry that is not sound; `offset` is added to the index that the message names."""
    if not sound.all():
        where = first_index(~sound)
        shown = [i + o for i, o in zip_longest(where, offset, fillvalue=0)]
        raise InputError(f"{name}{shown} is {numbers[where]!s}, but {rule}.")


def read_distributions(name: str, rows: npt.NDArray[Any]) -> FloatArray:
    """A float64 copy of `rows`, each a distribution along the last axis, divided by its sum if it is off."""
    numbers = np.array(rows, dtype=np.float64, order="C")
    check_finite(name, numbers)
    rule = "a probability cannot be negative: check how the rows were built"
    check_entries(name, numbers, numbers >= 0, rule)
    divide_by_sums(name, numbers.sum(axis=-1), numbers.__getitem__)
    return numbers


def divide_by_sums(name: str, sums: FloatArray, row_at: Callable[[tuple[int, ...]], FloatArray]) -> None:
    """Refuse probability rows whose sums, given here, are not 1; those that are off are divided in place."""
    errors = np.abs(sums - 1.0)
    if (errors > PROBABILITY_TOLERANCE).any():
        where = first_index(errors > PROBABILITY_TOLERANCE)
        at = f"{name}{list(where)}" if where else name
        raise InputError(
            f"{at} sums to {sums[where]:.12g}, but probabilities must sum to 1 within "
            f"{PROBABILITY_TOLERANCE:g}: divide each row by its sum in float64."
        )
    # A quarter, because these sums are rounded, in an order that depends on the representation.
    for place in np.argwhere(errors > LEFT_ALONE / 4):
        row = row_at(tuple(place))
        total = math.fsum(row.tolist())  # exact: every representation gets the same bits
        if abs(total - 1.0) > LEFT_ALONE:
            row /= total


def first_index(flags: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """The index of the first true entry, in C order."""
    return tuple(int(i) for i in np.unravel_index(int(flags.argmax()), flags.shape))


def read_only(array: AnyArray) -> AnyArray:
    """`array` itself, with writing switched off: results do not change under their reader."""
    array.flags.writeable = False
    return array


def on_cache_lines(array: FloatArray) -> FloatArray:
    """`array`, moved if it does not begin on a cache line: registers of it are then not read in two parts."""
    if array.ctypes.data % CACHE_LINE == 0:
        return array
    room = np.empty(array.size + CACHE_LINE // 8)
    start = -room.ctypes.data % CACHE_LINE // 8
    moved = room[start : start + array.size].reshape(array.shape)
    moved[:] = array
    return moved


def mapping_under(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The mapped file in which `array` lies, unless what is written to it lies elsewhere."""
    mapped: Any = array
    while not isinstance(mapped, mmap.mmap):
        copies_on_write = isinstance(mapped, np.memmap) and mapped.mode not in ("r", "r+")
        if mapped is None or copies_on_write:
            return None
        mapped = getattr(mapped, "base", None)
    return mapped


def release_pages(array: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped file under `array` back: a stream longer than memory would fill it."""
    mapped = mapping_under(array)
    if mapped is None:  # or pages that were written to, which would be lost
        return
    if not hasattr(mmap, "MADV_DONTNEED") or not array.size:
        return
    origin = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
    first, last = np.lib.array_utils.byte_bounds(array)
    # Only whole pages: their neighbours' edges stay.
    start = -(-(first - origin) // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (last - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < stop:
        mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)
