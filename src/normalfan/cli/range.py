"""`normalfan range`: how wrong the numbers of a round may be before its plan stops being right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import normalfan as nf
from normalfan.cli import options, output
from normalfan.cli.options import Text, count, flag, option
from normalfan.errors import InputError

MOST_ENTRIES = 5000


@options.with_problem_options
def range_(
    model: options.Model,
    losses: options.Losses,
    problem: options.ProblemOptions,
    at: Annotated[Text, option("ROUND", "The round; if not given, the last one.")] = None,
    tolerance: Annotated[
        str, option("X|X%", "What the plan may cost beyond the best: an amount, or a share of the value.")
    ] = "1%",
    entries: Annotated[
        bool, flag("--entries", "Range every entry of the loss, instead of features.")
    ] = False,
    top: Annotated[
        int | None, count("N", "List the N narrowest ranges; else all, or 50 if there are more.")
    ] = None,
    out: options.Out = None,
    report: options.Report = None,
    title: options.Title = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
) -> None:
    """Say how far each feature of a round may move before its plan changes, or costs more than a tolerance.

    The ranges are one at a time; one sentence says how wrong all features may be at once.

    Example:  normalfan range model.npz prices.csv --features features.csv --at 2021-02-15 --tolerance 1%
    """
    from normalfan.report.ranges import range_rows, range_sentences

    output.check_outputs(out, report)
    allowed = options.tolerance_of("--tolerance", tolerance)
    mdp = problem.load(model)
    stream = problem.losses(losses, mdp)
    asked: dict[str, Any] = {"tolerance": allowed, "directions": _what_moves(stream, mdp, entries=entries)}
    asked["at"] = None if at is None else options.round_of(stream, "--at", at)
    found, reach = nf.ranging(mdp, stream, **asked), nf.radius(mdp, stream, **asked)
    output.write_rounds(found.to_frame, out, safe_csv=safe_csv)
    if report is not None:
        heading = title if title is not None else f"Round {found.today.round_name} of {Path(losses).name}"
        nf.report.write_ranges(report, found, reach, title=heading, unit=problem.unit, top=top)
    rows = range_rows(found, top)
    if as_json:
        frame = found.to_frame().rename({"name": "feature"})
        output.print_json(
            {
                "round": found.today.round_name,
                "value": found.value,
                "tolerance": found.tolerance,
                "radius": {
                    "lower": reach.lower,
                    "upper": reach.upper,
                    "exact": reach.exact,
                    "worst": dict(zip(reach.names, reach.worst.tolist(), strict=True)),
                },
                "ranges": [
                    frame.row(i, named=True)
                    | {"optimal": row.optimal, "within": row.within}
                    | {side: row.beyond.get(side, ("", None))[1] for side in ("below", "above")}
                    for i, row in rows.items()
                ],
            }
        )
    else:
        output.print_paragraphs(*range_sentences(found, reach, problem.unit))
        head = ("feature", "now", "exposure", "optimal while", "tolerated while")
        output.print_table(head, [row[:5] for row in rows.values()])
        beyond = [
            (row.feature, f"{side} {limit}", plan)
            for row in rows.values()
            for side, (limit, plan) in row.beyond.items()
        ]
        if beyond:
            output.print_table(("feature", "beyond", "where the plan that takes over differs first"), beyond)


def _what_moves(stream: nf.LossStream, mdp: nf.MDP, *, entries: bool) -> str | None:
    from normalfan.problem.losses import factors_of

    if not entries and factors_of(stream) is None:
        raise InputError(
            "losses are not factored, but a range is of a number that the user sets, such as a price: give "
            "--features FILE and coefficients, or --entries to range each entry of the loss."
        )
    many = int(mdp.reachable.sum()) * mdp.n_actions
    if entries and many > MOST_ENTRIES:
        raise InputError(
            f"--entries would range up to {many:,} entries, but {MOST_ENTRIES:,} are the most: give "
            f"--features."
        )
    return "entries" if entries else None
