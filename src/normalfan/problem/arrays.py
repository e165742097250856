"""Array types, and the few checks that every array from outside passes through.

Axis legend, everywhere in the package: T rounds, H steps, S states, A actions, K factors.
"""

from __future__ import annotations

import mmap
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
SparseMatrix: TypeAlias = Any  # a scipy.sparse array or matrix: scipy has no types

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])

PROBABILITY_TOLERANCE = 1e-9
"""How far a row of probabilities may be from summing to one (rounding, not modelling)."""


def read_numbers(name: str, array: npt.ArrayLike) -> npt.NDArray[Any]:
    """`array` as a NumPy array of real numbers, without a copy where none is needed."""
    numbers = np.asarray(array)
    if numbers.dtype.kind not in "fiub":
        raise InputError(
            f"{name} has dtype {numbers.dtype}, but must hold real numbers: "
            f"convert it first, e.g. with np.asarray({name}, dtype=float)."
        )
    return numbers


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...], remedy: str) -> None:
    """Refuse an array that does not have the shape that the problem needs."""
    if shape != expected:
        raise InputError(f"{name} has shape {list(shape)}, but the problem needs {list(expected)}: {remedy}.")


def check_finite(name: str, numbers: npt.NDArray[Any], offset: tuple[int, ...] = ()) -> None:
    """Refuse NaN and infinity; `offset` is added to the index that the message names."""
    if numbers.dtype.kind != "f":
        return
    finite = np.isfinite(numbers)
    if not finite.all():
        where = first_index(~finite)
        shown = tuple(i + o for i, o in zip(where, offset, strict=False)) + where[len(offset) :]
        raise InputError(
            f"{name}{list(shown)} is {numbers[where]}, but every entry must be finite: "
            f"replace or drop it (a forbidden action gets a large finite loss)."
        )


def check_distributions(name: str, rows: npt.NDArray[Any]) -> None:
    """Refuse rows (along the last axis) that are not probability distributions."""
    check_finite(name, rows)
    if rows.size and rows.min() < 0:
        where = first_index(rows < 0)
        raise InputError(
            f"{name}{list(where)} is {rows[where]}, but a probability cannot be negative: "
            f"check how the rows were built."
        )
    check_sums(name, rows.sum(axis=-1))


def check_sums(name: str, sums: npt.NDArray[Any]) -> None:
    """Refuse probability rows whose sums, given here, are not one."""
    off = np.abs(sums - 1.0) > PROBABILITY_TOLERANCE
    if off.any():
        where = first_index(off)
        at = f"{name}{list(where)}" if where else name
        raise InputError(
            f"{at} sums to {sums[where]:.12g}, but probabilities must sum to 1 within "
            f"{PROBABILITY_TOLERANCE:g}: divide each row by its sum in float64."
        )


def first_index(flags: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """The index of the first true entry, in C order."""
    return tuple(int(i) for i in np.unravel_index(int(flags.argmax()), flags.shape))


def read_only(array: AnyArray) -> AnyArray:
    """`array` itself, with writing switched off: results do not change under their reader."""
    array.flags.writeable = False
    return array


def release_pages(array: npt.NDArray[Any]) -> None:
    """Give the memory pages under `array` back to the system if a file backs them; otherwise do nothing.

    Pages of a mapped file stay in memory after they were read: a stream longer than memory would fill it.
    """
    mapped = _mapped_file(array)
    if mapped is None or not hasattr(mmap, "MADV_DONTNEED") or not array.size:
        return
    origin = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
    first, last = np.lib.array_utils.byte_bounds(array)
    # Only whole pages: their neighbours' edges stay.
    start = -(-(first - origin) // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (last - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < stop:
        mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _mapped_file(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The mapping that `array` is a view of, unless it is copy-on-write: releasing those pages loses data."""
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.memmap) and owner.mode not in ("r", "r+"):
            return None
        if isinstance(owner, mmap.mmap):
            return owner
        owner = getattr(owner, "base", None)
    return None
