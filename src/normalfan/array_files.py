"""Array files: `.npy` unread until used, `.npz` never trusted.

They may not contain pickled objects, so opening one never runs code from it. A `.npz` file of ours carries a
checksum of its arrays: a damaged one is refused. Files without one are read.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.files import CHECKSUM, check_memory, damaged, written_atomically

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def pack_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Named arrays as the bytes of a compressed `.npz` file, with their checksum."""
    file = io.BytesIO()
    # The checksum comes first: damage to a directory entry can hide all the entries after it.
    checksum = {CHECKSUM: np.array(_digest(arrays))}
    np.savez_compressed(file, allow_pickle=False, **checksum, **arrays)
    return file.getvalue()


def unpack_arrays(content: bytes, what: str, *, max_memory: int | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays, read-only, that `pack_arrays` or `np.savez` packed; `what` names them in refusals."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_memory(what, sum(member.file_size for member in archive.infolist()), max_memory)
            arrays = {name.removesuffix(".npy"): _parse(archive.read(name)) for name in archive.namelist()}
    except InputError:
        raise
    except Exception:  # noqa: BLE001  whatever a parser makes of foreign bytes, they are to blame
        raise InputError(
            f"{what} is damaged or contains more than plain arrays, but a .npz file must be one that "
            f"np.savez wrote, of numbers and text: write it again."
        ) from None
    checksum = arrays.pop(CHECKSUM, None)
    if checksum is not None and str(checksum) != _digest(arrays):
        raise damaged(what)
    return arrays


def read_npz(path: Path, *, max_memory: int | None = None) -> dict[str, npt.NDArray[Any]]:
    """Every array of a `.npz` file, by name."""
    return unpack_arrays(path.read_bytes(), str(path), max_memory=max_memory)


def write_npz(arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    with written_atomically(path) as file:
        file.write(pack_arrays(arrays))


def map_npy(path: Path) -> npt.NDArray[Any]:
    """The array of a `.npy` file, mapped into memory and read page by page as it is used."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception:  # noqa: BLE001  as above
        raise InputError(
            f"{path} is damaged or does not contain a plain array, but a .npy file must be one that np.save "
            f"wrote, of numbers: write it again."
        ) from None


def write_npy(array: npt.NDArray[Any], path: Path) -> None:
    with written_atomically(path) as file:
        np.save(file, array, allow_pickle=False)


def _parse(content: bytes) -> npt.NDArray[Any]:
    """The array of a `.npy` file, a view of its bytes: what its header declares is not allocated."""
    file = io.BytesIO(content)
    shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError("not a plain array")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return np.require(flat.reshape(shape, order="F" if is_fortran else "C"), requirements="A")


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
