"""`normalfan replan`: when is a new plan worth its cost, and which plans are worth having?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import normalfan as nf
from normalfan.cli import options, output
from normalfan.cli.options import Text, count, option
from normalfan.errors import InputError, check_number
from normalfan.files import written_atomically
from normalfan.text import amount, counted, number

if TYPE_CHECKING:
    from normalfan.replan import PlanLibrary, Recommendation, RegretCurve, Schedule
    from normalfan.replan.curve import Point

NO_RIVER = "river is not installed, so its drift detectors are left out: pip install 'normalfan[compare]'."
DAYS_LISTED = 12


@options.with_problem_options
def replan(
    model: options.Model,
    losses: options.Losses,
    problem: options.ProblemOptions,
    cost: Annotated[float | None, option("C", "What a re-plan costs, in the unit of the losses.")] = None,
    library: Annotated[
        int | None, count("K", "Instead: which 1, 2, … K plans serve the stream best, and what they keep.")
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
    model_of_round: options.ModelOfRound = None,
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
    from normalfan.replan.rules import detectors_installed

    window = _read_plans(plans)
    output.check_outputs(out, None)
    if figure is not None:
        from normalfan.report.page import check_picture

        check_picture(figure, "--figure")
    if library is not None:
        given = {"--cost": cost, "--holdout": holdout, "--figure": figure}
        given |= {"--known after": None if known == "before" else known, "--model-of-round": model_of_round}
        _refuse_beside("--library", given)
    elif cost is None:
        raise InputError("--cost is missing, but says what a re-plan costs: give it, or --library 5.")
    else:
        check_number("--cost", cost, "say what a re-plan costs")
    if holdout is not None:
        _refuse_beside("--holdout", {"--figure": figure})
    mdp = problem.load(model)
    problems, stream, moving = problem.moving(model_of_round, mdp, losses)
    result: Any  # a library, an advice or a curve, each with a document and tables of its own
    document: Callable[[Any, str], dict[str, Any]]
    show: Callable[[Any, str], None]
    if cost is None:
        result = nf.replan.plan_library(mdp, stream, cast("int", library), window=window, progress=True)
        document, show = _library_document, _show_library
    else:
        costs = nf.replan.holding_costs(problems, stream, window=window, known=known, progress=True, **moving)
        if detectors and not detectors_installed():
            output.complain(NO_RIVER)
            detectors = False
        if holdout is not None:
            result = nf.replan.recommend(costs, cost, holdout=holdout, detectors=detectors, unit=problem.unit)
            document, show = _advice_document, _show_advice
        else:
            result = nf.replan.regret_curve(costs, cost, detectors=detectors, progress=True)
            document, show = _curve_document, _show_curve
            if figure is not None:
                _write_figure(result, Path(figure), problem.unit)
    output.write_rounds(result.to_frame, out, safe_csv=safe_csv)
    if as_json:
        output.print_json(document(result, problem.unit))
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
        advice = [_advice_in_hindsight(curve, unit)]
        nf.report.write_regret_curve(path, curve, title="When to re-plan", unit=unit, sentences=advice)
        return
    with written_atomically(path) as file:
        curve.plot(unit=unit).savefig(file, format=path.suffix[1:], dpi=160)


def _advice_in_hindsight(curve: RegretCurve, unit: str) -> str:
    from normalfan.replan.recommend import recommend_in_hindsight

    return recommend_in_hindsight(curve, unit).sentence


def _curve_document(curve: RegretCurve, unit: str) -> dict[str, Any]:
    def point(entry: Point) -> dict[str, Any]:
        return {"settings": entry.settings} | _numbers(entry, curve.cost)

    return {
        "cost": curve.cost,
        "known": curve.costs.known,
        "plans": "last" if curve.costs.window == 1 else f"mean:{curve.costs.window}",
        "days": curve.costs.n_days,
        "schedules": {
            name: _numbers(run, curve.cost) | {"rounds": list(map(curve.costs.day_name, run.days))}
            for name, run in curve.schedules.items()
        },
        "tuned_in_hindsight": {family: point(best) for family, best in curve.cheapest().items()},
        "within": [
            {"replans": k, "least_regret": float(curve.least_regrets[k])}
            | {"families": {family: point(best) for family, best in curve.best_within(k).items()}}
            for k in _budgets(curve)
        ],
        "least_regrets": curve.least_regrets.tolist(),
        "points": [{"family": entry.family} | point(entry) for entry in curve.points],
        "recommendation": _advice_in_hindsight(curve, unit),
    }


def _show_curve(curve: RegretCurve, unit: str) -> None:
    from normalfan.replan.curve import CHEAPEST, texts_of

    by_cost = {"accumulated", "CUSUM", "single day"}
    rows = [(name, "set by the cost" if name in by_cost else "", *run) for name, *run in curve.rows(unit)]
    for family, best in curve.cheapest().items():
        rows.append((family, _settings_text(best.settings), *texts_of(best, curve.cost, unit)))
    output.print_table(("schedule", "setting", "re-plans", "regret", "total"), rows, curve.caption(unit))
    best_days = curve.schedules[CHEAPEST].days
    if best_days:
        listed = ", ".join(map(curve.costs.day_name, best_days[:DAYS_LISTED]))
        more = f" and {len(best_days) - DAYS_LISTED} more" if len(best_days) > DAYS_LISTED else ""
        output.print_paragraphs(f"Cheapest in hindsight: re-plan on {listed}{more}.")
    counts = Counter(entry.family for entry in curve.points)
    if budgets := _budgets(curve):
        within = [curve.best_within(k) for k in budgets]
        rows = [("best in hindsight", *(amount(curve.least_regrets[k], unit) for k in budgets))]
        for family in counts:
            found = (amount(best[family].regret, unit) if family in best else "–" for best in within)
            rows.append((family, *found))
        title = "Least regret with at most so many re-plans"
        output.print_table(("rule", *map(str, budgets)), rows, title)
    tried = ", ".join(f"{family} {count}" for family, count in counts.items())
    output.print_paragraphs(
        f"Settings are picked in hindsight, for every rule alike; settings tried: {tried}.",
        _advice_in_hindsight(curve, unit),
    )


def _budgets(curve: RegretCurve) -> list[int]:
    """Numbers of re-plans to compare at: one in 56, 28, 14 and 7 days."""
    return sorted({round(curve.costs.n_days / days) for days in (56, 28, 14, 7)} - {0})


def _advice_document(advice: Recommendation, _: str) -> dict[str, Any]:
    from normalfan.replan.curve import settings_of

    return {
        "recommendation": advice.sentence,
        "chosen": advice.chosen.family,
        "cost": advice.cost,
        "tuned_days": advice.tuned_days,
        "judged_days": advice.days.n_days,
        "judged_from": advice.days.day_name(0),
        "rules": [
            {"family": one.family, "settings": settings_of(one.rule), "tuned_total": one.tuned_total}
            | _numbers(one.run, advice.cost)
            for one in advice.judged
        ],
        "cheaper_where_judged": [one.family for one in advice.beaten_by],
    }


def _show_advice(advice: Recommendation, unit: str) -> None:
    from normalfan.replan.curve import settings_of, texts_of

    parts = f"{counted(advice.tuned_days, 'day')}, judged on the {advice.days.n_days:,}"
    cost = amount(advice.cost, unit)
    title = f"Chosen on the first {parts} from {advice.days.day_name(0)} on; a re-plan costs {cost}"
    rows = []
    for one in advice.judged:
        before, run = amount(one.tuned_total, unit), texts_of(one.run, advice.cost, unit)
        rows.append((one.family, _settings_text(settings_of(one.rule)), before, *run))
    output.print_table(("rule", "setting", "total before", "re-plans", "regret", "total"), rows, title)
    if advice.beaten_by:
        families = ", ".join(one.family for one in advice.beaten_by)
        output.print_paragraphs(f"Cheaper on these days, but not on those before: {families}.")
    output.print_paragraphs(advice.sentence)


def _library_document(library: PlanLibrary, _: str) -> dict[str, Any]:
    return {
        "sentence": library.sentence,
        "days": len(library.values),
        "value": float(library.values.sum()),
        "first_plan": {"cost": library.first_plan_cost, "kept": library.kept(None)},
        "lower_bound": "linear relaxation of k-median, by its Lagrangian dual",
        "libraries": [
            {
                "plans": k,
                "rounds": list(map(library.day_name, choice.days)),
                "cost": choice.cost,
                "kept": library.kept(k),
                "lower_bound": choice.lower_bound,
                "serves": library.in_common(k),
            }
            for k, choice in enumerate(library.choices, 1)
        ],
    }


def _show_library(library: PlanLibrary, unit: str) -> None:
    from normalfan.replan.library import COLUMNS

    title = f"{counted(len(library.values), 'day')}; cost beyond a new plan a day"
    output.print_table(COLUMNS, library.rows(unit), title)
    output.print_paragraphs(f"What {counted(len(library.choices[-1].days), 'plan')} serve:")
    served = (f"  the plan of {plan}: {days}" for plan, days in library.in_common().items())
    output.print_paragraphs(*served, indent="    ")
    first = amount(library.first_plan_cost, unit)
    output.print_paragraphs(f"{library.sentence} Never to change the first plan costs {first}.")


def _numbers(run: Schedule | Point, cost: float) -> dict[str, Any]:
    return {"replans": run.replans, "regret": run.regret, "total": run.total(cost)}


def _settings_text(settings: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {number(value)}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
        if value is not False and name not in ("detector", "seed")
    )
