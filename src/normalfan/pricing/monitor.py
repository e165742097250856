"""A stream watched one loss at a time.

The last round and the new one are a block of the sweep of `price_stream`, in which no round's arithmetic
depends on its neighbours. A snapshot holds the last loss, the counters, the tie rule and the last problem,
with a checksum, and is written by atomic rename: a reader finds the old one or the new one, never a half.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from normalfan.array_files import unpack_arrays, write_npz
from normalfan.errors import InputError
from normalfan.geometry.change import check_same_spaces
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.motion import CostliestCell, motion_of
from normalfan.pricing.moving import EVERY_DETAIL, MovingPricer
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP, mdp_from_arrays, mdp_to_arrays
from normalfan.text import counted, html_table, number

SNAPSHOT_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class MovedRound:
    """What a change of the dynamics did: the numbers of the round in a `PricedMotion`, in the singular."""

    until_surprise: float  # the price, if plans are made anew at the first unforeseen move
    market_alone: float  # the price, had only the loss moved
    dynamics_alone: float  # the price, had only the dynamics moved
    interaction: float  # the rest of the price, of either sign
    transition_variation: float  # how far the transitions moved, from 0 to 2H
    effective_variation_l1: float  # how far both moved, as a loss in the old dynamics
    effective_variation_l2: float  # likewise
    effective_variation_linf: float  # likewise


@dataclass(frozen=True, slots=True)
class PricedRound:
    """One priced round: what `Monitor.update` returns, and a record of `normalfan watch`.

    The numbers are those of the same round in a `PricedMotion`, under the same names in the singular.

    Examples
    --------
    >>> import normalfan as nf
    >>> monitor = nf.Monitor(nf.MDP([[0, 0]], initial=0, horizon=1))
    >>> priced = monitor.update([[[0.0, 1.0]]])
    >>> priced.round, priced.price, priced.by_step
    (0, 0.0, (0.0,))
    """

    round: int  # its number, from 0
    price: float  # Γ_t
    value: float  # J*_t
    crossed: bool  # the optimal face is not the previous one
    dimension: int  # of the optimal face
    variation_l1: float  # how far the loss moved since the round before
    variation_l2: float  # likewise
    variation_linf: float  # likewise
    margin: float  # of the cone; infinite if no plan is outside the face
    margin_exact: bool  # or a lower bound
    advantage_gap: float  # the smallest advantage of an action that the face leaves out
    ambiguous: bool  # the price or the crossing depends on a near-tie
    lowest_price: float  # the exact price is at least this
    highest_price: float  # and at most this
    decided_exactly: bool  # the near-tie was decided in rational arithmetic
    by_step: tuple[float, ...] = field(repr=False)  # [H]: the part of the price paid at each step
    costliest: CostliestCell | None = field(repr=False)  # where most of it is paid
    moved: MovedRound | None = None  # what is told of a change of the dynamics; None if there was none

    def _repr_html_(self) -> str:
        row = (self.round, number(self.price), number(self.value), "yes" if self.crossed else "no")
        return html_table("One priced round", ("round", "price", "value", "crossed"), [row])


class Monitor:
    """Prices a stream as it arrives; can be saved and resumed at any round.

    Parameters
    ----------
    mdp : MDP
        The problem whose losses move.
    ties : TieRule
        Which differences count as none.
    exact_when_ambiguous : bool
        Decide rounds that depend on a near-tie in rational arithmetic (slow).

    Examples
    --------
    >>> import normalfan as nf
    >>> monitor = nf.Monitor(nf.MDP([[0, 0]], initial=0, horizon=1))
    >>> monitor.update([[[0.0, 1.0]]]).price, monitor.update([[[2.0, 1.5]]]).price
    (0.0, 0.5)
    >>> monitor
    Monitor: 2 rounds, total 0.5
    """

    def __init__(self, mdp: MDP, *, ties: TieRule = DEFAULT_TIES, exact_when_ambiguous: bool = False) -> None:
        self.mdp = mdp
        self.rounds = 0
        self._sum = Fraction(0)  # exact, so that the total is that of the batch to the last bit
        self._previous: FloatArray | None = None
        self._moving = MovingPricer(
            ties=ties, details=EVERY_DETAIL, exact_when_ambiguous=exact_when_ambiguous
        )
        self._problems = WeakValueDictionary({mdp.fingerprint: mdp})  # so that equal ones are one object
        self.pricer = self._moving.dynamics(mdp)

    @property
    def total(self) -> float:
        """The prices of all rounds so far, added up."""
        return float(self._sum)

    @property
    def last_loss(self) -> FloatArray | None:
        """[H, S, A]: the loss whose face the next round is priced against; None before the first."""
        return self._previous

    def __repr__(self) -> str:
        return f"Monitor: {counted(self.rounds, 'round')}, total {number(self.total)}"

    def update(
        self, loss: npt.ArrayLike, *, number: int | None = None, mdp: MDP | None = None
    ) -> PricedRound:
        """Price the next round: the same numbers as `price_stream` gives, to the bit.

        `number` is what the round is called, if not counted from 0. `mdp` are its dynamics, and those of the
        rounds to come, if they move. What is refused leaves the monitor as it was.
        """
        called = self.rounds if number is None else number
        problem = self.mdp if mdp is None else mdp
        check_same_spaces(self.mdp, problem, f"mdp of round {called}")
        fresh = as_loss(problem, loss, name=f"loss of round {called}")
        ((priced, _),) = self.update_block([called], [np.array(fresh)], [problem])
        return priced

    def update_block(
        self, numbers: Sequence[int], losses: Sequence[FloatArray], problems: Sequence[MDP] | None = None
    ) -> list[tuple[PricedRound, float]]:
        """Price rounds with these numbers and checked losses, each with the total up to it; all, or none.

        The losses must not change afterwards. A refusal that comes from a block of several is not exact about
        which of them it is. `problems` are the dynamics of each, if they move.
        """
        known = [] if self._previous is None else [self._previous]
        given = problems or [self.mdp] * len(losses)
        own = [self._problems.setdefault(problem.fingerprint, problem) for problem in given]
        before = self.mdp if known else own[0]
        changed = [one is not last for last, one in pairwise([before, *own])]
        place = (numbers[0] - len(known), len(known), np.stack([*known, *losses]))
        if any(changed):
            told = self._moving(*place, [before] * len(known) + own)
            motion = motion_of(told, np.cumsum(changed), labels=before.labels)
        else:
            motion = motion_of(self._moving.dynamics(before)(*place), None, labels=before.labels)
        columns = {name: column.tolist() for name, column in motion.columns().items() if name != "dynamics"}
        priced, exact = [], self._sum
        for t, (called, by_step) in enumerate(zip(numbers, motion.by_step.tolist(), strict=True)):
            row = {name: column[t] for name, column in columns.items()}
            if motion.moved is not None:
                moved = MovedRound(**{one.name: row.pop(one.name) for one in fields(MovedRound)})
                row["moved"] = moved if changed[t] else None
            exact += Fraction(row["price"])
            if exact > sys.float_info.max:
                raise InputError(
                    f"prices up to round {called} add up beyond the range of float64, but their total must "
                    f"be finite: rescale the losses."
                )
            row |= {"by_step": tuple(by_step), "costliest": motion.costliest_cell(t)}
            priced.append((PricedRound(called, **row), float(exact)))
        self._previous, self._sum, self.rounds = losses[-1], exact, self.rounds + len(losses)
        self.mdp, self.pricer = own[-1], self._moving.dynamics(own[-1])
        return priced

    def save(self, path: str | Path, *, with_problem: bool = True) -> None:
        """Write a snapshot, by atomic rename; without the problem it is small, and `load` needs it."""
        arrays = self.to_arrays()
        if with_problem:
            arrays |= {f"problem_{name}": a for name, a in mdp_to_arrays(self.mdp).items()}
        write_npz(arrays, Path(path))

    @classmethod
    def load(cls, path: str | Path, mdp: MDP | None = None) -> Monitor:
        """Go on where the monitor stopped that wrote a snapshot; give `mdp` if that is not in it."""
        arrays = read_snapshot(path)
        return cls.from_arrays(arrays, _stored_problem(path, arrays) if mdp is None else mdp, path)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot stores, by name, without the problem."""
        ties = self.pricer.ties
        arrays: dict[str, npt.NDArray[Any]] = {
            "snapshot_schema": np.array(SNAPSHOT_SCHEMA),
            "fingerprint": np.array(self.mdp.fingerprint),
            "rounds": np.array(self.rounds),
            "sum": np.array(str(self._sum)),
            "ties": np.array([ties.absolute, ties.relative, ties.band]),
            "exact_when_ambiguous": np.array(self.pricer.exact_when_ambiguous),
        }
        return arrays if self._previous is None else arrays | {"previous": self._previous}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], mdp: MDP, source: str | Path) -> Monitor:
        """Resume from what `to_arrays` gave; refusals call the arrays by the name of their file, `source`."""
        fingerprint = stored(arrays, "fingerprint", "U", source)
        if fingerprint != mdp.fingerprint:
            raise InputError(
                f"{source} is a snapshot of another problem (its fingerprint begins {fingerprint[:12]}, not "
                f"{mdp.fingerprint[:12]}), but a monitor resumes only its own: pass the problem it was taken "
                f"of, or start a new monitor."
            )
        ties = TieRule(*stored(arrays, "ties", "f", source, length=3))
        exactly = stored(arrays, "exact_when_ambiguous", "b", source)
        monitor = cls(mdp, ties=ties, exact_when_ambiguous=exactly)
        monitor.rounds = stored_count(arrays, "rounds", source)
        monitor._sum = stored_sum(arrays, source)
        if "previous" in arrays:
            monitor._previous = as_loss(mdp, arrays["previous"], name=f"the last loss in {source}")
        return monitor


