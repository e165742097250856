"""`normalfan fan`: a slice of the normal fan, with the path of the losses on it. A loss is given by one of

loss.npy                 a file with one loss [H, S, A]
losses.csv:12            a round of a file of losses: its name or, if rounds have no names, its number
losses.csv:12..13        a move between two rounds: the loss of 13 minus the loss of 12
12, 12..13               the same, of the file given by --losses
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from normalfan.cli import sources
from normalfan.cli.output import AsJson, print_json
from normalfan.errors import InputError
from normalfan.files import check_target
from normalfan.io import load_mdp
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray, read_numbers
from normalfan.problem.losses import LossStream, as_loss, names_of_rounds, rounds_of
from normalfan.problem.mdp import MDP
from normalfan.text import printable

if TYPE_CHECKING:
    from normalfan.report.fan import FanPicture

MOST_STOPS = 1000

_IN_A_FILE = re.compile(r"(?P<file>.+\.(npy|npz|csv|parquet)):(?P<rounds>.+)")


def fan(
    model: sources.Model,
    at: Annotated[str, typer.Option(metavar="LOSS", help="The origin: loss.npy, or losses.csv:ROUND.")],
    along: Annotated[
        tuple[str, str],
        typer.Option(metavar="D1 D2", help="Two directions: losses, or moves FILE:ROUND..ROUND."),
    ],
    losses: Annotated[
        str | None,
        typer.Option(metavar="LOSSES", help="Draw the path of these losses; a ROUND alone is one of them."),
    ] = None,
    path: Annotated[
        str | None, typer.Option(metavar="ROUND..ROUND", help="Draw only these rounds of the path.")
    ] = None,
    span: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The range of both axes.")] = (
        -0.5,
        1.5,
    ),
    size: Annotated[int, typer.Option(metavar="N", help="Grid points on each axis.")] = 61,
    features: sources.Features = None,
    default: sources.Default = None,
    axes: sources.Axes = None,
    horizon: sources.Horizon = None,
    start: sources.Start = None,
    rewards: sources.Rewards = False,
    order: sources.Order = None,
    max_memory: sources.MaxMemory = None,
    unit: sources.Unit = "",
    out: Annotated[str | None, typer.Option(metavar="FILE", help="The picture: .html, .png or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Slice the normal fan: which losses have the same optimal plans, and what leaving them costs.

    Example:  normalfan fan model.npz --losses losses.csv --at 11 --along 11..12 12..13 --out fan.html
    """
    from normalfan.report import Plane, draw_fan, write_fan
    from normalfan.report.fan_page import SUFFIXES, check_picture, fan_sentences

    check_target("--out", out, SUFFIXES)
    if out is not None:
        check_picture(out)
    grid = _read_grid(span, size)
    mdp = load_mdp(model, horizon=horizon, start=start, max_memory=max_memory)
    options = {"features": features, "default": default, "axes": axes}
    options |= {"order": order, "max_memory": max_memory, "are_rewards": rewards}
    source = _Source(mdp, losses, options)
    plane = Plane(source.loss("--at", at), *(source.loss("--along", direction) for direction in along))
    if plane.is_flat:
        raise InputError(
            f"--along is {along[0]} {along[1]}, but a plane needs two directions that differ and are not "
            f"zero: choose others."
        )
    stops, prices, stream = source.path(path)
    rounds = [] if stream is None else _losses_of(stream, mdp)
    picture = draw_fan(mdp, plane, grid, grid, rounds)
    if out is not None:
        title = f"The fan of {Path(model).name} at {at}"
        titles = {"title": title, "unit": unit, "right": along[0], "up": along[1]}
        write_fan(out, picture, **titles, stops=stops, prices=prices)
    if as_json:
        print_json(_as_document(picture, stops, prices))
    else:
        typer.echo("\n".join(map(printable, fan_sentences(picture, unit))))


def _read_grid(span: tuple[float, float], size: int) -> FloatArray:
    if size < 2:
        raise InputError(f"--size is {size}, but a picture needs at least 2 points on each axis: try 61.")
    if not (np.isfinite(span).all() and span[0] < span[1]):
        raise InputError(
            f"--span is {span[0]:g} {span[1]:g}, but it must go from a number to a larger one: try -0.5 1.5."
        )
    return np.linspace(*span, size)


