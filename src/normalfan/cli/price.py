"""`normalfan price`: what keeping the old plan cost, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import normalfan as nf
from normalfan.cli.output import (
    AsJson,
    SafeCsv,
    frame_of_rounds,
    print_gaps,
    print_json,
    print_periods,
    print_summary,
    write_rounds,
)
from normalfan.cli.sources import Losses, Model, ProblemOptions, with_problem_options
from normalfan.dates import PERIODS
from normalfan.errors import InputError, check_choice, check_whole
from normalfan.files import check_target

LISTED_IN_TERMINAL, LISTED_IN_REPORT = 5, 50


@with_problem_options
def price(
    model: Model,
    losses: Losses,
    problem: ProblemOptions,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Every round, as .csv, .parquet or .json.")
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="A report page (.html) that works offline.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN",
            help="The plan of so many rounds before, or first; if not given, of the round before.",
        ),
    ] = None,
    forecast: Annotated[
        str | None, typer.Option(metavar="LOSSES", help="Price the plans of forecasts, one for each round.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Price this plan: a table of state, action (and step, and probability)."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="PERIOD", help="Sum prices by week, month or year, if rounds are dates."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The heading of the report; else the files' names.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"How many of the costliest rounds to list; else {LISTED_IN_TERMINAL}, and "
            f"{LISTED_IN_REPORT} in the report.",
        ),
    ] = None,
    safe_csv: SafeCsv = False,
    as_json: AsJson = False,
) -> None:
    """Price every round of a stream of losses against the plan of the round before, or against any plan.

    Example:  normalfan price model.csv losses.csv --start home --horizon 24 --out prices.csv
    """
    from normalfan.dates import gaps_between

    asked = {"--against": against, "--forecast": forecast, "--plan": plan}
    given = [name for name, option in asked.items() if option is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are given, but only one plan is priced: drop one of them.")
    check_target("--out", out, (".csv", ".parquet", ".json"))
    check_target("--report", report, (".html",))
    if report is not None:
        from normalfan.report.page import check_page_packages

        check_page_packages()
    if by is not None:
        check_choice("--by", by, tuple(PERIODS))
    if top is not None:
        check_whole("--top", top, "ask for at least one round")
    if against not in (None, "first") and not (against.isdecimal() and int(against)):
        raise InputError(
            f"--against is {against!r}, but must be first or a number of rounds from 1 on: choose one of "
            f"them."
        )
    mdp = problem.load(model)
    stream = problem.losses(losses, mdp)
    which: Any = "previous"
    if forecast is not None:
        which = problem.losses(forecast, mdp)
    elif plan is not None:
        which = problem.plan(plan, mdp)
    elif against is not None:
        which = against if against == "first" else int(against)
    motion = nf.price_stream(mdp, stream, against=which, progress=True)
    periods = None if by is None else motion.by_period(by)
    summary = nf.summarise(mdp, stream, motion, costliest=top or LISTED_IN_TERMINAL)
    frame = frame_of_rounds(motion, summary)
    gaps = gaps_between(motion.round_names)
    if out is not None:
        write_rounds(frame, Path(out), safe_csv=safe_csv)
    if report is not None:
        heading = title if title is not None else f"{Path(losses).name} on {Path(model).name}"
        texts: dict[str, Any] = {"title": heading, "unit": problem.unit, "summary": summary}
        nf.report.write_report(report, mdp, stream, motion, **texts, top=top or LISTED_IN_REPORT)
    if as_json:
        missing = [{"round": late, "since": before} for late, before in gaps]
        document = {"summary": summary.to_dict(), "gaps": missing}
        document |= {} if periods is None else {"periods": periods.to_dicts()}
        print_json(document | {"rounds": frame.to_dicts()})
    else:
        print_summary(summary, problem.unit)
        print_gaps(gaps)
        if periods is not None:
            print_periods(periods, problem.unit)
