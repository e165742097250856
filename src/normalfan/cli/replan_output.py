"""What `normalfan replan` prints: tables for people, documents for scripts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from normalfan.cli.output import print_paragraphs, print_table
from normalfan.replan.curve import CHEAPEST, Point, RegretCurve, settings_of, texts_of
from normalfan.replan.library import COLUMNS, PlanLibrary
from normalfan.replan.recommend import Recommendation, recommend_in_hindsight
from normalfan.replan.rules import Rule
from normalfan.replan.schedule import Schedule
from normalfan.text import amount, counted, number

DAYS_LISTED = 12


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
    by_cost = {"accumulated", "CUSUM", "single day"}
    rows = [(name, "set by the cost" if name in by_cost else "", *run) for name, *run in curve.rows(unit)]
    for family, best in curve.cheapest().items():
        rows.append((family, _settings_text(best.rule), *texts_of(best, curve.cost, unit)))
    print_table(("schedule", "setting", "re-plans", "regret", "total"), rows, curve.caption(unit))
    best_days = curve.schedules[CHEAPEST].days
    if best_days:
        listed = ", ".join(map(curve.costs.day_name, best_days[:DAYS_LISTED]))
        more = f" and {len(best_days) - DAYS_LISTED} more" if len(best_days) > DAYS_LISTED else ""
        print_paragraphs(f"Cheapest in hindsight: re-plan on {listed}{more}.")
    counts = Counter(entry.family for entry in curve.points)
    if budgets := _budgets(curve):
        within = [curve.best_within(k) for k in budgets]
        rows = [("best in hindsight", *(amount(curve.least_regrets[k], unit) for k in budgets))]
        for family in counts:
            found = (amount(best[family].regret, unit) if family in best else "–" for best in within)
            rows.append((family, *found))
        title = "Least regret with at most so many re-plans"
        print_table(("rule", *map(str, budgets)), rows, title)
    tried = ", ".join(f"{family} {count}" for family, count in counts.items())
    print_paragraphs(
        f"Settings are picked in hindsight, for every rule alike; settings tried: {tried}.",
        recommend_in_hindsight(curve, unit).sentence,
    )


def _budgets(curve: RegretCurve) -> list[int]:
    """Numbers of re-plans to compare at: one in 56, 28, 14 and 7 days."""
    return sorted({round(curve.costs.n_days / days) for days in (56, 28, 14, 7)} - {0})


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
    parts = f"{counted(advice.tuned_days, 'day')}, judged on the {advice.days.n_days:,}"
    cost = amount(advice.cost, unit)
    title = f"Chosen on the first {parts} from {advice.days.day_name(0)} on; a re-plan costs {cost}"
    rows = []
    for one in advice.judged:
        before, run = amount(one.tuned_total, unit), texts_of(one.run, advice.cost, unit)
        rows.append((one.family, _settings_text(one.rule), before, *run))
    print_table(("rule", "setting", "total before", "re-plans", "regret", "total"), rows, title)
    if advice.beaten_by:
        families = ", ".join(one.family for one in advice.beaten_by)
        print_paragraphs(f"Cheaper on these days, but not on those before: {families}.")
    print_paragraphs(advice.sentence)


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
    title = f"{counted(len(library.values), 'day')}; cost beyond a new plan a day"
    print_table(COLUMNS, library.rows(unit), title)
    print_paragraphs(f"What {counted(len(library.choices[-1].days), 'plan')} serve:")
    served = (f"  the plan of {plan}: {days}" for plan, days in library.in_common().items())
    print_paragraphs(*served, indent="    ")
    first = amount(library.first_plan_cost, unit)
    print_paragraphs(f"{library.sentence} Never to change the first plan costs {first}.")


# --- for all of them


def _numbers(run: Schedule | Point, cost: float) -> dict[str, Any]:
    return {"replans": run.replans, "regret": run.regret, "total": run.total(cost)}


def _settings_text(rule: Rule | None) -> str:
    return ", ".join(
        f"{name} {number(value)}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings_of(rule).items()
        if value is not False and name not in ("detector", "seed")
    )
