"""Files that appear whole or not at all, and array files: `.npy` unread until used, `.npz` never trusted.

Array files may not contain pickled objects, so opening one never runs code from it. A `.npz` file of ours
carries a checksum of its arrays: a damaged one is refused. Files without one are read.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError

CHECKSUM = "normalfan_sha256"  # its name among the arrays of a file

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_target(name: str, path: str | Path | None, suffixes: Sequence[str] = ()) -> None:
    """Refuse a file that could not be written, before the work; `name` is what the refusal calls it."""
    if path is None:
        return
    target = Path(path)
    if suffixes and target.suffix not in suffixes:
        rule, remedy = f"it must end in one of {', '.join(suffixes)}", "rename the file"
    elif target.is_dir():
        rule, remedy = "that is a directory", "name a file in it"
    elif target.exists() and not target.is_file():
        rule, remedy = "that is not a regular file", "choose another path"
    elif not target.parent.is_dir():
        rule, remedy = f"there is no directory {target.parent}", "create it, or check the path"
    elif not os.access(target.parent, os.W_OK):
        rule, remedy = f"the directory {target.parent} cannot be written to", "choose another path"
    else:
        return
    raise InputError(f"{name} is {path}, but {rule}: {remedy}.")


@contextmanager
def written_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to, which gets its name only when it is complete and on disk.

    Readers find the old content or the new, even after a power cut. The mode of a replaced file stays.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        # Unlike a file made by tempfile, it gets the permissions that the user's files get.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        error.filename = str(target)  # nobody knows the draft's name
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_drafts(path: str | Path) -> None:
    """Remove what killed writers of `path` left beside it; only its one present writer may call this."""
    target = Path(path)
    for draft in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if re.fullmatch("[0-9a-f]{8}", draft.name.removeprefix(f".{target.name}.")):
            draft.unlink(missing_ok=True)


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


def damaged(what: str | Path) -> InputError:
    return InputError(
        f"{what} is damaged (its checksum is of other content), but a file must be as it was written: write "
        f"it again."
    )


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


def check_memory(what: str, needed: int, max_memory: int | None = None) -> None:
    """Refuse what would take more than `max_memory` bytes, by default more than the machine has."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = machine if max_memory is None else max_memory
    if needed > limit:
        raise InputError(
            f"{what} takes {needed:,} bytes of memory, but may take at most {limit:,}: check its sizes, or "
            f"raise max_memory (--max-memory)."
        )


def _parse(content: bytes) -> npt.NDArray[Any]:
    """The array of a `.npy` file, a view of its bytes: what its header declares is not allocated."""
    file = io.BytesIO(content)
    shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError("not a plain array")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return np.require(flat.reshape(shape, order="F" if is_fortran else "C"), requirements="A")


def _digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """A SHA-256 of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
