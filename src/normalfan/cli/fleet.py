"""`normalfan fleet`: many members, each with its own problem and stream, priced on all cores there are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normalfan.cli import options, output
from normalfan.cli.options import ProblemOptions, Text, argument, option
from normalfan.errors import InputError
from normalfan.text import amount, printable

if TYPE_CHECKING:
    from normalfan.jobs import Members
    from normalfan.jobs.fleet import FleetResult
    from normalfan.jobs.run import Engine

SOME_FAILED = 1


@options.with_problem_options_but("steps", "separator", "decimal")
def fleet(
    problem: ProblemOptions,
    table: Annotated[
        Text,
        argument(
            "FLEET",
            "A .parquet table with a row for each member: member, model, losses (paths), and, if needed, "
            "features, model_of_round, default, axes, order, horizon, start, rewards.",
        ),
    ] = None,
    model: Annotated[Text, option("MODEL", "One model for all, instead of FLEET.")] = None,
    losses: Annotated[
        Text, option("DIR", "With --model: a Parquet dataset, partitioned by member (member=NAME/*.parquet).")
    ] = None,
    against: options.Against = None,
    gym_module: Annotated[
        list[str] | None,
        option("MODULE", "A module whose code the table's models gym:MODULE:ID may run; may be repeated."),
    ] = None,
    cluster: Annotated[Text, option("ADDRESS", "Run on the Dask cluster with this scheduler.")] = None,
    workers: Annotated[int | None, option("N", "Processes on this machine; else one for each core.")] = None,
    out: Annotated[Text, option("DIR", "Where results are kept; by default NAME-priced, here.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price every member's stream, and add up what the fleet's days cost.

    Results appear in DIR while the run goes on. To continue a run that was interrupted, give the same command
    again.

    Example:  normalfan fleet fleet.parquet --workers 8 --out priced
    """
    from normalfan.jobs import price_fleet
    from normalfan.pricing.crossing import keeping, plans_of_age

    plan = options.plan_kept(against)
    kept = plans_of_age(plan)
    members, name = _members(table, model, losses, problem, gym_module or [], plan)
    result = price_fleet(members, out or f"{name}-priced", _engine(cluster, workers), progress=True)
    if as_json:
        output.print_json(_document(result))
    else:
        _print(result, keeping(kept.name, kept.short), problem.unit)
    if result.outcome.failed or result.totals.problems:
        raise typer.Exit(SOME_FAILED)


def _members(
    table: str | None,
    model: str | None,
    losses: str | None,
    problem: ProblemOptions,
    gym_modules: list[str],
    plan: str | int,
) -> tuple[Members, str]:
    """The members, and the name that their results get by default."""
    from normalfan.jobs import Members
    from normalfan.jobs.fleet_members import OPTIONAL

    asked = {name: getattr(problem, name, None) for name in OPTIONAL}
    given = {name: value for name, value in asked.items() if value is not None and value is not False}
    shared = {name: getattr(problem, name) for name in ("first", "last", "max_memory")}
    shared["against"] = None if plan == "previous" else plan
    if table is not None and model is None and losses is None:
        if given:
            raise InputError(
                f"--{next(iter(given))} was given with a table of members, but each row says that for "
                f"itself: make it a column of {table}."
            )
        return Members.of_table(table, gym_modules=gym_modules, **shared), Path(table).stem
    if table is None and model is not None and losses is not None:
        if "axes" in given:
            raise InputError(
                "--axes was given with a dataset of tables, but axes are those of arrays: leave it out, or "
                "list the arrays in a table of members that has the column axes."
            )
        return Members.of_dataset(model, losses, **given, **shared), Path(losses).name
    raise InputError(
        "a fleet is named in part or twice, but must be either a table, or a model with its losses: give "
        "FLEET, or --model MODEL --losses DIR."
    )


def _engine(cluster: str | None, workers: int | None) -> Engine:
    from normalfan.jobs import Cluster, Processes, Serial

    if cluster is None:
        return Serial() if workers == 1 else Processes(workers)
    if workers is not None:
        raise InputError(
            "--cluster and --workers were both given, but a cluster has its own workers: leave one out."
        )
    return Cluster(cluster)


def _document(result: FleetResult) -> dict[str, Any]:
    outcome = result.outcome
    return asdict(result.totals) | {
        "cells": {name: getattr(outcome, name) for name in ("finished", "reused", "failed", "damaged")},
        "failures": [  # a cell is named by its first and last member
            {"members": [cell.settings["members"][i]["member"] for i in (0, -1)], "message": message}
            for cell, message in outcome.failures
        ],
        "results": {"cells": str(result.cells), "members": str(result.members)},
    }


def _print(result: FleetResult, keeping_the_plan: str, unit: str) -> None:
    totals, outcome = result.totals, result.outcome
    typer.echo(
        f"{totals.members:,} members, {totals.rounds:,} rounds: {totals.free:,} free, "
        f"{totals.negligible:,} negligible, {totals.priced:,} priced. "
        f"{keeping_the_plan} cost {amount(totals.total, unit)} in all."
    )
    if (worst := totals.worst_round) is not None and worst.worst_price > 0:
        place = printable(f"{worst.worst_round} of {worst.member}")
        typer.echo(f"Costliest round: {place}, {amount(worst.worst_price, unit)}.")
        typer.echo("Costliest members:")
        for one in totals.costliest:
            total, most = (amount(price, unit) for price in (one.total, one.worst_price))
            line = f"  {one.member}: {total} in all, {most} of it in round {one.worst_round}"
            typer.echo(printable(line))
    for member, problem in totals.problem_list:
        output.complain(f"{member}: {problem}")
    if totals.problems > len(totals.problem_list):
        output.complain(f"{totals.problems:,} members could not be priced.")
    if outcome.failed:
        output.complain(f"{outcome.failed:,} cells failed, and are tried again next time.")
    if outcome.damaged:
        output.complain(f"{outcome.damaged:,} results were damaged and computed again.")
    typer.echo(f"By member: {result.members}; with every round: {result.cells}")
