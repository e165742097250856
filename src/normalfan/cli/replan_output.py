"""What `normalfan replan` prints: tables for people, documents for scripts."""

from __future__ import annotations

from collections import Counter
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from normalfan.cli.output import plain_console
from normalfan.replan.curve import CHEAPEST, Point, RegretCurve, settings_of
from normalfan.replan.library import PlanLibrary
from normalfan.replan.recommend import Recommendation, recommend_in_hindsight
from normalfan.replan.rules import Rule
from normalfan.replan.schedule import Schedule
from normalfan.text import amount, counted, number, printable

if TYPE_CHECKING:
    from rich.table import Table

DAYS_LISTED = 12
LEFT = ("schedule", "rule", "setting", "plans of")  # columns of words


def document(result: PlanLibrary | Recommendation | RegretCurve, unit: str) -> dict[str, Any]:
    """A result for a script."""
    match result:
        case PlanLibrary():
            return _library_document(result)
        case Recommendation():
            return _advice_document(result)
    return _curve_document(result, unit)


def show(result: PlanLibrary | Recommendation | RegretCurve, unit: str) -> None:
    """A result for people."""
    match result:
        case PlanLibrary():
            _show_library(result, unit)
        case Recommendation():
            _show_advice(result, unit)
        case _:
            _show_curve(result, unit)


# --- which plans


def _library_document(library: PlanLibrary) -> dict[str, Any]:
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
    console = plain_console()
    title = f"{counted(len(library.values), 'day')}; cost beyond a new plan a day"
    table = _table(title, ("plans", "cost", "share kept", "lower bound", "plans of"))
    for row in library.rows(unit):
        table.add_row(*map(printable, row))
    console.print(table)
    console.print(f"What {counted(len(library.choices[-1].days), 'plan')} serve:")
    for plan, served in library.in_common().items():
        typer.echo(
            fill(printable(f"  the plan of {plan}: {served}"), console.width, subsequent_indent="    ")
        )
    first = amount(library.first_plan_cost, unit)
    typer.echo(fill(f"{library.sentence} Never to change the first plan costs {first}.", console.width))


# --- rules on rounds that they were not tuned on


def _advice_document(advice: Recommendation) -> dict[str, Any]:
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
    console = plain_console()
    parts = f"{counted(advice.tuned_days, 'day')}, judged on the {advice.days.n_days:,}"
    cost = amount(advice.cost, unit)
    title = f"Chosen on the first {parts} from {advice.days.day_name(0)} on; a re-plan costs {cost}"
    table = _table(printable(title), ("rule", "setting", "total before", "re-plans", "regret", "total"))
    for one in advice.judged:
        run = (str(one.run.replans), amount(one.run.regret, unit), amount(one.run.total(advice.cost), unit))
        table.add_row(one.family, _settings_text(one.rule), amount(one.tuned_total, unit), *run)
    console.print(table)
    if advice.beaten_by:
        families = ", ".join(one.family for one in advice.beaten_by)
        typer.echo(fill(f"Cheaper on these days, but not on those before: {families}.", console.width))
    typer.echo(fill(printable(advice.sentence), console.width))


# --- rules in hindsight


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
        "recommendation": recommend_in_hindsight(curve, unit).sentence,
    }


def _show_curve(curve: RegretCurve, unit: str) -> None:
    console = plain_console()
    console.print(_cost_table(curve, unit))
    best = curve.schedules[CHEAPEST]
    if best.days:
        listed = ", ".join(printable(curve.costs.day_name(day)) for day in best.days[:DAYS_LISTED])
        more = f" and {best.replans - DAYS_LISTED} more" if best.replans > DAYS_LISTED else ""
        console.print(f"Cheapest in hindsight: re-plan on {listed}{more}.\n")
    if _budgets(curve):
        console.print(_budget_table(curve, unit))
    counts = Counter(entry.family for entry in curve.points)
    tried = ", ".join(f"{family} {count}" for family, count in counts.items())
    console.print(f"Settings are picked in hindsight, for every rule alike; settings tried: {tried}.")
    typer.echo(fill(printable(recommend_in_hindsight(curve, unit).sentence), console.width))


def _numbers(run: Schedule | Point, cost: float) -> dict[str, Any]:
    return {"replans": run.replans, "regret": run.regret, "total": run.total(cost)}


def _budgets(curve: RegretCurve) -> list[int]:
    """Numbers of re-plans to compare at: one in 56, 28, 14 and 7 days."""
    return sorted({round(curve.costs.n_days / days) for days in (56, 28, 14, 7)} - {0})


def _table(title: str, columns: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="left" if name in LEFT else "right")
    return table


def _cost_table(curve: RegretCurve, unit: str) -> Table:
    def add(name: str, setting: str, run: Schedule | Point) -> None:
        amounts = (amount(run.regret, unit), amount(run.total(curve.cost), unit))
        table.add_row(name, setting, str(run.replans), *amounts)

    title = f"{curve.costs.description}; a re-plan costs {amount(curve.cost, unit)}"
    table = _table(title, ("schedule", "setting", "re-plans", "regret", "total"))
    for name, run in curve.schedules.items():
        add(name, "set by the cost" if name in ("accumulated", "CUSUM", "single day") else "", run)
    table.add_section()
    for family, best in curve.cheapest().items():
        add(family, _settings_text(best.rule), best)
    return table


def _budget_table(curve: RegretCurve, unit: str) -> Table:
    budgets = _budgets(curve)
    table = _table("Least regret with at most so many re-plans", ("rule", *map(str, budgets)))
    table.add_row("best in hindsight", *(amount(curve.least_regrets[k], unit) for k in budgets))
    within = [curve.best_within(k) for k in budgets]
    for family in dict.fromkeys(entry.family for entry in curve.points):
        cells = (amount(best[family].regret, unit) if family in best else "–" for best in within)
        table.add_row(family, *cells)
    return table


def _settings_text(rule: Rule | None) -> str:
    return ", ".join(
        f"{name} {number(value)}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings_of(rule).items()
        if value is not False and name not in ("detector", "seed")
    )
