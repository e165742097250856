"""Near-ties, read carefully: which prices are possible, and which one the tie rule reports.

A price jumps where the previous loss has a tie, so a rounding error can change it by any amount. Rounds that
the fast sweeps cannot clear are read again in twice the precision, with an error bound for every state. Each
action is then surely optimal, doubtful, or out, and two backups enclose the exact price of the floats given.
A round is ambiguous when the two differ by more than rounding, or when it is open whether the face moved.
Equations: docs/details/near-ties.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.exact.certify import exact_advantages
from normalfan.geometry.ties import TieRule
from normalfan.pricing.kernels import UNIT, Tables
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray

DOUBTFUL, SURE = 1, 2

Marks: TypeAlias = npt.NDArray[np.int8]

WIDE = 1e-6
"""An enclosure wider than this part of its price is made again with more digits."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What is known of the advantages of one loss; `low` and `high` are in units of 2^exponent."""

    advantages: FloatArray  # [H, S, A]  0 where the tie rule counts them as none
    low: FloatArray  # [H, S, A]  at most the exact advantage
    high: FloatArray  # [H, S, A]  at least the exact advantage
    marks: Marks  # [H, S, A]  SURE, DOUBTFUL, or 0
    reader: Reader
    exponent: int = 0
    exactly: bool = False  # read in rational numbers

    @cached_property
    def is_sure(self) -> bool:
        """Whether no action is doubtful, so that the face is known exactly."""
        return not (self.marks == DOUBTFUL).any()

    @cached_property
    def faces(self) -> Marks:
        """[H, S, A]: the marks where marked actions lead: DOUBTFUL, if only doubtful ones do."""
        return self.reader.follow(self.marks)


