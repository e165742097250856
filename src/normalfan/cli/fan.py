"""`normalfan fan`: a slice of the normal fan, with the path of the losses on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normalfan.cli import options
from normalfan.cli.options import Text, option
from normalfan.cli.output import print_json
from normalfan.errors import InputError
from normalfan.text import printable

if TYPE_CHECKING:
    from normalfan.report.fan import FanPicture


@options.with_problem_options
def fan(
    model: options.Model,
    at: Annotated[str, option("LOSS", "The origin: loss.npy, or losses.csv:ROUND.")],
    along: Annotated[
        tuple[str, str], option("D1 D2", "Two directions: features, losses, or moves FILE:ROUND..ROUND.")
    ],
    problem: options.ProblemOptions,
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
    from normalfan.cli.fan_losses import LossReader, check_span
    from normalfan.report import Plane, draw_fan, write_fan
    from normalfan.report.page import check_fan, fan_sentences

    if out is not None:
        check_fan(out, "--out")
    check_span(span)
    mdp = problem.load(model)
    source = LossReader(mdp, losses, problem)
    plane = Plane(source.loss("--at", at), *map(source.direction, along))
    if plane.is_flat:
        raise InputError(
            f"--along is {along[0]} {along[1]}, but a plane needs two directions that differ and are not "
            f"zero: choose others."
        )
    stops, prices, rounds = source.path(path, at)
    picture = draw_fan(mdp, plane, (span, span), list(rounds))
    if out is not None:
        title = f"The fan of {Path(model).name} at {at}"
        titles = {"title": title, "unit": problem.unit, "right": along[0], "up": along[1]}
        write_fan(out, picture, **titles, stops=stops, prices=prices)
    if as_json:
        print_json(_as_document(picture, stops, prices))
    else:
        typer.echo("\n".join(map(printable, fan_sentences(picture, problem.unit))))


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
