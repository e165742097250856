"""`normalfan price`: what keeping the old plan cost, round by round."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from normalfan.cli.output import AsJson, print_json, print_summary, write_rounds
from normalfan.cli.sources import (
    Axes,
    Default,
    Features,
    Horizon,
    Losses,
    Model,
    Rewards,
    Start,
    Unit,
    read_losses,
    read_model,
)
from normalfan.files import check_target
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import summarise


def price(
    model: Model,
    losses: Losses,
    features: Features = None,
    default: Default = None,
    axes: Axes = None,
    horizon: Horizon = None,
    start: Start = None,
    rewards: Rewards = False,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Every round, as .csv, .parquet or .json.")
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="A report page (.html) that works offline.")
    ] = None,
    unit: Unit = "",
    as_json: AsJson = False,
) -> None:
    """Price every round of a stream of losses against the plan that was optimal the round before.

    Example:  normalfan price model.csv losses.csv --start home --horizon 24 --out prices.csv
    """
    from normalfan.report import write_report
    from normalfan.report.rendering import check_page_packages

    check_target("--out", out, (".csv", ".parquet", ".json"))
    check_target("--report", report, (".html",))
    if report is not None:
        check_page_packages()
    mdp = read_model(model, horizon, start)
    stream = read_losses(losses, mdp, features=features, default=default, axes=axes, are_rewards=rewards)
    motion = price_stream(mdp, stream, progress=True)
    summary = summarise(mdp, stream, motion)
    frame = motion.to_frame()
    if out is not None:
        write_rounds(frame, Path(out))
    if report is not None:
        title = f"{Path(losses).name} on {Path(model).name}"
        write_report(report, mdp, stream, motion, title=title, unit=unit, summary=summary)
    if as_json:
        print_json({"summary": asdict(summary), "rounds": frame.to_dicts()})
    else:
        print_summary(summary, unit)
