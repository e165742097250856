"""`normalfan price`: what keeping the old plan cost, round by round."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from normalfan.cli import sources
from normalfan.cli.output import (
    AsJson,
    SafeCsv,
    frame_of_rounds,
    print_gaps,
    print_json,
    print_summary,
    write_rounds,
)
from normalfan.files import check_target
from normalfan.io import load_mdp
from normalfan.io.rounds import gaps_between
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import summarise


def price(
    model: sources.Model,
    losses: sources.Losses,
    features: sources.Features = None,
    default: sources.Default = None,
    axes: sources.Axes = None,
    horizon: sources.Horizon = None,
    start: sources.Start = None,
    rewards: sources.Rewards = False,
    order: sources.Order = None,
    max_memory: sources.MaxMemory = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Every round, as .csv, .parquet or .json.")
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="A report page (.html) that works offline.")
    ] = None,
    safe_csv: SafeCsv = False,
    unit: sources.Unit = "",
    as_json: AsJson = False,
) -> None:
    """Price every round of a stream of losses against the plan that was optimal the round before.

    Example:  normalfan price model.csv losses.csv --start home --horizon 24 --out prices.csv
    """
    from normalfan.report import write_report
    from normalfan.report.page import check_page_packages

    check_target("--out", out, (".csv", ".parquet", ".json"))
    check_target("--report", report, (".html",))
    if report is not None:
        check_page_packages()
    mdp = load_mdp(model, horizon=horizon, start=start, max_memory=max_memory)
    cells = {"features": features, "default": default, "axes": axes}
    stream = sources.read_losses(losses, mdp, rewards, order=order, max_memory=max_memory, **cells)
    motion = price_stream(mdp, stream, progress=True)
    summary = summarise(mdp, stream, motion)
    frame = frame_of_rounds(motion)
    gaps = gaps_between(motion.round_names)
    if out is not None:
        write_rounds(frame, Path(out), safe_csv=safe_csv)
    if report is not None:
        title = f"{Path(losses).name} on {Path(model).name}"
        write_report(report, mdp, stream, motion, title=title, unit=unit, summary=summary)
    if as_json:
        missing = [{"round": late, "since": before} for late, before in gaps]
        print_json({"summary": asdict(summary), "gaps": missing, "rounds": frame.to_dicts()})
    else:
        print_summary(summary, unit)
        print_gaps(gaps)
