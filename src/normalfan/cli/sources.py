"""What commands are about: the arguments and options that name a model and its losses, and their reading."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from normalfan.io import open_losses
from normalfan.problem.losses import LossStream, rewards
from normalfan.problem.mdp import MDP

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="The dynamics: a .npz file, a .csv or .parquet table of state, action, next_state, probability "
        "(and step), or a Gymnasium environment gym:ID.",
    ),
]
Losses = Annotated[
    str,
    typer.Argument(
        metavar="LOSSES",
        show_default=False,
        help="The losses: a .npy or .npz array, a .csv or .parquet table of round, step, state, action, "
        "loss, or, with --features, a table of coefficients per round.",
    ),
]
Horizon = Annotated[
    int | None, typer.Option(metavar="H", help="Steps in a round, if the model does not say.")
]
Start = Annotated[
    str | None, typer.Option(metavar="STATE", help="Where a round begins, if the model does not say.")
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
MaxMemory = Annotated[
    int | None, typer.Option(metavar="BYTES", help="Of what is read; all of the machine's if not given.")
]
Unit = Annotated[str, typer.Option(metavar="UNIT", help="Of the losses, such as $.")]


def read_losses(losses: str, mdp: MDP, are_rewards: bool = False, **options: Any) -> LossStream:
    """The losses of a file; the options are those of `open_losses`."""
    stream = open_losses(losses, mdp, **options)
    return rewards(stream) if are_rewards else stream
