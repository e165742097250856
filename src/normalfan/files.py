"""Files that appear whole or not at all, and refusals of those that cannot be written or read."""

from __future__ import annotations

import glob
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from normalfan.errors import InputError

CHECKSUM = "normalfan_sha256"  # its name in the files that have one


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


def damaged(what: str | Path) -> InputError:
    return InputError(
        f"{what} is damaged (its checksum is of other content), but a file must be as it was written: write "
        f"it again."
    )


def check_memory(what: str, needed: int, max_memory: int | None = None) -> None:
    """Refuse what would take more than `max_memory` bytes, by default more than the machine has."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = machine if max_memory is None else max_memory
    if needed > limit:
        raise InputError(
            f"{what} takes {needed:,} bytes of memory, but may take at most {limit:,}: check its sizes, or "
            f"raise max_memory (--max-memory)."
        )