def read_snapshot(path: str | Path) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of a snapshot by name, with whatever else was stored beside them."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened ({error.strerror}), but must be a file written by Monitor.save: "
            f"check the path, or start a new monitor."
        ) from error
    arrays = unpack_arrays(content, str(path))
    if np.array_equal(arrays.get("snapshot_schema", 0), SNAPSHOT_SCHEMA):
        return arrays
    raise InputError(
        f"{path} is not a snapshot of schema {SNAPSHOT_SCHEMA}, but this version reads no other: "
        f"load it with the version of normalfan that wrote it, or start a new monitor."
    )


def stored(
    arrays: Mapping[str, npt.NDArray[Any]],
    name: str,
    kinds: str,
    source: str | Path,
    length: int | None = None,
) -> Any:
    """One field of a snapshot, as Python's own: a single number or text, or a list of `length`."""
    array, shape = arrays.get(name), () if length is None else (length,)
    if array is None or array.dtype.kind not in kinds or array.shape != shape:
        found = "missing" if array is None else f"of type {array.dtype} and shape {list(array.shape)}"
        raise InputError(
            f"{name} in {source} is {found}, but must be as Monitor.save writes it: "
            f"take an undamaged copy, or start a new monitor."
        )
    return array.tolist()


def stored_count(arrays: Mapping[str, npt.NDArray[Any]], name: str, source: str | Path) -> int:
    count: int = stored(arrays, name, "iu", source)
    if count < 0:
        raise InputError(
            f"{name} in {source} is {count}, but nothing is counted below 0: take an undamaged copy."
        )
    return count


def stored_sum(arrays: Mapping[str, npt.NDArray[Any]], source: str | Path) -> Fraction:
    """The sum of all prices, exact."""
    text = stored(arrays, "sum", "U", source)
    try:
        total = Fraction(text)
        if 0 <= float(total) < math.inf:
            return total
    except (ValueError, ArithmeticError):
        pass
    raise InputError(
        f"sum in {source} is {text[:40]!r}, but must be a fraction that is not below 0: "
        f"take an undamaged copy."
    )


def _stored_problem(path: str | Path, arrays: Mapping[str, npt.NDArray[Any]]) -> MDP:
    prefix = "problem_"
    problem = {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
    if not problem:
        raise InputError(
            f"{path} was saved without its problem, but a monitor needs one: "
            f"pass it, as in Monitor.load(path, mdp)."
        )
    try:
        return mdp_from_arrays(problem)
    except (LookupError, TypeError) as error:
        raise InputError(
            f"the problem in {path} is not complete ({error}), but must be as Monitor.save writes it: "
            f"pass the problem, as in Monitor.load(path, mdp)."
        ) from error
