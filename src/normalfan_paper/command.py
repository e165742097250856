"""`normalfan reproduce`: every claim of the paper, run and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normalfan.cli.options import AsJson
from normalfan.cli.output import print_json
from normalfan.errors import InputError
from normalfan.jobs import Cluster, Processes, Serial
from normalfan_paper.experiment import Scale
from normalfan_paper.ledger import Ledger
from normalfan_paper.ledger_page import MARKS
from normalfan_paper.pipeline import QUICK_SEEDS, run_experiments
from normalfan_paper.registry import find_experiments

SOME_FAILED = 1

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="statements, simplex, tree, degenerate, gridworld; all of them by default."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes: a verdict for every claim within minutes.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds: 32 by default, as in the paper; 4 with --quick.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one for each core by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the ledger, the figures and the data.")] = Path(
        "normalfan-paper"
    ),
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler: compute there instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's claims and judge them: a ledger of verdicts, the figures, the data behind them.

    Start an interrupted run again and it continues where it ended.

    Example:  normalfan reproduce --quick
    """
    chosen = find_experiments(experiments or ())
    count = seeds if seeds is not None else QUICK_SEEDS if quick else Scale().seeds
    if count < 2:
        raise InputError(f"--seeds is {count}, but a standard error needs at least 2: pass more.")
    if cluster is not None and workers is not None:
        raise InputError(
            "both --cluster and --workers are given, but a cluster brings its own workers: pass one of them."
        )
    engine = Cluster(cluster) if cluster else Serial() if workers == 1 else Processes(workers)
    command = " ".join(
        ["normalfan reproduce", *(experiments or ()), *(["--quick"] if quick else ()), f"--seeds {count}"]
    )
    ledger = run_experiments(
        chosen,
        Scale(seeds=count, quick=quick),
        out,
        engine,
        command=command,
        tell=lambda line: typer.echo(line, err=True),
    )
    if as_json:
        print_json(ledger.to_document())
    else:
        _print(ledger, out)
    if ledger.failures:
        raise typer.Exit(SOME_FAILED)


def _print(ledger: Ledger, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for section in ledger.sections:
        console.print(Text(section.title, style="bold"))
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(no_wrap=True)
        table.add_column()
        for row in section.rows:
            table.add_row(*map(Text, (MARKS[row.verdict], row.id.partition("/")[2], row.measured)))
        console.print(table)
        for failure in section.failures:
            console.print(Text(f"failed: {failure}"))
    counts = "; ".join(f"{MARKS[verdict]} {verdict}: {count}" for verdict, count in ledger.counts().items())
    number, beyond = sum(ledger.counts().values()), sum(row.beyond for row in ledger.rows)
    claims = ("1 claim" if number == 1 else f"{number} claims") + (f" and {beyond} beyond" if beyond else "")
    typer.echo(f"{claims}; {counts}.")
    typer.echo(f"The ledger is {out / 'ledger.md'}, the figures are in {out / 'figures'}.")
