"""`normalfan watch`: losses on standard input, prices on standard output, a line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from normalfan.cli.output import print_json
from normalfan.cli.sources import Features, Horizon, Model, Start
from normalfan.errors import InputError, WorkStopped

if TYPE_CHECKING:
    from normalfan.problem.mdp import MDP
    from normalfan.watch.feed import Feed
    from normalfan.watch.metrics import Tally

ALARM = 3

LATENCY = 0.2  # seconds that records may wait to be committed together when lines come faster


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
        typer.Option(
            metavar="FILE",
            help="Append the prices to this file, each round exactly once, even if the process is killed.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
    alarm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Raise an alarm: price>100, price>1% (of the value), total>5000, margin<1e-3, crossed, "
            "ambiguous. Can be given several times.",
        ),
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep metrics for Prometheus in this text file.")
    ] = None,
    max_line: Annotated[
        float, typer.Option(metavar="MIB", min=0.001, help="Refuse lines longer than this, in MiB.")
    ] = 16,
    status: Annotated[
        bool, typer.Option("--status", help="Print the last round that the state has priced, and exit.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the summary (or status) as one JSON document: with --state on standard output, "
            "without it on standard error, because standard output has the prices.",
        ),
    ] = False,
) -> None:
    """Price losses as they arrive: one line in, one line out.

    A line in is {"round": 7, "loss": [[[…]]]}, by step, state and action, or {"round": 7, "theta": […]}
    with --features. Round numbers rise; a line whose number is not above the last one is skipped. A bad
    line gets a record {"line": 12, "error": "…"}, and the stream goes on.

    Exit codes: 0 the stream ended, or SIGTERM or SIGINT ended it; 1 reading or writing failed; 2 bad input
    (no line could be priced, or with --strict one); 3 an alarm was raised.

    Example:  normalfan watch battery.npz --state s.npz --out prices.jsonl --alarm 'price>1%' < losses.jsonl
    """
    from normalfan.io import load_mdp, read_features
    from normalfan.watch import AlarmRule, MetricsFile

    _check_options(state, out, status)
    if status and state:
        _print_status(state, as_json)
        return
    rules = [AlarmRule.parse(text) for text in alarm or []]
    metrics = MetricsFile(prometheus, model) if prometheus else None
    mdp = load_mdp(model, horizon=horizon, start=start)
    names, matrix = read_features(features, mdp) if features is not None else ((), None)
    options = {
        "features": matrix,
        "feature_names": names,
        "rules": rules,
        "metrics": metrics,
        "strict": strict,
        "longest": int(max_line * 2**20),
    }
    try:
        tally = _watch(mdp, state, out, options)
    except BrokenPipeError:  # of standard output: nobody reads the prices any more
        raise typer.Exit from None
    _print_summary(tally, as_json, on_stdout=state is not None)
    if tally.bad_lines and not tally.priced + tally.skipped:
        raise InputError(
            f"none of the lines can be priced ({tally.bad_lines} are bad), but a watch is for rounds: "
            f"mend their source. {tally.first_error}"
        )
    if tally.alarms:
        raise typer.Exit(ALARM)


def _watch(mdp: MDP, state: Path | None, out: Path | None, options: dict[str, Any]) -> Tally:
    from normalfan.pricing.monitor import Monitor
    from normalfan.watch import Watcher, open_feed, open_journal

    # Only a metrics file shows that an idle watch is alive.
    patience = 1.0 if options["metrics"] else None
    arriving = open_feed(
        _descriptor("standard input", sys.stdin), longest=options["longest"], patience=patience
    )
    if state is None or out is None:
        shown = _descriptor("standard output", sys.stdout)
        with arriving as feed:

            def print_records(records: bytes, _: object = None) -> None:
                if feed.write(shown, records) < len(records):
                    raise WorkStopped(
                        "standard output was full when the watch was asked to stop, but must take every "
                        "price: read it to its end, or keep the prices with --state and --out."
                    )

            options |= {"on_alarm": _alarm_printer(feed), "on_bad_line": print_records}
            return Watcher(Monitor(mdp), print_records, **options).run(feed)
    with open_journal(mdp, state, out) as journal, arriving as feed:
        options |= {"on_alarm": _alarm_printer(feed), "on_bad_line": partial(_print_diagnostic, feed)}
        options |= {"progress": journal.progress, "latency": LATENCY}
        return Watcher(journal.monitor, journal.commit, **options).run(feed)


def _alarm_printer(feed: Feed) -> Callable[[str], None]:
    return lambda alarm: _print_diagnostic(feed, f"normalfan: {alarm}\n".encode())


def _print_diagnostic(feed: Feed, text: bytes) -> None:
    """Diagnostics may be lost, if nobody reads them; rounds may not."""
    if sys.stderr is not None:
        with suppress(OSError):
            feed.write(sys.stderr.fileno(), text)


def _descriptor(name: str, stream: TextIO | None) -> int:
    if stream is None:
        raise InputError(
            f"{name} is closed, but losses arrive on standard input and prices leave on standard output: "
            f"open it, as with < FILE and > FILE."
        )
    return stream.fileno()


def _check_options(state: Path | None, out: Path | None, status: bool) -> None:
    if status and state is None:
        raise InputError("--status is given without --state, but it reports on a state: add --state FILE.")
    if (state is None) != (out is None) and not status:
        given, lacking = ("--out", "--state") if state is None else ("--state", "--out")
        raise InputError(
            f"{given} is given without {lacking}, but a state and its output belong together: "
            f"give both, or neither and read standard output."
        )


def _print_status(state: Path, as_json: bool) -> None:
    from normalfan.watch import read_progress

    progress = read_progress(state)
    if as_json:
        print_json({"last_round": progress.last_round, "rounds": progress.rounds, "total": progress.total})
    elif progress.last_round is None:
        typer.echo("No round was priced yet.")
    else:
        typer.echo(
            f"The last round priced is {progress.last_round}: send the rounds after it. "
            f"{progress.rounds} rounds cost {progress.total:.6g}."
        )


def _print_summary(tally: Tally, as_json: bool, *, on_stdout: bool) -> None:
    try:
        if as_json:
            print_json(tally.summary(), err=not on_stdout)
        elif on_stdout:
            typer.echo(
                f"{tally.priced} rounds priced, {tally.skipped} lines skipped, {tally.bad_lines} bad; "
                f"{tally.progress.rounds} rounds in all cost {tally.progress.total:.6g}."
            )
    except BrokenPipeError:
        # The rounds are safe, and nobody wants to know. What is in the buffer must not be sent at exit.
        stream = sys.stdout if on_stdout else sys.stderr
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
