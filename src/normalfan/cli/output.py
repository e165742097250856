"""How commands print: sentences and tables for people, JSON for scripts."""

from __future__ import annotations

import select
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from normalfan.files import check_target, written_atomically
from normalfan.text import amount, as_json, percent, printable

if TYPE_CHECKING:
    import polars
    from rich.console import Console

    from normalfan.pricing.motion import PricedMotion
    from normalfan.pricing.summary import Summary

# Columns of numbers; all others have names and sentences.
NUMBERS = {
    *("price", "share", "value", "rounds", "now", "exposure", "re-plans", "regret", "total", "total before"),
    *("plans", "cost", "share kept", "lower bound"),
}


def check_outputs(out: str | None, report: str | None) -> None:
    """Refuse, before the work, a table and a page that could not be written."""
    check_target("--out", out, (".csv", ".parquet", ".json"))
    check_target("--report", report, (".html",))
    if report is not None:
        from normalfan.report.page import check_page_packages

        check_page_packages()


def has_room(stream: TextIO | None) -> bool:
    """Whether a stream takes a few sentences within a second; a full pipe that nobody reads does not."""
    try:
        return stream is not None and bool(select.select([], [stream], [], 1.0)[1])
    except (OSError, ValueError):  # closed, or no file of the system
        return stream is not None and not stream.closed


def complain(message: object) -> None:
    typer.echo(f"normalfan: {printable(message)}", err=True)


def print_json(document: Any, *, err: bool = False) -> None:
    typer.echo(as_json(document, indent=2), err=err)


def print_summary(summary: Summary, unit: str) -> None:
    """A priced stream for people: a few sentences, and its costliest rounds as a table."""
    from normalfan.report.content import summary_paragraphs

    print_paragraphs(*summary_paragraphs(summary, unit))
    if not summary.costliest:
        return
    typer.echo("\nThe costliest rounds, and where most of the price is paid:")
    rows = []
    for one in summary.costliest:
        cell, share = one.cell, percent(one.price / summary.total)
        step = "–" if cell is None else f"{cell.step} ({percent(cell.paid / one.price)})"
        moves = "a near-tie" if cell is None else f"{cell.state}: {cell.action} → {cell.best_action}"
        rows.append((one.name, amount(one.price, unit), share, step, moves))
    where = f"state: {summary.plan_in_short.removeprefix('the ')} → best action"
    print_table(("round", "price", "share", "step", where), rows)


def print_paragraphs(*paragraphs: str, indent: str = "") -> None:
    """Text as wide as the terminal; `indent` is that of a paragraph's second line."""
    width = plain_console().width
    for paragraph in paragraphs:
        typer.echo(textwrap.fill(printable(paragraph), width, subsequent_indent=indent))


def plain_console() -> Console:
    """A terminal for labels, which are the user's: nothing in them is markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """A table of the user's labels and of numbers, which are told by the names of their columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=printable(title) or None, title_justify="left")
    for name in columns:
        is_number = name in NUMBERS or name.isdecimal()
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    plain_console().print(table)


def frame_of_rounds(motion: PricedMotion, summary: Summary) -> polars.DataFrame:
    """Every round, with the round since which an old plan is kept, and the price of never changing it."""
    import polars

    frame, plans = motion.to_frame(), motion.plans
    if plans.planless:
        rounds = frame["round"]
        kept = rounds if plans.age else rounds.new_from_index(0, len(rounds))
        frame.insert_column(1, kept.shift(plans.planless).alias("since"))
    if summary.never_changed_prices is None:  # the dynamics move
        return frame
    return frame.with_columns(polars.Series("never_changed_price", summary.never_changed_prices))


def write_rounds(table: Callable[[], polars.DataFrame], out: str | None, *, safe_csv: bool) -> None:
    """The table that --out may ask for, as .csv, .parquet or .json, whole or not at all."""
    if out is None:
        return
    import polars

    from normalfan.io.frames import write_table

    path, frame = Path(out), table()
    if path.suffix == ".json":
        with written_atomically(path) as file:
            file.write(as_json(frame.to_dicts(), indent=2).encode() + b"\n")
        return
    if safe_csv and path.suffix == ".csv":
        # A spreadsheet takes what follows an apostrophe for text.
        frame = frame.with_columns(polars.col(polars.String).str.replace(r"^([=+\-@\t\r])", "'$1"))
    write_table(frame, path)
