"""The ledger as a page: in Markdown, to be read in the repository, and in HTML, one file to send.

Both are templates in `assets` over the same tables.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from normalfan_paper.experiment import Choice, LedgerRow, Verdict
from normalfan_paper.ledger import Ledger, Section
from normalfan_paper.pages import template

TITLE = "The paper, run again"
READING = (
    "Each row is a claim of the paper in our words, what a run measured, and a verdict that the run "
    "computed: ✓ holds, ✓* holds under a stated assumption, ~ depends on the design, ? not reproduced by any "
    "design that was run, ✗ false as written. The design of an experiment is what the paper leaves open "
    "about it. "
    "Numbers after ± are standard errors over seeds. Questions that go beyond the paper stand apart and "
    "are not "
    "counted."
)
MARKS = {
    Verdict.HOLDS: "✓",
    Verdict.ASSUMES: "✓*",
    Verdict.DEPENDS: "~",
    Verdict.UNSEEN: "?",
    Verdict.FALSE: "✗",
}

PageTable: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]  # the head and the rows


def to_markdown(ledger: Ledger) -> str:
    """The page for a repository; figures are linked beside it."""
    return _render("ledger.md", ledger).rstrip() + "\n"


def to_html(ledger: Ledger, figures: Path) -> str:
    """The page as one file, with the figures inside."""

    def embedded(name: str) -> str:
        return f"data:image/png;base64,{base64.b64encode((figures / name).read_bytes()).decode('ascii')}"

    return _render("ledger.html", ledger, embedded=embedded)


def in_words(seconds: float) -> str:
    """A duration for people.

    >>> in_words(7.04), in_words(312.0), in_words(7260.0)
    ('7.0 s', '5.2 min', '2.0 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _render(name: str, ledger: Ledger, **words: Any) -> str:
    page = template(name, {"inline": _inline, "stem": lambda file: Path(file).stem})
    text: str = page.render(
        title=TITLE,
        reading=READING,
        counts=_counts(ledger),
        how=_how(ledger),
        times=_times(ledger),
        sections=[
            (
                section,
                *(_rows([row for row in section.rows if row.beyond is beyond]) for beyond in (False, True)),
            )
            for section in ledger.sections
        ],
        choices=_choices([choice for section in ledger.sections for choice in section.choices]),
        **words,
    )
    return text


def _inline(text: str) -> str:
    """Text that stays within a cell of Markdown and is not read as markup."""
    for mark in "\\|*_<>":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _counts(ledger: Ledger) -> PageTable:
    rows = [(f"{MARKS[verdict]} {verdict}", str(count)) for verdict, count in ledger.counts().items()]
    return ("verdict", "claims"), rows


def _how(ledger: Ledger) -> list[str]:
    size = "quick: fewer rounds, sizes and settings than the paper's" if ledger.quick else "the paper's size"
    versions = ", ".join(f"{name} {version}" for name, version in ledger.versions.items())
    return [
        f"command: {ledger.command}",
        f"size: {size}; seeds 0 to {ledger.seeds - 1}",
        f"where: {ledger.workers}",
        f"versions: {versions}",
    ]


def _times(ledger: Ledger) -> PageTable:
    def cells(section: Section) -> Sequence[str]:
        times = in_words(section.cpu_seconds), in_words(section.wall_seconds)
        return (section.id, str(section.cells), str(section.reused), *times)

    total = [sum(getattr(s, name) for s in ledger.sections) for name in ("cpu_seconds", "wall_seconds")]
    head = ("experiment", "cells", "of them from an earlier run", "CPU time", "wall time of this run")
    return head, [*map(cells, ledger.sections), ("all", "", "", *map(in_words, total))]


def _rows(rows: Sequence[LedgerRow]) -> PageTable:
    cells = [
        (
            f"{row.id}: {row.claim}",
            row.measured,
            f"{MARKS[row.verdict]} {row.verdict}",
            row.because,
            row.seeds,
        )
        for row in rows
    ]
    if not any(row.seeds for row in rows):  # exact statements: nothing is drawn by seed
        return ("claim", "measured", "verdict", "because"), [cell[:-1] for cell in cells]
    return ("claim", "measured", "verdict", "because", "seeds"), cells


def _choices(choices: Sequence[Choice]) -> PageTable:
    cells = [(c.question, c.ours, "; ".join(c.alternatives), ", ".join(c.rows), c.known) for c in choices]
    return ("question", "ours", "alternatives", "shown in", "known beforehand"), cells
