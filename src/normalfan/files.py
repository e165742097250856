"""Files that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import tempfile
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
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def remove_drafts(path: str | Path) -> None:
    """Remove what killed writers of `path` left beside it; only for whoever is its one writer now."""
    target = Path(path)
    for draft in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if re.fullmatch("[a-z0-9_]{8}", draft.name.removeprefix(f".{target.name}.")):
            draft.unlink(missing_ok=True)
