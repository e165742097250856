"""How commands speak: a table for people, JSON for programs."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")
]


def print_json(document: Any, *, err: bool = False) -> None:
    """Strict JSON: infinities and NaN, which it cannot say, become null."""
    typer.echo(json.dumps(_speakable(document), indent=2, ensure_ascii=False, allow_nan=False), err=err)


def _speakable(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _speakable(entry) for key, entry in item.items()}
    if isinstance(item, list | tuple):
        return [_speakable(entry) for entry in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None
    return item
