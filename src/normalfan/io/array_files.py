"""Array files: `.npy` without reading them, `.npz` without trusting them.

Neither may contain pickled objects, so opening a file never runs code from it.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.files import written_atomically

_BROKEN = (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def map_npy(path: Path) -> npt.NDArray[Any]:
    """The array of a `.npy` file, mapped into memory and read page by page as it is used."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except _BROKEN:
        raise InputError(
            f"{path} is damaged or does not contain a plain array, but a .npy file must be one that np.save "
            f"wrote, of numbers: write it again."
        ) from None


def read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Every array of a `.npz` file, by name."""
    try:
        with zipfile.ZipFile(path):  # np.load would take a .npy file or a pickle for one
            pass
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except _BROKEN:
        raise InputError(
            f"{path} is damaged or contains more than plain arrays, but a .npz file must be one that "
            f"np.savez wrote, of numbers and text: write it again."
        ) from None


def write_npy(array: npt.NDArray[Any], path: Path) -> None:
    with written_atomically(path) as file:
        np.save(file, array, allow_pickle=False)


def write_npz(arrays: dict[str, npt.NDArray[Any]], path: Path) -> None:
    with written_atomically(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
