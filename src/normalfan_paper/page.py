"""The ledger as a page: in Markdown, to be read in the repository, and in HTML, one file to send."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from normalfan_paper.experiment import Choice, Row, Verdict
from normalfan_paper.ledger import Ledger, Section

MARKS = {Verdict.HOLDS: "✓", Verdict.ASSUMES: "✓*", Verdict.DEPENDS: "~", Verdict.FALSE: "✗"}

READING = (
    "Each row is a claim of the paper in our words, what a run measured, and a verdict that the run "
    "computed: ✓ holds, ✓* holds under a stated assumption, ~ depends on the design, ✗ false as written. "
    "Numbers after ± are standard errors over seeds."
)


def to_markdown(ledger: Ledger) -> str:
    """The page for a repository; figures are linked beside it."""
    lines = ["# The paper, run again", "", READING, ""]
    lines += _markdown_table(("verdict", "rows"), _count_cells(ledger))
    lines += ["## How it was run", "", *(f"- {line}" for line in _how(ledger)), ""]
    lines += _markdown_table(TIMES, _time_cells(ledger))
    for section in ledger.sections:
        lines += [f"## {section.title}", ""]
        lines += [f"- **No verdicts, a cell failed:** {_inline(failure)}" for failure in section.failures]
        if section.rows:
            lines += _markdown_table(
                ("claim", "measured", "verdict", "because"), map(_row_cells, section.rows)
            )
        lines += [line for name in section.figures for line in (f"![{Path(name).stem}](figures/{name})", "")]
    choices = [choice for section in ledger.sections for choice in section.choices]
    if choices:
        lines += ["## What the paper leaves open", ""]
        lines += _markdown_table(CHOICES, map(_choice_cells, choices))
    return "\n".join(lines).rstrip() + "\n"


def to_html(ledger: Ledger, figures: Path) -> str:
    """The page as one file, with the figures inside."""
    parts = [f"<h1>The paper, run again</h1><p>{html.escape(READING)}</p>"]
    parts.append(_html_table(("verdict", "rows"), _count_cells(ledger)))
    parts.append("<h2>How it was run</h2><ul>")
    parts += [f"<li>{html.escape(line)}</li>" for line in _how(ledger)]
    parts += ["</ul>", _html_table(TIMES, _time_cells(ledger))]
    for section in ledger.sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts += [f"<p><b>No verdicts, a cell failed:</b> {html.escape(f)}</p>" for f in section.failures]
        if section.rows:
            parts.append(
                _html_table(("claim", "measured", "verdict", "because"), map(_row_cells, section.rows))
            )
        parts += [_html_figure(figures / name) for name in section.figures]
    choices = [choice for section in ledger.sections for choice in section.choices]
    if choices:
        parts.append("<h2>What the paper leaves open</h2>")
        parts.append(_html_table(CHOICES, map(_choice_cells, choices)))
    return _SHELL.replace("BODY", "\n".join(parts))


TIMES = ("experiment", "cells", "of them from an earlier run", "CPU time", "wall time of this run")
CHOICES = ("question", "ours", "alternatives", "shown in")


def in_words(seconds: float) -> str:
    """A duration for people.

    >>> in_words(7.04), in_words(312.0), in_words(7260.0)
    ('7.0 s', '5.2 min', '2.0 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _count_cells(ledger: Ledger) -> list[Sequence[str]]:
    return [(f"{MARKS[verdict]} {verdict}", str(count)) for verdict, count in ledger.counts().items()]


def _how(ledger: Ledger) -> list[str]:
    size = "quick: fewer rounds, sizes and settings than the paper's" if ledger.quick else "the paper's size"
    versions = ", ".join(f"{name} {version}" for name, version in ledger.versions.items())
    return [
        f"command: {ledger.command}",
        f"size: {size}; seeds 0 to {ledger.seeds - 1}",
        f"where: {ledger.workers}",
        f"versions: {versions}",
    ]


def _time_cells(ledger: Ledger) -> list[Sequence[str]]:
    def cells(section: Section) -> Sequence[str]:
        times = in_words(section.cpu_seconds), in_words(section.wall_seconds)
        return (section.id, str(section.cells), str(section.reused), *times)

    total = [sum(getattr(s, name) for s in ledger.sections) for name in ("cpu_seconds", "wall_seconds")]
    return [*map(cells, ledger.sections), ("all", "", "", *map(in_words, total))]


def _row_cells(row: Row) -> Sequence[str]:
    return (f"{row.id}: {row.claim}", row.measured, f"{MARKS[row.verdict]} {row.verdict}", row.because)


def _choice_cells(choice: Choice) -> Sequence[str]:
    return (choice.question, choice.ours, "; ".join(choice.alternatives), ", ".join(choice.rows))


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(map(_inline, cells))} |"

    return [line(head), f"|{'---|' * len(head)}", *map(line, rows), ""]


def _inline(text: str) -> str:
    """Text that stays within a cell and is not read as markup."""
    for mark in "\\|*_<>":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(cells, 'td') for cells in rows)}</table>"


def _html_figure(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{html.escape(path.stem)}" src="data:image/png;base64,{data}">'


_SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The paper, run again</title><style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; padding: .35rem .7rem 0 0; }
img { max-width: 44rem; width: 100%; }
</style></head><body>
BODY
</body></html>
"""