class Reader:
    """Reads losses of one problem."""

    def __init__(
        self, tables: Tables, ties: TieRule, *, exactly: bool = False, everywhere: bool = False
    ) -> None:
        self.tables = tables
        self.mdp = mdp = tables.mdp
        self.ties = ties
        self.exactly = exactly
        self.everywhere = everywhere  # also at states that no policy reaches
        self.states = np.ones_like(mdp.reachable) if everywhere else mdp.reachable
        # A bound on the relative error of a price that is summed up in floats from given advantages.
        self.rounding = 8.0 * (mdp.horizon + 1) * (mdp.most_successors + 4) * UNIT

    @cached_property
    def sums(self) -> FloatArray:
        """Of each row of the transitions: the exact sum as two floats, and a bound on what they leave out."""
        from normalfan._kernels.reading import row_sums

        indptr, _, weights = self.tables.rows
        sums = np.empty((len(indptr) - 1, 3))
        row_sums(indptr, weights, sums)
        return sums

    def rounding_intervals(
        self, prices: FloatArray, sizes: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Lowest and highest prices of rounds without near-ties, where only rounding is open; which are wide.

        The errors of the values cancel along any policy: a price is off by what single sums lose. `sizes`:
        see the sweeps.
        """
        from normalfan._kernels.reading import rounding_intervals

        lowest, highest = np.empty(len(prices)), np.empty(len(prices))
        wide = np.empty(len(prices), dtype=bool)
        factor = 8 * (2 * self.mdp.most_successors + 4) * UNIT
        rounding_intervals(prices, sizes, factor, WIDE, lowest, highest, wide)
        return lowest, highest, wide

    def read(self, loss: FloatArray) -> Reading:
        """Read one loss [H, S, A] of numbers, or inf, whose sums over a horizon are finite."""
        return self.read_all(loss[None])[0]

    def room(self, n_losses: int) -> FloatArray:
        """Memory for the readings of so many losses, to be used again: new memory costs more than reading."""
        from normalfan._kernels.buffers import LANES

        return np.zeros((-(-n_losses // LANES), 4 * LANES, math.prod(self.mdp.shape)))

    def read_all(self, losses: FloatArray, room: FloatArray | None = None) -> list[Reading]:
        """Read losses [N, H, S, A]; the readings are views of the room, if there is one."""
        from normalfan._kernels.buffers import LANES

        readings: list[Reading] = []
        for group, found in enumerate(self.room(len(losses)) if room is None else room):
            part = losses[group * LANES : (group + 1) * LANES]
            if len(part):
                readings += self._read_in_pairs(np.ascontiguousarray(part, np.float64), found)
        for t, one in enumerate(readings if self.exactly else ()):
            if ((one.marks if self.everywhere else one.faces) == DOUBTFUL).any():
                readings[t] = self._read_exactly(losses[t].astype(np.float64, copy=False))
        return readings

    def _read_exactly(self, loss: FloatArray) -> Reading:
        exact = exact_advantages(self.mdp, loss)
        marks = np.where(exact == 0, SURE, 0).astype(np.int8)
        return Reading(exact, exact * (1 - 2 * UNIT), exact * (1 + 2 * UNIT), marks, self, exactly=True)

    def _read_in_pairs(self, losses: FloatArray, room: FloatArray) -> list[Reading]:
        from normalfan._kernels.reading import read_days

        exponents = _exponents(losses)
        scaled = np.ldexp(losses, -exponents[:, None, None, None]) if exponents.any() else losses
        found = read_days(
            scaled, np.ldexp(self.ties.absolute, -exponents), (self.ties.relative, self.ties.band), room,
            self.states, self.tables.per_step, *self.tables.rows, self.sums, self.tables.twins,
        )  # fmt: skip
        readings = []
        for exponent, advantages, low, high, numbers in zip(exponents.tolist(), *found, strict=True):
            marks = numbers.astype(np.int8)
            settled = np.ldexp(advantages, exponent) if exponent else advantages
            readings.append(Reading(settled, low, high, marks, self, exponent))
        return readings

    def follow(self, marks: Marks) -> Marks:
        """The marks [H, S, A] where marked actions lead from the start."""
        from normalfan._kernels.enclosing import follow_marks

        faces = np.zeros_like(marks)
        room = np.empty((2, self.mdp.n_states), dtype=np.int8)
        follow_marks(marks, self.mdp.initial, self.tables.per_step, *self.tables.rows[:2], room, faces)
        return faces

    def enclose(self, old: Reading, new: Reading, price: float) -> tuple[float, float, bool]:
        """The least and the largest price that a crossing may have, and whether it is ambiguous."""
        if old.is_sure and new.is_sure:
            # What the tie rule makes of the readings is right.
            return price * (1.0 - self.rounding), price * (1.0 + self.rounding), False
        from normalfan._kernels.enclosing import extreme_prices

        low, high = extreme_prices(
            old.marks, new.low, new.high, self.mdp.initial, self.tables.per_step, *self.tables.rows,
            np.empty(old.marks.shape[:2], dtype=bool), np.zeros((2, self.mdp.n_states, 2)),
        )  # fmt: skip
        differ = high - low > 2 * self.rounding * high
        return (
            min(_outward(low * (1.0 - self.rounding), new.exponent, 0.0), price),
            max(_outward(high * (1.0 + self.rounding), new.exponent, math.inf), price),
            differ or _crossing_is_open(old.faces, new.faces),
        )


def _crossing_is_open(old: Marks, new: Marks) -> bool:
    """Whether the face may have moved and may have stayed, depending on the doubtful actions."""
    if ((old == SURE) & (new == 0)).any() or ((new == SURE) & (old == 0)).any():
        return False  # it moved, whichever way
    return bool((old == DOUBTFUL).any() or (new == DOUBTFUL).any())


def _exponents(losses: FloatArray) -> IntArray:
    """[n]: losses near the ends of the range of floats are read in other units, which costs no digit."""
    flat = losses.reshape(len(losses), -1)
    largest = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    if np.isinf(largest).any():
        largest = np.where(np.isinf(flat), 0.0, np.abs(flat)).max(axis=1)
    return np.where(largest > 2.0**1000, 8, np.where((largest > 0.0) & (largest < 2.0**-400), -600, 0))


def _outward(number: float, exponent: int, towards: float) -> float:
    scaled = math.ldexp(number, exponent)
    return scaled if exponent == 0 or scaled == towards else math.nextafter(scaled, towards)
