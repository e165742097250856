"""`normalfan replan`: when is a new plan worth its cost, and which plans are worth having?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import normalfan as nf
from normalfan.cli import options
from normalfan.cli.options import Text, at_least, option
from normalfan.cli.output import check_outputs, complain, print_json, write_rounds
from normalfan.errors import InputError, check_installed, check_number
from normalfan.files import check_target, written_atomically

if TYPE_CHECKING:
    from normalfan.replan import PlanLibrary, Recommendation, RegretCurve

NO_RIVER = "river is not installed, so its drift detectors are left out: pip install 'normalfan[compare]'."


@options.with_problem_options
def replan(
    model: options.Model,
    losses: options.Losses,
    problem: options.ProblemOptions,
    cost: Annotated[float | None, option("C", "What a re-plan costs, in the unit of the losses.")] = None,
    library: Annotated[
        int | None,
        option(
            "K", "Instead: which 1, 2, … K plans serve the stream best, and what they keep.", **at_least(1)
        ),
    ] = None,
    holdout: Annotated[
        Text,
        option(
            "SHARE|ROUND",
            "Judge rules on the last SHARE of the rounds, or on those from ROUND on, with the settings that "
            "were best before.",
        ),
    ] = None,
    plans: Annotated[str, option("last|mean:N", "The loss a plan is made for.")] = "last",
    known: options.Known = "before",
    detectors: Annotated[
        bool, typer.Option(help="Compare with the drift detectors of river (some seconds).")
    ] = True,
    out: options.Out = None,
    figure: Annotated[Text, option("FILE", "Regret against re-plans, drawn as .png, .pdf or .html.")] = None,
    safe_csv: options.SafeCsv = False,
    as_json: options.AsJson = False,
) -> None:
    """Find when to re-plan: the cheapest schedule in hindsight, and rules that do not see ahead.

    With --library: which plans are worth having, if each day is served by the one that suits it.

    Example:  normalfan replan battery.npz prices.csv --features features.csv --cost 5000
    """
    from normalfan.cli.replan_output import document, show
    from normalfan.replan.rules import detectors_installed

    window = _read_plans(plans)
    check_outputs(out, None)
    check_target("--figure", figure, (".png", ".pdf", ".html"))
    if figure is not None:
        package, extra = ("plotly", "report") if figure.endswith(".html") else ("matplotlib", "plot")
        check_installed(package, "this figure needs it", extra)
    if library is not None:
        after = known == "after"
        given = {"--cost": cost, "--holdout": holdout, "--figure": figure, "--known after": after or None}
        _refuse_beside("--library", given)
    elif cost is None:
        raise InputError("--cost is missing, but says what a re-plan costs: give it, or --library 5.")
    else:
        check_number("--cost", cost, "say what a re-plan costs")
    if holdout is not None:
        _refuse_beside("--holdout", {"--figure": figure})
    mdp = problem.load(model)
    stream = problem.losses(losses, mdp)
    result: PlanLibrary | Recommendation | RegretCurve
    if cost is None:
        result = nf.replan.plan_library(mdp, stream, cast("int", library), window=window, progress=True)
    else:
        costs = nf.replan.holding_costs(mdp, stream, window=window, known=known, progress=True)
        if detectors and not detectors_installed():
            complain(NO_RIVER)
            detectors = False
        if holdout is not None:
            result = nf.replan.recommend(costs, cost, holdout=holdout, detectors=detectors, unit=problem.unit)
        else:
            result = nf.replan.regret_curve(costs, cost, detectors=detectors, progress=True)
            if figure is not None:
                _write_figure(result, Path(figure), problem.unit)
    if out is not None:
        write_rounds(result.to_frame(), Path(out), safe_csv=safe_csv)
    if as_json:
        print_json(document(result, problem.unit))
    else:
        show(result, problem.unit)


def _read_plans(plans: str) -> int:
    kind, _, days = plans.partition(":")
    if plans == "last":
        return 1
    if kind == "mean" and days.isdecimal() and int(days) > 0:
        return int(days)
    raise InputError(
        f"--plans is {plans!r}, but must be last or mean:N with N a whole number from 1: "
        f"mean:7 plans for the mean of a week."
    )


def _refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that mean nothing beside `option`."""
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name} is given, but means nothing with {option}: leave one of them out.")


def _write_figure(curve: RegretCurve, path: Path, unit: str) -> None:
    if path.suffix == ".html":
        from normalfan.replan.recommend import recommend_in_hindsight

        advice = recommend_in_hindsight(curve, unit).sentence
        nf.report.write_regret_curve(path, curve, title="When to re-plan", unit=unit, sentences=[advice])
        return
    with written_atomically(path) as file:
        curve.plot(unit=unit).savefig(file, format=path.suffix[1:], dpi=160)
