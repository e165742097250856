"""What commands are about: the arguments and options that name a model and its losses, and their reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import normalfan as nf
from normalfan.errors import InputError

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
Horizon = Annotated[
    int | None, typer.Option(metavar="H", help="Steps in a round, if the model does not say.")
]
Start = Annotated[
    str | None, typer.Option(metavar="STATE", help="Where a round begins, if the model does not say.")
]
Steps = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Names of the steps, with commas between them: morning,noon,evening."),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="A table of feature, step, state, action, value that the coefficients multiply."
    ),
]
Default = Annotated[
    float | None, typer.Option(metavar="X", help="The loss of cells that a table of losses leaves out.")
]
Axes = Annotated[
    str | None,
    typer.Option(
        metavar="AXES",
        help="The axes of an array of losses, if it does not have all of THSA (rounds, steps, states, "
        "actions): TSA if the loss is the same at every step.",
    ),
]
Rewards = Annotated[
    bool, typer.Option("--rewards", help="The numbers are rewards, to be maximised, instead of losses.")
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="file|sorted",
        help="What to do with rounds that are dates or numbers out of order: keep the order of the file, or "
        "sort them.",
    ),
]
First = Annotated[
    str | None, typer.Option("--from", metavar="ROUND", help="The first round: its name, a date or a number.")
]
Last = Annotated[str | None, typer.Option("--to", metavar="ROUND", help="The last round, which is included.")]
Separator = Annotated[str, typer.Option(metavar="SIGN", help="What separates the entries of a CSV table.")]
Decimal = Annotated[str, typer.Option(metavar=".|,", help="The sign for decimals in a CSV table.")]
MaxMemory = Annotated[
    int | None, typer.Option(metavar="BYTES", help="Of what is read; all of the machine's if not given.")
]
Unit = Annotated[str, typer.Option(metavar="UNIT", help="Of the losses, such as $.")]


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """How a problem and its losses are read: the options that all commands share."""

    horizon: Horizon = None
    start: Start = None
    steps: Steps = None
    features: Features = None
    default: Default = None
    axes: Axes = None
    rewards: Rewards = False
    order: Order = None
    first: First = None
    last: Last = None
    separator: Separator = ","
    decimal: Decimal = "."
    max_memory: MaxMemory = None
    unit: Unit = ""

    def load(self, model: str) -> nf.MDP:
        given = self._given("horizon", "start", "separator", "decimal", "max_memory")
        return nf.io.load_mdp(model, steps=self.steps.split(",") if self.steps else None, **given)

    def losses(self, source: str, mdp: nf.MDP) -> nf.LossStream:
        written = self._given("features", "default", "axes", "rewards", "separator", "decimal", "max_memory")
        return nf.io.open_losses(source, mdp, **written, **self._given("order", "first", "last"))

    def plan(self, source: str, mdp: nf.MDP) -> FloatArray:
        return nf.io.read_plan(source, mdp, **self._given("separator", "decimal"))

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def with_problem_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `problem` is filled from one option for each field of `ProblemOptions`."""

    @wraps(command)
    def called(**given: Any) -> None:
        if len(piped := [name for name in SOURCES if given.get(name) == "-"]) > 1:
            raise InputError(
                f"{' and '.join(piped)} are both standard input, but it can be only one table: give the "
                f"other as a file."
            )
        problem = ProblemOptions(**{field.name: given.pop(field.name) for field in fields(ProblemOptions)})
        command(problem=problem, **given)

    hints = get_type_hints(command, include_extras=True) | get_type_hints(ProblemOptions, include_extras=True)
    parameters = signature(command).parameters | signature(ProblemOptions).parameters
    shown = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in parameters.items()
        if name != "problem"
    ]
    called.__annotations__ = hints
    called.__signature__ = signature(command).replace(parameters=shown)  # type: ignore[attr-defined]
    return called
