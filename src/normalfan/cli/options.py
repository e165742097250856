"""The arguments and options that commands share, and the reading of what they name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

import normalfan as nf
from normalfan.errors import InputError, check_whole

if TYPE_CHECKING:
    from normalfan.problem.arrays import FloatArray

SOURCES = ("model", "losses", "features", "forecast", "plan")  # what may be - for standard input


def option(metavar: str, meaning: str, *names: str, **more: Any) -> Any:
    """An option with a value; `names` are its names, if it is not called by that of its parameter."""
    return typer.Option(*names, metavar=metavar, help=meaning, **more)


def count(metavar: str, meaning: str) -> Any:
    """An option that is a whole number from 1 on; what is below is refused in our words."""

    def checked(parameter: typer.CallbackParam, given: int | None) -> int | None:
        if given is not None:
            check_whole(parameter.opts[0], given, "ask for 1 or more")
        return given

    return option(metavar, meaning, callback=checked)


def argument(metavar: str, meaning: str) -> Any:
    return typer.Argument(metavar=metavar, help=meaning, show_default=False)


def flag(name: str, meaning: str) -> Any:
    return typer.Option(name, help=meaning)


Text: TypeAlias = str | None  # of an option that may be left out
Model = Annotated[
    str,
    argument(
        "MODEL",
        "The dynamics: a .npz file, a .csv or .parquet table of state, action, next_state, probability "
        "(and step), a Gymnasium environment gym:ID, or - for a table on standard input.",
    ),
]
Losses = Annotated[
    str,
    argument(
        "LOSSES",
        "The losses: a .npy or .npz array, a .csv or .parquet table of round, step, state, action, "
        "loss (or reward), or, with --features, a table of coefficients per round; - reads one from standard "
        "input.",
    ),
]
Known = Annotated[
    Literal["before", "after"],
    option("before|after", "Whether a loss is known before acting on it: then a new plan serves that round."),
]
Against = Annotated[
    Text, option("PLAN", "The plan of so many rounds before, or first; if not given, of the round before.")
]
Out = Annotated[Text, option("FILE", "The whole table, as .csv, .parquet or .json.")]
Report = Annotated[Text, option("FILE", "A report page (.html) that works offline.")]
Title = Annotated[Text, option("TEXT", "The heading of the page; by default it names the files.")]
SafeCsv = Annotated[
    bool, flag("--safe-csv", "In .csv, quote labels that a spreadsheet would run (=, +, -, @).")
]
AsJson = Annotated[bool, flag("--json", "Print one JSON document on standard output instead of text.")]
ModelOfRound = Annotated[
    Text,
    option(
        "FILE",
        "The rounds that have another model: a table of round and model (a file beside the table), and of "
        "features if losses are factored.",
    ),
]


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """How a problem and its losses are read: the options that commands share."""

    horizon: Annotated[int | None, option("H", "Steps in a round, if the model does not say.")] = None
    start: Annotated[Text, option("STATE", "Where a round begins, if the model does not say.")] = None
    steps: Annotated[Text, option("NAMES", "Names of the steps, such as morning,noon,evening.")] = None
    features: Annotated[
        Text, option("FILE", "A table of feature, step, state, action, value that the coefficients multiply.")
    ] = None
    default: Annotated[float | None, option("X", "The loss of cells that a table leaves out.")] = None
    axes: Annotated[
        Text,
        option(
            "AXES",
            "The axes of an array of losses, if it does not have all of THSA (rounds, steps, states, "
            "actions): TSA if the loss is the same at every step.",
        ),
    ] = None
    rewards: Annotated[
        bool, flag("--rewards", "The numbers are rewards, to be maximised, instead of losses.")
    ] = False
    order: Annotated[
        Text, option("file|sorted", "Dates or numbers out of order: keep the order of the file, or sort.")
    ] = None
    first: Annotated[Text, option("ROUND", "The first round: its name, a date or a number.", "--from")] = None
    last: Annotated[Text, option("ROUND", "The last round, which is included.", "--to")] = None
    separator: Annotated[str, option("SIGN", "What separates the entries of a CSV table.")] = ","
    decimal: Annotated[str, option(".|,", "The sign for decimals in a CSV table.")] = "."
    max_memory: Annotated[
        int | None, option("BYTES", "How much memory the data may take; by default what the machine has.")
    ] = None
    unit: Annotated[str, option("UNIT", "The unit of the losses, such as $.")] = ""

    def load(self, model: str) -> nf.MDP:
        given = self._given("horizon", "start", "separator", "decimal", "max_memory")
        return nf.io.load_mdp(model, steps=self.steps.split(",") if self.steps else None, **given)

    def losses(self, source: str, mdp: nf.MDP) -> nf.LossStream:
        written = self._given("features", "default", "axes", "rewards", "separator", "decimal", "max_memory")
        return nf.io.open_losses(source, mdp, **written, **self._given("order", "first", "last"))

    def moving(self, source: str | None, mdp: nf.MDP, losses: str) -> tuple[Any, Any, dict[str, Any]]:
        """The problems, their losses, and `dynamics_of_round` by name, with the table of --model-of-round."""
        stream = self.losses(losses, mdp)
        if source is None:
            return mdp, stream, {}
        from normalfan.io.frames import Dialect
        from normalfan.io.models import problems_of_rounds

        def reopen(features: str, other: nf.MDP) -> nf.LossStream:
            return replace(self, features=features).losses(losses, other)

        dialect = Dialect(self.separator, self.decimal)
        return problems_of_rounds(source, mdp, stream, self.load, reopen, dialect)

    def plan(self, source: str, mdp: nf.MDP) -> FloatArray:
        return nf.io.read_plan(source, mdp, **self._given("separator", "decimal"))

    def feature_table(self, mdp: nf.MDP) -> tuple[Any, list[str]]:
        if self.features is None:
            return None, []
        names, values = nf.io.read_features(self.features, mdp, **self._given("separator", "decimal"))
        return values, names

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def with_problem_options_but(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command: its parameter `problem` is filled from options, one for each field but these."""
    fields = signature(ProblemOptions, eval_str=True).parameters
    asked = {name: option for name, option in fields.items() if name not in left_out}

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            if len(piped := [name for name in SOURCES if given.get(name) == "-"]) > 1:
                raise InputError(
                    f"{' and '.join(piped)} are both standard input, but it can be only one table: give the "
                    f"other as a file."
                )
            command(problem=ProblemOptions(**{name: given.pop(name) for name in asked}), **given)

        parameters = dict(signature(command, eval_str=True).parameters) | asked
        del parameters["problem"]
        shown = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters.values()]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        return called

    return decorated


