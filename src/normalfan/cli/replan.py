"""`normalfan replan`: when is a new plan worth its cost?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from normalfan.cli.output import AsJson, print_json, write_rounds
from normalfan.cli.sources import (
    Axes,
    Default,
    Features,
    Horizon,
    Losses,
    Model,
    Rewards,
    Start,
    read_losses,
    read_model,
)
from normalfan.errors import InputError
from normalfan.files import check_target
from normalfan.problem.losses import names_of_rounds
from normalfan.replan.costs import Known, holding_costs
from normalfan.replan.curve import cheapest_of_each, settings_of
from normalfan.replan.detectors import detectors_installed
from normalfan.replan.drawing import SUFFIXES, check_drawing_library, draw_curve
from normalfan.replan.schedule import check_cost
from normalfan.replan.study import Study, study

if TYPE_CHECKING:
    import polars

MARKED = ("cheapest in hindsight", "accumulated")
"""The schedules that the figure points out."""


def replan(
    model: Model,
    losses: Losses,
    cost: Annotated[
        float, typer.Option("--cost", metavar="C", help="What a re-plan costs, in the unit of the losses.")
    ],
    plans: Annotated[
        str, typer.Option("--plans", metavar="last|mean:N", help="The loss a plan is made for.")
    ] = "last",
    known: Annotated[
        str,
        typer.Option("--known", metavar="before|after", help="Whether a loss is known before acting on it."),
    ] = "before",
    detectors: Annotated[
        bool, typer.Option(help="Compare with the drift detectors of river (some seconds).")
    ] = True,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Every schedule, day by day, as .csv, .parquet or .json."),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Regret against re-plans, drawn as .png, .pdf or .html."),
    ] = None,
    horizon: Horizon = None,
    start: Start = None,
    features: Features = None,
    default: Default = None,
    axes: Axes = None,
    are_rewards: Rewards = False,
    as_json: AsJson = False,
) -> None:
    """Find when to re-plan: the cheapest schedule in hindsight, and rules that do not see ahead.

    Example:  normalfan replan battery.npz prices.csv --features features.csv --cost 5000
    """
    check_cost(cost)
    window = _read_plans(plans)
    check_target("--out", out, (".csv", ".parquet", ".json"))
    if figure is not None:
        check_target("--figure", figure, SUFFIXES)
        check_drawing_library(figure)
    mdp = read_model(model, horizon, start)
    stream = read_losses(losses, mdp, features=features, default=default, axes=axes, are_rewards=are_rewards)
    costs = holding_costs(mdp, stream, window=window, known=cast("Known", known), progress=True)
    if detectors and not detectors_installed():
        detectors = False
        typer.echo(
            "normalfan: river is not installed, so its drift detectors are left out: "
            "pip install 'normalfan[compare]'.",
            err=True,
        )
    result = study(costs, cost, detectors=detectors, progress=True)
    names = _round_names(result, names_of_rounds(stream))
    if out is not None:
        write_rounds(_days(result, names), Path(out))
    if figure is not None:
        marks = {f"{name}, at cost {cost:,g}": result.schedules[name] for name in MARKED}
        draw_curve(figure, result.points, result.least, marks=marks, title=_subject(result))
    if as_json:
        print_json(_document(result, names))
    else:
        _print_tables(result, names)


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


def _round_names(result: Study, names: tuple[str, ...] | None) -> list[str]:
    """The name of each day of acting."""
    first = result.costs.first_round
    rounds = range(first, first + result.costs.n_days)
    return [names[t] if names else str(t) for t in rounds]


def _document(result: Study, names: list[str]) -> dict[str, Any]:
    def point(entry: Any) -> dict[str, Any]:
        return {
            "settings": settings_of(entry.rule),
            "replans": entry.replans,
            "regret": entry.regret,
            "total": entry.total(result.cost),
        }

    return {
        "cost": result.cost,
        "known": result.costs.known,
        "plans": _plans(result),
        "days": result.costs.n_days,
        "schedules": {
            name: {
                "replans": run.replans,
                "regret": run.regret,
                "total": run.total(result.cost),
                "rounds": [names[t] for t in run.days],
            }
            for name, run in result.schedules.items()
        },
        "tuned_in_hindsight": {
            family: point(best) for family, best in cheapest_of_each(result.points, result.cost).items()
        },
        "within": [
            {"replans": k, "least_regret": float(result.least[k])}
            | {"families": {family: point(best) for family, best in result.within(k).items()}}
            for k in result.budgets()
        ],
        "least_regrets": result.least.tolist(),
        "points": [{"family": entry.family} | point(entry) for entry in result.points],
    }


def _plans(result: Study) -> str:
    return "last" if result.costs.window == 1 else f"mean:{result.costs.window}"


def _subject(result: Study) -> str:
    window = result.costs.window
    plans = "the last day" if window == 1 else f"the mean of {window} days"
    days = "1 day" if result.costs.n_days == 1 else f"{result.costs.n_days} days"
    return f"{days}, plans for {plans}, losses known {result.costs.known} acting"


def _print_tables(result: Study, names: list[str]) -> None:
    from rich.console import Console

    console = Console()
    console.print(_cost_table(result))
    cheapest = result.schedules["cheapest in hindsight"]
    if cheapest.days:
        listed = ", ".join(names[t] for t in cheapest.days[:12])
        more = f" and {cheapest.replans - 12} more" if cheapest.replans > 12 else ""
        console.print(f"Cheapest in hindsight: re-plan on {listed}{more}.\n")
    if result.budgets():
        console.print(_budget_table(result))
    counts = dict[str, int]()
    for entry in result.points:
        counts[entry.family] = counts.get(entry.family, 0) + 1
    tried = ", ".join(f"{family} {count}" for family, count in counts.items())
    console.print(f"Settings are picked in hindsight, for every rule alike; settings tried: {tried}.")


def _cost_table(result: Study) -> Any:
    from rich.table import Table

    table = Table(title=f"{_subject(result)}; a re-plan costs {result.cost:,g}", title_justify="left")
    for name in ("schedule", "setting", "re-plans", "regret", "total"):
        table.add_column(name, justify="left" if name in ("schedule", "setting") else "right")
    set_by_cost = {"accumulated", "CUSUM", "single day"}
    for name, run in result.schedules.items():
        setting = "set by the cost" if name in set_by_cost else ""
        table.add_row(name, setting, str(run.replans), _number(run.regret), _number(run.total(result.cost)))
    table.add_section()
    for family, best in cheapest_of_each(result.points, result.cost).items():
        numbers = (str(best.replans), _number(best.regret), _number(best.total(result.cost)))
        table.add_row(family, _spoken(settings_of(best.rule)), *numbers)
    return table


def _budget_table(result: Study) -> Any:
    from rich.table import Table

    budgets = result.budgets()
    table = Table(title="Least regret with at most so many re-plans", title_justify="left")
    table.add_column("rule")
    for k in budgets:
        table.add_column(str(k), justify="right")
    table.add_row("best in hindsight", *(_number(result.least[k]) for k in budgets))
    within = [result.within(k) for k in budgets]
    for family in dict.fromkeys(entry.family for entry in result.points):
        table.add_row(family, *(_number(best[family].regret) if family in best else "–" for best in within))
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _spoken(settings: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {_number(value)}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
        if value is not False and name not in ("detector", "seed")
    )


def _days(result: Study, names: list[str]) -> polars.DataFrame:
    """One row a day: its name, its best value, and for each schedule whether it re-plans and its regret."""
    import polars

    columns: dict[str, Any] = {"round": names, "value": result.costs.values}
    for name, run in result.schedules.items():
        replans = np.zeros(result.costs.n_days, dtype=bool)
        replans[list(run.days)] = True
        columns |= {f"{name}: re-plan": replans, f"{name}: regret": run.regrets}
    return polars.DataFrame(columns)
