"""How commands speak: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.text import as_json

if TYPE_CHECKING:
    import polars

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")
]


def print_json(document: Any, *, err: bool = False) -> None:
    typer.echo(as_json(document, indent=2), err=err)


def check_target(option: str, path: str | None, suffixes: Sequence[str]) -> None:
    """Refuse a file that could not be written, before the work whose result it is to hold."""
    if path is None:
        return
    target = Path(path)
    if target.suffix not in suffixes:
        raise InputError(
            f"{option} is {path}, but it must end in one of {', '.join(suffixes)}: rename the file."
        )
    if target.is_dir():
        raise InputError(f"{option} is {path}, but that is a directory: name a file in it.")
    if not target.parent.is_dir():
        raise InputError(
            f"{option} is {path}, but there is no directory {target.parent}: create it, or check the path."
        )


def write_rounds(frame: polars.DataFrame, path: Path) -> None:
    """A table of rounds as .csv, .parquet or .json, whole or not at all."""
    with written_atomically(path) as file:
        match path.suffix:
            case ".csv":
                frame.write_csv(file)
            case ".parquet":
                frame.write_parquet(file)
            case _:
                file.write(as_json(frame.to_dicts(), indent=2).encode() + b"\n")
