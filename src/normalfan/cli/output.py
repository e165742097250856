"""How commands speak: a table for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normalfan.errors import InputError
from normalfan.files import written_atomically

if TYPE_CHECKING:
    import polars

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")
]


def print_json(document: Any, *, err: bool = False) -> None:
    typer.echo(_as_json(document), err=err)


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
                file.write(_as_json(frame.to_dicts()).encode() + b"\n")


def _as_json(document: Any) -> str:
    """Strict JSON: infinities and NaN, which it cannot say, become null."""
    return json.dumps(_speakable(document), indent=2, ensure_ascii=False, allow_nan=False)


def _speakable(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _speakable(entry) for key, entry in item.items()}
    if isinstance(item, list | tuple):
        return [_speakable(entry) for entry in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None
    return item
