"""Files that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name only when it is complete and on disk.

    Readers of `path` find the old content or the new, never half of it, even after a power cut.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        # Unlike tempfile's, it may be read by whoever may read what the user writes.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        error.filename = str(target)  # the draft's name says nothing to anyone
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_drafts(path: str | Path) -> None:
    """Remove what killed writers of `path` left beside it; only for whoever is its one writer now."""
    target = Path(path)
    for draft in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if re.fullmatch("[0-9a-f]{8}", draft.name.removeprefix(f".{target.name}.")):
            draft.unlink(missing_ok=True)