@dataclass(frozen=True, slots=True)
class _Source:
    """Reads losses that are given by file and round."""

    mdp: MDP
    losses: str | None
    options: dict[str, Any]  # of `read_losses`

    def stream(self, file: str) -> LossStream:
        return sources.read_losses(file, self.mdp, **self.options)

    def loss(self, option: str, given: str) -> FloatArray:
        """A loss, or the move between two."""
        if found := _IN_A_FILE.fullmatch(given):
            file, rounds = found["file"], found["rounds"]
        elif given.endswith(".npy"):
            return _read_loss(self.mdp, option, given) * (-1.0 if self.options["are_rewards"] else 1.0)
        elif self.losses is None:
            raise InputError(
                f"{option} is {given}, but that names no file: write loss.npy or losses.csv:ROUND, or pass "
                f"--losses."
            )
        else:
            file, rounds = self.losses, given
        stream = self.stream(file)
        ends = [_round(stream, option, name) for name in rounds.split("..", 1) if name]
        losses = [as_loss(self.mdp, _losses_of(rounds_of(stream, t, t + 1), self.mdp)[0]) for t in ends]
        return losses[0] if len(losses) == 1 else losses[1] - losses[0]

    def path(self, given: str | None) -> tuple[list[str], list[float], LossStream | None]:
        """Names, prices and losses of the rounds to draw."""
        if self.losses is None:
            if given is not None:
                raise InputError(
                    f"--path is {given}, but there are no losses to take it from: pass --losses."
                )
            return [], [], None
        stream = self.stream(self.losses)
        first, last = 0, (stream.n_rounds or 0) - 1
        if given is not None:
            start, _, end = given.partition("..")
            first, last = _round(stream, "--path", start), _round(stream, "--path", end or start)
        if not 0 <= last - first < MOST_STOPS:
            raise InputError(
                f"the path has {last - first + 1} rounds, but from 1 to {MOST_STOPS} can be drawn: "
                f"choose them with --path FROM..TO."
            )
        part = rounds_of(stream, first, last + 1)
        names = names_of_rounds(stream)
        stops = [names[t] if names else f"round {t}" for t in range(first, last + 1)]
        return stops, price_stream(self.mdp, part).prices.tolist(), part


def _read_loss(mdp: MDP, option: str, file: str) -> FloatArray:
    try:
        array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError):
        raise InputError(
            f"{option} is {file}, but that is not a complete NumPy array: write it with numpy.save."
        ) from None
    except FileNotFoundError:
        raise InputError(f"{option} is {file}, but there is no such file: check the path.") from None
    return as_loss(mdp, read_numbers(file, array), file)


def _round(stream: LossStream, option: str, name: str) -> int:
    names, count = names_of_rounds(stream), stream.n_rounds or 0
    if names and name in names:
        return names.index(name)
    if not names and name.isdecimal() and int(name) < count:
        return int(name)
    known = f"{names[0]} to {names[-1]}" if names else f"0 to {count - 1}"
    raise InputError(f"{option} names round {name!r}, but the rounds are {known}: choose one of them.")


def _losses_of(stream: LossStream, mdp: MDP) -> list[FloatArray]:
    """The losses of a stream of at most `MOST_STOPS` rounds."""
    return [np.array(loss) for block in stream.blocks(mdp.shape, MOST_STOPS) for loss in block]


def _as_document(fan: FanPicture, stops: list[str], prices: list[float]) -> dict[str, object]:
    places = zip(stops, fan.path.tolist(), prices, fan.in_plane.tolist(), strict=True)
    return {
        "xs": fan.xs.tolist(),
        "ys": fan.ys.tolist(),
        "faces": fan.n_faces,
        "labels": fan.labels.tolist(),
        "prices": fan.prices.tolist(),
        "path": [
            {"round": name, "x": x, "y": y, "price": price, "in_plane": inside}
            for name, (x, y), price, inside in places
        ],
    }
