"""`normalfan fan`: a slice of the normal fan, with the path of the losses on it.

Losses are given by one of

loss.npy                 a file with one loss [H, S, A]
losses.csv:12            a round of a file of losses: its name or, if rounds have no names, its number
losses.csv:12..13        a move between two rounds: the loss of 13 minus the loss of 12
12, 12..13               the same, of the file given by --losses
price 14:00              for a direction: a feature of factored losses given by --losses
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import normalfan as nf
from normalfan.cli import options, output
from normalfan.cli.options import ProblemOptions, Text, option, round_of
from normalfan.errors import InputError
from normalfan.text import printable

if TYPE_CHECKING:
    from normalfan.problem.arrays import FloatArray
    from normalfan.report.fan import FanPicture

MOST_STOPS = 1000
NEXT = 2  # rounds to either side of the origin that are drawn

_IN_A_FILE = re.compile(r"(?P<file>.+\.(npy|npz|csv|parquet)):(?P<rounds>.+)")


@options.with_problem_options
def fan(
    model: options.Model,
    at: Annotated[str, option("LOSS", "The origin: loss.npy, or losses.csv:ROUND.")],
    along: Annotated[
        tuple[str, str], option("D1 D2", "Two directions: features, losses, or moves FILE:ROUND..ROUND.")
    ],
    problem: ProblemOptions,
    losses: Annotated[
        Text, option("LOSSES", "Draw a path of these losses; a ROUND alone is one of them.")
    ] = None,
    path: Annotated[
        Text, option("ROUND..ROUND", "Draw these rounds; if not given, those next to --at.")
    ] = None,
    span: Annotated[tuple[float, float], option("LOW HIGH", "The range of both axes.")] = (-0.5, 1.5),
    out: Annotated[Text, option("FILE", "The picture: .html, .png or .pdf.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Slice the normal fan: which losses have the same optimal plans, and what leaving them costs.

    Example:  normalfan fan model.npz --losses losses.csv --at 11 --along 11..12 12..13 --out fan.html
    """
    from normalfan.report import Plane, draw_fan, write_fan
    from normalfan.report.content import fan_sentences
    from normalfan.report.page import check_picture

    if out is not None:
        check_picture(out, "--out")
    if not (all(map(math.isfinite, span)) and span[0] < span[1]):
        raise InputError(
            f"--span is {span[0]:g} {span[1]:g}, but it must go from a number to a larger one: try -0.5 1.5."
        )
    mdp = problem.load(model)
    source = _LossReader(mdp, losses, problem.rewards, cache(partial(problem.losses, mdp=mdp)))
    plane = Plane(source.loss("--at", at), *(source.loss("--along", one) for one in along))
    if plane.is_flat:
        raise InputError(
            f"--along is {along[0]} {along[1]}, but a plane needs two directions that differ and are not "
            f"zero: choose others."
        )
    stops, prices, rounds = source.path(path, at)
    picture = draw_fan(mdp, plane, (span, span), rounds)
    if out is not None:
        titles = {"title": f"The fan of {Path(model).name} at {at}", "right": along[0], "up": along[1]}
        write_fan(out, picture, **titles, unit=problem.unit, stops=stops, prices=prices)
    if as_json:
        output.print_json(_as_document(picture, stops, prices))
    else:
        typer.echo("\n".join(map(printable, fan_sentences(picture, problem.unit))))


@dataclass(frozen=True, slots=True)
class _LossReader:
    mdp: nf.MDP
    losses: str | None
    rewards: bool
    stream: Callable[[str], nf.LossStream]  # reads a file once

    def loss(self, option: str, given: str) -> FloatArray:
        """A loss, the move between two or, for a direction, a feature of factored losses."""
        from normalfan.array_files import map_npy
        from normalfan.io.cell_tables import every_round
        from normalfan.io.frames import existing_file
        from normalfan.problem.losses import as_finite_loss, factors_of, rounds_of

        found, factors = _IN_A_FILE.fullmatch(given), None
        if option == "--along" and self.losses is not None:
            factors = factors_of(self.stream(self.losses))
        features = (factors and factors.feature_names) or ()
        drawn, alone = f"{option} is drawn", None
        if factors is not None and given in features:
            alone = factors.features[[features.index(given)]].toarray().reshape(self.mdp.shape)
        elif given.endswith(".npy") and not found:
            alone = map_npy(existing_file(Path(given)))
        if alone is not None:
            loss = as_finite_loss(self.mdp, alone, drawn, given)
            return -loss if self.rewards else loss
        file, rounds = (found["file"], found["rounds"]) if found else (self.losses, given)
        if file is None:
            raise InputError(
                f"{option} is {given}, but that names no file: write loss.npy or losses.csv:ROUND, or pass "
                f"--losses."
            )
        stream = self.stream(file)
        names = [name for name in rounds.split("..", 1) if name] or [rounds]
        ends = [round_of(stream, option, name) for name in names]
        rows = [every_round(rounds_of(stream, [t]), self.mdp)[0] for t in ends]
        losses = [as_finite_loss(self.mdp, row, drawn) for row in rows]
        return losses[0] if len(losses) == 1 else losses[1] - losses[0]

    def path(self, given: str | None, at: str) -> tuple[list[str], list[float], list[FloatArray]]:
        """Names, prices and losses of the rounds to draw; next to `at`, if that is one of them."""
        from normalfan.io.cell_tables import every_round
        from normalfan.problem.losses import names_of_rounds, rounds_of

        if self.losses is None and given is not None:
            raise InputError(f"--path is {given}, but there are no losses to take it from: pass --losses.")
        is_elsewhere = given is None and (_IN_A_FILE.fullmatch(at) or at.endswith(".npy"))
        if self.losses is None or is_elsewhere:
            return [], [], []
        stream = self.stream(self.losses)
        if given is None:
            centre = round_of(stream, "--at", at.split("..")[0])
            first, last = max(centre - NEXT, 0), min(centre + NEXT, (stream.n_rounds or 0) - 1)
        else:
            start, _, end = given.partition("..")
            first, last = (round_of(stream, "--path", name) for name in (start, end or start))
        if not 0 <= last - first < MOST_STOPS:
            raise InputError(
                f"the path has {last - first + 1} rounds, but from 1 to {MOST_STOPS} can be drawn: "
                f"choose them with --path FROM..TO."
            )
        before = max(first - 1, 0)  # the price of the first one is against it
        part, names = rounds_of(stream, slice(before, last + 1)), names_of_rounds(stream)
        prices, losses = nf.price_stream(self.mdp, part).prices.tolist(), every_round(part, self.mdp)
        called = [names[t] if names else f"round {t}" for t in range(first, last + 1)]
        return called, prices[first - before :], list(losses[first - before :])


def _as_document(fan: FanPicture, stops: list[str], prices: list[float]) -> dict[str, object]:
    places = zip(stops, fan.path.tolist(), prices, fan.in_plane.tolist(), strict=True)
    found = fan.regions
    pieces = zip(found.polygons, found.values.tolist(), found.exposures.tolist(), strict=True)
    return {
        "window": found.window.tolist(),
        "complete": found.complete,
        "plans": [
            {"corners": polygon.tolist(), "value": value, "exposures": exposures}
            for polygon, value, exposures in pieces
        ],
        "kept": [{"value": value, "exposures": exposures} for value, *exposures in found.kept.tolist()],
        "path": [
            {"round": name, "x": x, "y": y, "price": price, "in_plane": inside}
            for name, (x, y), price, inside in places
        ],
    }
