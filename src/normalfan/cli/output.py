"""How commands speak: a table for people, JSON for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normalfan.files import written_atomically
from normalfan.text import as_json

if TYPE_CHECKING:
    import polars

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")
]


def print_json(document: Any, *, err: bool = False) -> None:
    typer.echo(as_json(document, indent=2), err=err)


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
