"""What commands are about: the arguments and options that name a model and its losses, and their reading."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import normalfan as nf
from normalfan.errors import InputError
from normalfan.problem.losses import names_of_rounds

if TYPE_CHECKING:
    from normalfan.problem.arrays import FloatArray

SOURCES = ("model", "losses", "features", "forecast", "plan")  # what may be - for standard input

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="The dynamics: a .npz file, a .csv or .parquet table of state, action, next_state, probability "
        "(and step), a Gymnasium environment gym:ID, or - for a table on standard input.",
    ),
]
Losses = Annotated[
    str,
    typer.Argument(
        metavar="LOSSES",
        show_default=False,
        help="The losses: a .npy or .npz array, a .csv or .parquet table of round, step, state, action, "
        "loss (or reward), or, with --features, a table of coefficients per round; - reads one from standard "
        "input.",
    ),
]


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """How a problem and its losses are read: the options that commands share."""

    horizon: Annotated[
        int | None, typer.Option(metavar="H", help="Steps in a round, if the model does not say.")
    ] = None
    start: Annotated[
        str | None, typer.Option(metavar="STATE", help="Where a round begins, if the model does not say.")
    ] = None
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Names of the steps, with commas between them: morning,noon,evening."
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A table of feature, step, state, action, value that the coefficients multiply.",
        ),
    ] = None
    default: Annotated[
        float | None, typer.Option(metavar="X", help="The loss of cells that a table of losses leaves out.")
    ] = None
    axes: Annotated[
        str | None,
        typer.Option(
            metavar="AXES",
            help="The axes of an array of losses, if it does not have all of THSA (rounds, steps, states, "
            "actions): TSA if the loss is the same at every step.",
        ),
    ] = None
    rewards: Annotated[
        bool, typer.Option("--rewards", help="The numbers are rewards, to be maximised, instead of losses.")
    ] = False
    order: Annotated[
        str | None,
        typer.Option(
            metavar="file|sorted",
            help="What to do with rounds that are dates or numbers out of order: keep the order of the file, "
            "or sort them.",
        ),
    ] = None
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="ROUND", help="The first round: its name, a date or a number."),
    ] = None
    last: Annotated[
        str | None, typer.Option("--to", metavar="ROUND", help="The last round, which is included.")
    ] = None
    separator: Annotated[
        str, typer.Option(metavar="SIGN", help="What separates the entries of a CSV table.")
    ] = ","
    decimal: Annotated[str, typer.Option(metavar=".|,", help="The sign for decimals in a CSV table.")] = "."
    max_memory: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Of what is read; all of the machine's if not given.")
    ] = None
    unit: Annotated[str, typer.Option(metavar="UNIT", help="Of the losses, such as $.")] = ""

    def load(self, model: str) -> nf.MDP:
        given = self._given("horizon", "start", "separator", "decimal", "max_memory")
        return nf.io.load_mdp(model, steps=self.steps.split(",") if self.steps else None, **given)

    def losses(self, source: str, mdp: nf.MDP) -> nf.LossStream:
        written = self._given("features", "default", "axes", "rewards", "separator", "decimal", "max_memory")
        return nf.io.open_losses(source, mdp, **written, **self._given("order", "first", "last"))

    def plan(self, source: str, mdp: nf.MDP) -> FloatArray:
        return nf.io.read_plan(source, mdp, **self._given("separator", "decimal"))

    def feature_table(self, mdp: nf.MDP) -> tuple[list[str], Any]:
        """Names and values of the features; none if none are given."""
        if self.features is None:
            return [], None
        return nf.io.read_features(self.features, mdp, **self._given("separator", "decimal"))

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def with_problem_options_but(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command: its parameter `problem` is filled from options, one for each field but these."""
    names = [field.name for field in fields(ProblemOptions) if field.name not in left_out]
    every = signature(ProblemOptions).parameters

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            if len(piped := [name for name in SOURCES if given.get(name) == "-"]) > 1:
                raise InputError(
                    f"{' and '.join(piped)} are both standard input, but it can be only one table: give the "
                    f"other as a file."
                )
            command(problem=ProblemOptions(**{name: given.pop(name) for name in names}), **given)

        hints = get_type_hints(command, include_extras=True)
        hints |= get_type_hints(ProblemOptions, include_extras=True)
        parameters = signature(command).parameters | {name: every[name] for name in names}
        shown = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, parameter in parameters.items()
            if name != "problem"
        ]
        called.__annotations__ = hints
        called.__signature__ = signature(command).replace(parameters=shown)  # type: ignore[attr-defined]
        return called

    return decorated


def round_of(stream: nf.LossStream, option: str, name: str) -> int:
    """The round that an option names: by its name or, if rounds have none, by its number."""
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
