"""`normalfan watch`: losses on standard input, prices on standard output, a line each."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from normalfan.cli import options, output
from normalfan.cli.options import Text, flag, option
from normalfan.errors import InputError, WorkStopped
from normalfan.text import amount, counted, number, printable

if TYPE_CHECKING:
    from normalfan.watch.lines import LineModel
    from normalfan.watch.metrics import Tally

ALARM, REPLAN = 3, 4

LATENCY = 0.2  # seconds that records may wait to be committed together when lines come faster


@options.with_problem_options_but("default", "axes", "order", "first", "last")
def watch(
    model: options.Model,
    problem: options.ProblemOptions,
    state: Annotated[Text, option("FILE", "Keep the state here, and resume from it. Needs --out.")] = None,
    out: Annotated[
        Text,
        option("FILE", "Append the prices here, each round exactly once, even if the process is killed."),
    ] = None,
    strict: Annotated[bool, flag("--strict", "Stop at the first bad line.")] = False,
    alarm: Annotated[
        list[str] | None,
        option(
            "RULE",
            "Raise an alarm: price>100, price>1% (of the value), total>5000, margin<1e-3, crossed, "
            "ambiguous. Can be given several times.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        option(
            "NAME=FILE",
            'Another model that a line may name ("model": "NAME"), with the same steps, states and actions; '
            "NAME=FILE,FEATURES if it has features of its own. Can be given several times.",
        ),
    ] = None,
    rule: Annotated[
        Text,
        option(
            "RULE",
            "Say when to re-plan, from what the plan in service costs: accumulated:X, "
            "cusum:THRESHOLD,ALLOWANCE, single:X (one round costs X), or periodic:K (every K rounds).",
        ),
    ] = None,
    known: options.Known = "before",
    ranged: Annotated[
        Text,
        option(
            "X|X%",
            "Say how near the round's plan is to costing this much more (or this share of the value): "
            "which feature has the shortest way there. Needs --features, and milliseconds a line.",
            "--range",
        ),
    ] = None,
    prometheus: Annotated[Text, option("FILE", "Keep metrics for Prometheus in this text file.")] = None,
    max_line: Annotated[float, option("MIB", "Refuse lines longer than this, in MiB.", min=0.001)] = 16,
    status: Annotated[
        bool, flag("--status", "Print the last round that the state priced, and exit.")
    ] = False,
    as_json: Annotated[
        bool,
        flag(
            "--json",
            "Print the summary (or status) as one JSON document: with --state on standard output, "
            "without it on standard error, because standard output has the prices.",
        ),
    ] = False,
) -> None:
    """Price losses as they arrive: one line in, one line out.

    A line in is {"round": 7, "loss": [[[…]]]}, by step, state and action, or "reward" instead of "loss",
    or {"round": 7, "theta": […]} with --features. Round numbers rise; a line whose number is not above the
    last one is skipped. A bad line gets a record {"line": 12, "error": "…"}, and the stream goes on.

    Exit codes: 0 the stream ended, or SIGTERM or SIGINT ended it; 1 reading or writing failed; 2 bad input
    (no line could be priced, or with --strict one); 3 an alarm was raised; 4 the rule called for a re-plan in
    this run, at its last round or before (whether or not there was an alarm).

    Example:  normalfan watch battery.npz --state s.npz --out prices.jsonl --alarm 'price>1%' < losses.jsonl
    """
    from normalfan.replan.rules import parse_rule
    from normalfan.watch import AlarmRule
    from normalfan.watch.metrics import MetricsFile

    if status:
        if state is None:
            raise InputError(
                "--status is given without --state, but it reports on a state: add --state FILE."
            )
        _print_status(state, problem.unit, as_json)
        return
    if (state is None) != (out is None):
        given, lacking = ("--out", "--state") if state is None else ("--state", "--out")
        raise InputError(
            f"{given} is given without {lacking}, but a state and its output belong together: "
            f"give both, or neither and read standard output."
        )
    for name, source in {"model": model, "features": problem.features}.items():
        if source == "-":
            raise InputError(f"{name} is standard input, but losses arrive there: give it as a file.")
    if rule is None and known != "before":
        raise InputError(
            f"--known is {known} without --rule, but it says which round a new plan of the rule serves: "
            f"add --rule, such as accumulated:200."
        )
    settings: dict[str, Any] = {
        "rules": [AlarmRule.parse(text) for text in alarm or []],
        "metrics": MetricsFile(prometheus, model) if prometheus else None,
        "models": _models_of_lines(model, models or [], problem),
        "rewards": problem.rewards,
        "unit": problem.unit,
        "rule": None if rule is None else parse_rule(rule),
        "known": known,
        "tolerance": None if ranged is None else options.tolerance_of("--range", ranged),
        "strict": strict,
        "longest": int(max_line * 2**20),
        "pauses": True,
    }
    try:
        tally = _watch(state, out, settings)
    except BrokenPipeError:  # of standard output: nobody reads the prices any more
        raise typer.Exit from None
    _print_summary(tally, problem.unit, as_json, on_stdout=state is not None)
    if tally.bad_lines and not tally.priced + tally.skipped:
        raise InputError(
            f"none of the lines can be priced ({tally.bad_lines} are bad), but a watch needs one: "
            f"correct what sends them, beginning with {tally.first_error}"
        )
    if tally.replans or tally.alarms:
        raise typer.Exit(REPLAN if tally.replans else ALARM)


def _watch(state: str | None, out: str | None, settings: dict[str, Any]) -> Tally:
    from normalfan.pricing.monitor import Monitor
    from normalfan.watch import Watcher, open_journal
    from normalfan.watch.lines import Feed

    def print_records(records: bytes, _: object = None) -> None:
        if feed.write(shown, records) < len(records):
            raise WorkStopped(
                "standard output was full when the watch was asked to stop, but must take every price: read "
                "it to its end, or keep the prices with --state and --out."
            )

    def print_diagnostic(text: bytes) -> None:
        """Diagnostics may be lost, if nobody reads them; rounds may not."""
        if sys.stderr is not None:
            with suppress(OSError):
                feed.write(sys.stderr.fileno(), text)

    settings["on_alarm"] = lambda alarm: print_diagnostic(f"normalfan: {alarm}\n".encode())
    source = _descriptor("standard input", sys.stdin)
    # Only a metrics file shows that an idle watch is alive.
    feed = Feed(source, longest=settings["longest"], patience=1.0 if settings["metrics"] else None)
    mdp, *others = (one.mdp for one in settings["models"].values())
    if state is None or out is None:
        shown = _descriptor("standard output", sys.stdout)
        with feed:
            return Watcher(Monitor(mdp), print_records, on_bad_line=print_records, **settings).run(feed)
    with open_journal(mdp, state, out, others=others) as journal, feed:
        settings |= {"on_bad_line": print_diagnostic, "progress": journal.progress, "latency": LATENCY}
        return Watcher(journal.monitor, journal.commit, **settings).run(feed)


def _models_of_lines(model: str, given: list[str], problem: options.ProblemOptions) -> dict[str, LineModel]:
    """The model of lines that name none, under "", and those of --models; each with its features."""
    from normalfan.geometry.change import check_same_spaces
    from normalfan.watch.lines import LineModel

    mdp = problem.load(model)
    models = {"": LineModel(mdp, *problem.feature_table(mdp))}
    for text in given:
        name, _, files = text.partition("=")
        file, _, features = files.partition(",")
        if not file or name in models:
            raise InputError(
                f"--models is {text!r}, but must be NAME=FILE with a name that no other has: "
                f"write derated=derated.npz."
            )
        own = replace(problem, features=features) if features else problem
        other = own.load(file)
        check_same_spaces(mdp, other, f"--models {name}")
        models[name] = LineModel(other, *own.feature_table(other))
    return models


def _descriptor(name: str, stream: TextIO | None) -> int:
    if stream is None:
        raise InputError(
            f"{name} is closed, but losses arrive on standard input and prices leave on standard output: "
            f"open it, as with < FILE and > FILE."
        )
    return stream.fileno()


def _print_status(state: str, unit: str, as_json: bool) -> None:
    from normalfan.watch.journal import read_progress

    progress = read_progress(state)
    service = progress.service
    if as_json:
        document = {name: getattr(progress, name) for name in ("last_round", "rounds", "total")}
        if service:
            names = ("rule", "since", "age", "cost", "replans")
            document["service"] = {name: getattr(service, name) for name in names}
        output.print_json(document)
        return
    if progress.last_round is None:
        typer.echo("No round was priced yet.")
    else:
        typer.echo(
            f"The last round priced is {progress.last_round}: send the rounds after it. "
            f"{progress.rounds} rounds cost {amount(progress.total, unit)}."
        )
    if service:
        typer.echo(
            f"The plan of round {service.since} is in service; it has cost {amount(service.cost, unit)} in "
            f"{counted(service.age, 'round')}. By {service.rule}: {counted(service.replans, 're-plan')}."
        )


def _print_summary(tally: Tally, unit: str, as_json: bool, *, on_stdout: bool) -> None:
    if not output.has_room(sys.stdout if on_stdout else sys.stderr):
        return  # the rounds are safe, and nobody reads
    try:
        if as_json:
            output.print_json(tally.summary(), err=not on_stdout)
        elif on_stdout:
            typer.echo(
                f"{tally.priced} rounds priced, {tally.skipped} lines skipped, {tally.bad_lines} bad; "
                f"{tally.progress.rounds} rounds in all cost {amount(tally.progress.total, unit)}."
            )
            if wall := tally.last_wall:
                ends = " now, the end is ".join(number(wall[name]) for name in ("now", "end"))
                typer.echo(f"The nearest wall of the last round: {printable(wall['feature'])}, {ends}.")
    except BrokenPipeError:
        # The rounds are safe, and nobody wants to know. What is in the buffer must not be sent at exit.
        stream = sys.stdout if on_stdout else sys.stderr
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
