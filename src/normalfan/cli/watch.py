"""`normalfan watch`: losses on standard input, prices on standard output, a line each."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from normalfan.cli.output import print_json
from normalfan.cli.sources import Features, Horizon, Model, Start, read_model
from normalfan.errors import InputError

if TYPE_CHECKING:
    from normalfan.problem.mdp import MDP
    from normalfan.watch.lines import LineReader
    from normalfan.watch.tally import Tally

ALARM = 3

LATENCY = 0.2
"""Seconds for which records may wait to be committed together when lines come faster than that."""


def watch(
    model: Model,
    horizon: Horizon = None,
    start: Start = None,
    features: Features = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the state here, and resume from it. Needs --out."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the prices here, each round once, whatever is killed when."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
    alarm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="A rule: price>100, price>1% (of the value), total>5000, margin<1e-3, crossed, ambiguous. "
            "Several may be given.",
        ),
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep metrics in this textfile.")
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Say which round the state priced last, and exit.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the summary (or status) as one JSON document: on standard output with --state, "
            "else, where prices go there, on standard error.",
        ),
    ] = False,
) -> None:
    """Price losses as they arrive: a line in, a line out.

    A line in is {"round": 7, "loss": [[[…]]]}, by step, state and action, or {"round": 7, "theta": […]}
    with --features. Round numbers rise; a number that was passed already is skipped. A bad line gets a
    record {"line": 12, "error": "…"}, and the stream goes on.

    Exit codes: 0 the stream ended, or SIGTERM or SIGINT ended it; 1 reading or writing failed; 2 bad input
    (with --strict also a bad line); 3 an alarm was raised.

    Example:  normalfan watch battery.npz --state s.npz --out prices.jsonl --alarm 'price>1%' < losses.jsonl
    """
    from normalfan.watch.alarms import Rule
    from normalfan.watch.metrics import MetricsFile

    _check_options(state, out, status)
    if status and state:
        _print_status(state, as_json)
        return
    rules = [Rule.parse(text) for text in alarm or []]
    metrics = MetricsFile(prometheus, model) if prometheus else None
    reader = _line_reader(read_model(model, horizon, start), features)
    try:
        tally = _watch(reader, state, out, rules=rules, metrics=metrics, strict=strict)
    except BrokenPipeError:
        # Whoever read the prices has seen enough. What is still in the buffer must not be sent at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    _print_summary(tally, as_json, on_stdout=state is not None)
    if tally.alarms:
        raise typer.Exit(ALARM)


def _watch(reader: LineReader, state: Path | None, out: Path | None, **options: Any) -> Tally:
    from normalfan.pricing.monitor import Monitor
    from normalfan.watch.feed import listening
    from normalfan.watch.journal import open_journal
    from normalfan.watch.watcher import Watcher

    def announce(alarm: str) -> None:
        typer.echo(f"normalfan: {alarm}", err=True)

    def show(records: bytes, _: object = None) -> None:
        _write(sys.stdout, records)

    if state is None or out is None:
        with listening(_stdin()) as feed:
            monitor = Monitor(reader.mdp)
            return Watcher(reader, monitor, show, complain=show, announce=announce, **options).run(feed)
    with open_journal(reader.mdp, state, out) as journal, listening(_stdin()) as feed:
        return Watcher(
            reader,
            journal.monitor,
            journal.commit,
            progress=journal.progress,
            complain=lambda record: _write(sys.stderr, record),
            announce=announce,
            latency=LATENCY,
            **options,
        ).run(feed)


def _line_reader(mdp: MDP, features: str | None) -> LineReader:
    from normalfan.io import read_features
    from normalfan.watch.lines import LineReader

    if features is None:
        return LineReader(mdp)
    names, matrix = read_features(features, mdp)
    return LineReader(mdp, matrix, names)


def _stdin() -> int:
    if sys.stdin is None:
        raise InputError("standard input is closed, but losses arrive there: write them to it, with < FILE.")
    return sys.stdin.fileno()


def _check_options(state: Path | None, out: Path | None, status: bool) -> None:
    if status and state is None:
        raise InputError("--status is given without --state, but it is about a state: add --state FILE.")
    if (state is None) != (out is None) and not status:
        given, lacking = ("--out", "--state") if state is None else ("--state", "--out")
        raise InputError(
            f"{given} is given without {lacking}, but a state and its output keep each other right: "
            f"give both, or neither and read standard output."
        )


def _print_status(state: Path, as_json: bool) -> None:
    from normalfan.watch.journal import read_progress

    tally = read_progress(state)
    if as_json:
        print_json({"last_round": tally.progress.last_round, "rounds": tally.rounds, "total": tally.total})
    elif tally.progress.last_round is None:
        typer.echo("No round was priced yet.")
    else:
        typer.echo(
            f"The last round priced is {tally.progress.last_round}: send what comes after it. "
            f"{tally.rounds} rounds cost {tally.total:.6g}."
        )


def _print_summary(tally: Tally, as_json: bool, *, on_stdout: bool) -> None:
    if as_json:
        print_json(tally.summary(), err=not on_stdout)
    elif on_stdout:
        typer.echo(
            f"{tally.priced} rounds priced, {tally.skipped} lines skipped, {tally.bad_lines} bad; "
            f"{tally.rounds} rounds in all cost {tally.total:.6g}."
        )


def _write(stream: TextIO, records: bytes) -> None:
    stream.buffer.write(records)
    stream.flush()
