"""`normalfan price`: what keeping the old plan cost, round by round."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import normalfan as nf
from normalfan.cli import options, output
from normalfan.cli.options import Text, count, option
from normalfan.errors import InputError
from normalfan.text import amount, counted, printable

LISTED, LISTED_ON_PAGE = 5, 50
GAPS_LISTED = 3


@options.with_problem_options
def price(
    model: options.Model,
    losses: options.Losses,
    problem: options.ProblemOptions,
    out: options.Out = None,
    report: options.Report = None,
    against: options.Against = None,
    forecast: Annotated[Text, option("LOSSES", "Price the plans of forecasts, one for each round.")] = None,
    plan: Annotated[
        Text, option("FILE", "Price this plan: a table of state, action (and step, and probability).")
    ] = None,
    model_of_round: options.ModelOfRound = None,
    by: Annotated[
        Literal["week", "month", "year"] | None,
        option("PERIOD", "Sum prices by week, month or year, if rounds are dates."),
    ] = None,
    title: options.Title = None,
    top: Annotated[
        int | None,
        count("N", f"List the N costliest rounds; else {LISTED}, and on the page {LISTED_ON_PAGE}."),
    ] = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
) -> None:
    """Price every round of a stream of losses against the plan of the round before, or against any plan.

    Example:  normalfan price model.csv losses.csv --start home --horizon 24 --out prices.csv
    """
    from normalfan.dates import gaps_between

    asked = {"--against": against, "--forecast": forecast, "--plan": plan}
    asked["--model-of-round"] = model_of_round
    given = [name for name, option in asked.items() if option is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are given, but only one of them can be: drop the others.")
    output.check_outputs(out, report)
    which: Any = options.plan_kept(against)
    mdp = problem.load(model)
    problems, stream, moving = problem.moving(model_of_round, mdp, losses)
    if forecast is not None:
        which = problem.losses(forecast, mdp)
    elif plan is not None:
        which = problem.plan(plan, mdp)
    motion = nf.price_stream(problems, stream, against=which, progress=True, **moving)
    periods = None if by is None else motion.by_period(by)
    summary = nf.summarise(problems, stream, motion, costliest=top or LISTED)
    table = partial(output.frame_of_rounds, motion, summary)
    gaps = gaps_between(motion.round_names)
    output.write_rounds(table, out, safe_csv=safe_csv)
    if report is not None:
        heading = title if title is not None else f"{Path(losses).name} on {Path(model).name}"
        texts: dict[str, Any] = {"title": heading, "unit": problem.unit, "summary": summary}
        nf.report.write_report(report, problems, stream, motion, **texts, top=top or LISTED_ON_PAGE)
    if as_json:
        missing = [{"round": late, "since": before} for late, before in gaps]
        document = {"summary": summary.to_dict(), "gaps": missing}
        document |= {} if periods is None else {"periods": periods.to_dicts()}
        output.print_json(document | {"rounds": table().to_dicts()})
        return
    output.print_summary(summary, problem.unit)
    if gaps:
        shown = ", ".join(printable(f"{late} follows {before}") for late, before in gaps[:GAPS_LISTED])
        typer.echo(f"{counted(len(gaps), 'gap')}: {shown}{', …' if len(gaps) > GAPS_LISTED else '.'}")
    if periods is not None:
        rows = [
            (period, amount(cost, problem.unit), amount(value, problem.unit), f"{rounds:,}")
            for period, cost, value, rounds in periods.iter_rows()
        ]
        output.print_table(("period", "price", "value", "rounds"), rows)
