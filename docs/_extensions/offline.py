"""The built site asks the network for nothing: a page that loads anything from elsewhere is a warning."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](https?:[^"']+)|"""
    r"""<link\b[^>]*\brel=["'](?:stylesheet|icon|preload)["'][^>]*\bhref=["'](https?:[^"']+)"""
)


def _check(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        for found in LOADED.finditer(page.read_text(encoding="utf-8")):
            address = found[1] or found[2]
            logging.getLogger(__name__).warning("%s loads %s, but the site works offline.", page, address)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
