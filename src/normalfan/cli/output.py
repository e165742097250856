"""How commands print: sentences and tables for people, JSON for scripts."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normalfan.files import written_atomically
from normalfan.text import amount, as_json, percent

if TYPE_CHECKING:
    import polars

    from normalfan.pricing.summary import Summary

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")
]


def print_json(document: Any, *, err: bool = False) -> None:
    typer.echo(as_json(document, indent=2), err=err)


def print_summary(summary: Summary, unit: str) -> None:
    """A priced stream for people: a few sentences, and its costliest rounds as a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    from normalfan.report.page_text import summary_paragraphs

    console = Console(highlight=False, markup=False, emoji=False)  # labels are the user's: plain text
    for paragraph in summary_paragraphs(summary, unit):
        typer.echo(textwrap.fill(paragraph, console.width))
    if not summary.costliest:
        return
    typer.echo("\nThe costliest rounds, and where most of the price is paid:")
    table = Table(
        Column("round", overflow="fold"),
        Column("price", justify="right", no_wrap=True),
        Column("share", justify="right", no_wrap=True),
        Column("step", overflow="fold"),
        Column("state: old plan → best action", overflow="fold"),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for one in summary.costliest:
        cell, share = one.cell, percent(one.price / summary.total)
        step = "–" if cell is None else f"{cell.step} ({percent(cell.paid / one.price)})"
        moves = "a near-tie" if cell is None else f"{cell.state}: {cell.action} → {cell.best_action}"
        table.add_row(one.name, amount(one.price, unit), share, step, moves)
    console.print(table)


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
