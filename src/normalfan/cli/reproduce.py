"""`normalfan reproduce`: the command of the companion package, if it is installed."""

from __future__ import annotations

import importlib
import importlib.util

import typer

from normalfan.errors import InputError

COMPANION = "normalfan_paper"


def reproduce(context: typer.Context) -> None:
    """Run the paper's claims and judge them (a package of its own: normalfan-paper).

    Example:  normalfan reproduce --quick
    """
    if importlib.util.find_spec(COMPANION) is None:
        raise InputError(
            "the paper's companion is not installed, but reproduce runs its experiments: "
            "pip install normalfan-paper."
        )
    companion = importlib.import_module(f"{COMPANION}.command").app
    # Options are the companion's. Not standalone: its errors are ours to print, and it returns its exit code.
    raise typer.Exit(companion(context.args, prog_name="normalfan reproduce", standalone_mode=False) or 0)
