"""Losses that `normalfan fan` is given, by one of

loss.npy                 a file with one loss [H, S, A]
losses.csv:12            a round of a file of losses: its name or, if rounds have no names, its number
losses.csv:12..13        a move between two rounds: the loss of 13 minus the loss of 12
12, 12..13               the same, of the file given by --losses
price 14:00              for a direction: a feature of factored losses given by --losses
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from normalfan.array_files import map_npy
from normalfan.cli.options import ProblemOptions, round_of
from normalfan.errors import InputError
from normalfan.io.cell_tables import every_round
from normalfan.io.frames import existing_file
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import LossStream, as_finite_loss, factors_of, names_of_rounds, rounds_of
from normalfan.problem.mdp import MDP

MOST_STOPS = 1000
NEXT = 2  # rounds to either side of the origin that are drawn

_IN_A_FILE = re.compile(r"(?P<file>.+\.(npy|npz|csv|parquet)):(?P<rounds>.+)")


def check_span(span: tuple[float, float]) -> None:
    if not (np.isfinite(span).all() and span[0] < span[1]):
        raise InputError(
            f"--span is {span[0]:g} {span[1]:g}, but it must go from a number to a larger one: try -0.5 1.5."
        )


@dataclass(frozen=True, slots=True)
class LossReader:
    """Reads losses that are given by file and round."""

    mdp: MDP
    losses: str | None
    problem: ProblemOptions
    read: dict[str, LossStream] = field(default_factory=dict)  # what was read already, by file

    def stream(self, file: str) -> LossStream:
        if file not in self.read:
            self.read[file] = self.problem.losses(file, self.mdp)
        return self.read[file]

    def direction(self, given: str) -> FloatArray:
        """A feature of factored losses, a loss, or the move between two."""
        factors = None if self.losses is None else factors_of(self.stream(self.losses))
        names = (factors and factors.feature_names) or ()
        if factors is None or given not in names:
            return self.loss("--along", given)
        feature = factors.features[[names.index(given)]].toarray().reshape(self.mdp.shape)
        loss = as_finite_loss(self.mdp, feature, "--along is drawn", given)
        return -loss if self.problem.rewards else loss

    def loss(self, option: str, given: str) -> FloatArray:
        """A loss, or the move between two."""
        if found := _IN_A_FILE.fullmatch(given):
            file, rounds = found["file"], found["rounds"]
        elif given.endswith(".npy"):
            loss = as_finite_loss(self.mdp, map_npy(existing_file(Path(given))), f"{option} is drawn", given)
            return -loss if self.problem.rewards else loss
        elif self.losses is None:
            raise InputError(
                f"{option} is {given}, but that names no file: write loss.npy or losses.csv:ROUND, or pass "
                f"--losses."
            )
        else:
            file, rounds = self.losses, given
        stream = self.stream(file)
        names = [name for name in rounds.split("..", 1) if name] or [rounds]
        ends = [round_of(stream, option, name) for name in names]
        rows = [every_round(rounds_of(stream, [t]), self.mdp)[0] for t in ends]
        losses = [as_finite_loss(self.mdp, row, f"{option} is drawn") for row in rows]
        return losses[0] if len(losses) == 1 else losses[1] - losses[0]

    def path(self, given: str | None, at: str) -> tuple[list[str], list[float], FloatArray]:
        """Names, prices and losses of the rounds to draw; next to `at`, if that is one of them."""
        nothing = list[str](), list[float](), np.empty((0, *self.mdp.shape))
        if self.losses is None:
            if given is not None:
                raise InputError(
                    f"--path is {given}, but there are no losses to take it from: pass --losses."
                )
            return nothing
        stream = self.stream(self.losses)
        if given is None:
            if _IN_A_FILE.fullmatch(at) or at.endswith(".npy"):
                return nothing
            centre = round_of(stream, "--at", at.split("..")[0])
            first, last = max(centre - NEXT, 0), min(centre + NEXT, (stream.n_rounds or 0) - 1)
        else:
            start, _, end = given.partition("..")
            first, last = round_of(stream, "--path", start), round_of(stream, "--path", end or start)
        if not 0 <= last - first < MOST_STOPS:
            raise InputError(
                f"the path has {last - first + 1} rounds, but from 1 to {MOST_STOPS} can be drawn: "
                f"choose them with --path FROM..TO."
            )
        before = max(first - 1, 0)  # the price of the first one is against it
        part = rounds_of(stream, slice(before, last + 1))
        prices, losses = price_stream(self.mdp, part).prices.tolist(), every_round(part, self.mdp)
        names = names_of_rounds(stream)
        stops = [names[t] if names else f"round {t}" for t in range(first, last + 1)]
        return stops, prices[first - before :], losses[first - before :]
