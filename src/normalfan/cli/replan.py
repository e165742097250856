"""`normalfan replan`: when is a new plan worth its cost?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from normalfan.cli import sources
from normalfan.cli.output import AsJson, SafeCsv, plain_console, print_json, write_rounds
from normalfan.errors import InputError
from normalfan.files import check_target, written_atomically
from normalfan.io import load_mdp
from normalfan.replan.costs import Known, holding_costs
from normalfan.replan.curve import CHEAPEST, Point, RegretCurve, regret_curve
from normalfan.replan.detectors import detectors_installed
from normalfan.replan.drawing import check_library
from normalfan.replan.schedule import Schedule, check_amount
from normalfan.text import number, printable

DAYS_LISTED = 12


def replan(
    model: sources.Model,
    losses: sources.Losses,
    cost: Annotated[
        float, typer.Option(metavar="C", help="What a re-plan costs, in the unit of the losses.")
    ],
    plans: Annotated[str, typer.Option(metavar="last|mean:N", help="The loss a plan is made for.")] = "last",
    known: Annotated[
        str, typer.Option(metavar="before|after", help="Whether a loss is known before acting on it.")
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
    horizon: sources.Horizon = None,
    start: sources.Start = None,
    features: sources.Features = None,
    default: sources.Default = None,
    axes: sources.Axes = None,
    are_rewards: sources.Rewards = False,
    order: sources.Order = None,
    max_memory: sources.MaxMemory = None,
    safe_csv: SafeCsv = False,
    as_json: AsJson = False,
) -> None:
    """Find when to re-plan: the cheapest schedule in hindsight, and rules that do not see ahead.

    Example:  normalfan replan battery.npz prices.csv --features features.csv --cost 5000
    """
    check_amount("--cost", cost)
    window = _read_plans(plans)
    check_target("--out", out, (".csv", ".parquet", ".json"))
    check_target("--figure", figure, (".png", ".pdf", ".html"))
    if figure is not None:
        check_library(interactive=figure.endswith(".html"))
    mdp = load_mdp(model, horizon=horizon, start=start, max_memory=max_memory)
    cells = {"features": features, "default": default, "axes": axes}
    stream = sources.read_losses(losses, mdp, are_rewards, order=order, max_memory=max_memory, **cells)
    costs = holding_costs(mdp, stream, window=window, known=cast("Known", known), progress=True)
    if detectors and not detectors_installed():
        detectors = False
        typer.echo(
            "normalfan: river is not installed, so its drift detectors are left out: "
            "pip install 'normalfan[compare]'.",
            err=True,
        )
    curve = regret_curve(costs, cost, detectors=detectors, progress=True)
    if out is not None:
        write_rounds(curve.to_frame(), Path(out), safe_csv=safe_csv)
    if figure is not None:
        _write_figure(curve, Path(figure))
    if as_json:
        print_json(_document(curve))
    else:
        _print_tables(curve)


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


def _write_figure(curve: RegretCurve, path: Path) -> None:
    interactive = path.suffix == ".html"
    figure = curve.plot(interactive=interactive)
    with written_atomically(path) as file:
        if interactive:
            file.write(figure.to_html(config={"displaylogo": False}).encode())
        else:
            figure.savefig(file, format=path.suffix[1:], dpi=160)


def _document(curve: RegretCurve) -> dict[str, Any]:
    def numbers(run: Schedule | Point) -> dict[str, Any]:
        return {"replans": run.replans, "regret": run.regret, "total": run.total(curve.cost)}

    def point(entry: Point) -> dict[str, Any]:
        return {"settings": entry.settings} | numbers(entry)

    return {
        "cost": curve.cost,
        "known": curve.costs.known,
        "plans": "last" if curve.costs.window == 1 else f"mean:{curve.costs.window}",
        "days": curve.costs.n_days,
        "schedules": {
            name: numbers(run) | {"rounds": list(map(curve.costs.day_name, run.days))}
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
    }


def _budgets(curve: RegretCurve) -> list[int]:
    """Numbers of re-plans to compare at: one in 56, 28, 14 and 7 days."""
    return sorted({round(curve.costs.n_days / days) for days in (56, 28, 14, 7)} - {0})


def _print_tables(curve: RegretCurve) -> None:
    console = plain_console()
    console.print(_cost_table(curve))
    best = curve.schedules[CHEAPEST]
    if best.days:
        listed = ", ".join(printable(curve.costs.day_name(day)) for day in best.days[:DAYS_LISTED])
        more = f" and {best.replans - DAYS_LISTED} more" if best.replans > DAYS_LISTED else ""
        console.print(f"Cheapest in hindsight: re-plan on {listed}{more}.\n")
    if _budgets(curve):
        console.print(_budget_table(curve))
    counts = Counter(entry.family for entry in curve.points)
    tried = ", ".join(f"{family} {count}" for family, count in counts.items())
    console.print(f"Settings are picked in hindsight, for every rule alike; settings tried: {tried}.")


def _cost_table(curve: RegretCurve) -> Any:
    from rich.table import Table

    def add(name: str, setting: str, run: Schedule | Point) -> None:
        amounts = (number(run.regret), number(run.total(curve.cost)))
        table.add_row(name, setting, str(run.replans), *amounts)

    title = f"{curve.costs.description}; a re-plan costs {number(curve.cost)}"
    table = Table(title=title, title_justify="left")
    for name in ("schedule", "setting", "re-plans", "regret", "total"):
        table.add_column(name, justify="left" if name in ("schedule", "setting") else "right")
    for name, run in curve.schedules.items():
        add(name, "set by the cost" if name in ("accumulated", "CUSUM", "single day") else "", run)
    table.add_section()
    for family, best in curve.cheapest().items():
        add(family, _settings_text(best), best)
    return table


def _budget_table(curve: RegretCurve) -> Any:
    from rich.table import Table

    budgets = _budgets(curve)
    table = Table(title="Least regret with at most so many re-plans", title_justify="left")
    table.add_column("rule")
    for k in budgets:
        table.add_column(str(k), justify="right")
    table.add_row("best in hindsight", *(number(curve.least_regrets[k]) for k in budgets))
    within = [curve.best_within(k) for k in budgets]
    for family in dict.fromkeys(entry.family for entry in curve.points):
        table.add_row(family, *(number(best[family].regret) if family in best else "–" for best in within))
    return table


def _settings_text(point: Point) -> str:
    return ", ".join(
        f"{name} {number(value)}" if isinstance(value, float) else f"{name} {value}"
        for name, value in point.settings.items()
        if value is not False and name not in ("detector", "seed")
    )
