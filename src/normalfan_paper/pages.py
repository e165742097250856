"""The templates of the companion's pages, in `assets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def template(name: str, filters: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """A template by its file name; a name that it uses and is not given is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("normalfan_paper", "assets"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= dict(filters or {})
    return environment.get_template(name)
