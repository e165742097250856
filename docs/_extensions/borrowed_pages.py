"""Pages of the site that are files elsewhere in the repository, and links that lead out of docs/.

A borrowed page is copied when the site is built. Relative links are written for readers of the repository;
here those that name a borrowed file lead to its page, and those that name another file offer it for download.
A link to a folder becomes plain text, and so does one in a heading, where Sphinx allows none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

BORROWED = {
    ROOT / "CHANGELOG.md": DOCS / "changelog.md",
    ROOT / "CONTRIBUTING.md": DOCS / "contributing" / "guide.md",
    ROOT / "benchmarks" / "README.md": DOCS / "benchmarks.md",
    ROOT / "results" / "paper" / "ledger.md": DOCS / "ledger.md",
}

LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<place>#[^)\s]*)?\)")


def relinked(text: str, home: Path, page: Path) -> str:
    """The text of a file in the folder `home`, with its links as the site's `page` needs them."""

    def link(found: re.Match[str]) -> str:
        if ":" in found["target"]:
            return found[0]
        target = (home / found["target"]).resolve()
        in_heading = text.startswith("#", text.rfind("\n", 0, found.start()) + 1)
        if target.is_dir() or in_heading:
            return found["text"]
        there = os.path.relpath(BORROWED.get(target, target), page.parent)
        return f"[{found['text']}]({there}{found['place'] or ''})"

    return LINK.sub(link, text)


def _copy(_app: Sphinx, _config: Config) -> None:
    for source, page in BORROWED.items():
        text = relinked(source.read_text(encoding="utf-8"), source.parent, page)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _relink(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md" and page not in BORROWED.values():
        source[0] = relinked(source[0], page.parent, page)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", _copy)
    app.connect("source-read", _relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
