"""`normalfan bench`: us and the peers, side by side, in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from normalfan.cli.output import AsJson, print_json


def bench(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(help="dense, grid, sparse, arms, hedge, mirror; all of them by default."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Time a round, priced or learned from, here and in other libraries, and print the ratios.

    Example:  normalfan bench grid dense
    """
    from normalfan.bench.table import measure, print_table

    rows = measure(workloads or None, quick=quick)
    if as_json:
        print_json(rows)
    else:
        print_table(rows)