def plan_kept(against: str | None) -> str | int:
    """What --against says, as `price_stream` takes it."""
    if against in (None, "first"):
        return against or "previous"
    if not (against.isdecimal() and int(against)):
        raise InputError(
            f"--against is {against!r}, but must be first or a number of rounds from 1 on: choose one of "
            f"them."
        )
    return int(against)


def round_of(stream: nf.LossStream, option: str, name: str) -> int:
    """The round that an option names: by its name or, if rounds have none, by its number."""
    from normalfan.problem.losses import names_of_rounds

    names, count = names_of_rounds(stream), stream.n_rounds or 0
    if names and name in names:
        return names.index(name)
    if not names and name.isdecimal() and int(name) < count:
        return int(name)
    known = f"{names[0]} to {names[-1]}" if names else f"0 to {count - 1}"
    raise InputError(f"{option} names round {name!r}, but the rounds are {known}: choose one of them.")


def tolerance_of(option: str, text: str) -> float | str:
    """An amount, or a share of the value: 250, 1%, 0.5 %."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(%?)\s*", text, flags=re.IGNORECASE)
    with suppress(ValueError):
        if found and math.isfinite(size := float(found[1])):
            return f"{size}%" if found[2] else size
    raise InputError(
        f"{option} is {text!r}, but must be an amount of at least 0 or a share of the value: write 250 or 1%."
    )


with_problem_options = with_problem_options_but()
