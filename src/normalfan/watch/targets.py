"""Where files are going to be written: refused before the first line is read, not when it is too late."""

from __future__ import annotations

import os
from pathlib import Path

from normalfan.errors import InputError


def check_can_be_written(path: Path) -> None:
    """Refuse a path at which no file can be made by a draft beside it that takes its name."""
    folder = path.parent
    if path.is_dir():
        fault = "is a directory"
    elif not folder.is_dir():
        fault = f"is in {folder}, which is no directory"
    elif not os.access(folder, os.W_OK):
        fault = f"is in {folder}, which is read-only"
    else:
        return
    raise InputError(f"{path} {fault}, but must name a file that can be written: choose another path.")
