"""A decision problem and two losses as rationals, in nothing but standard-library types.

It holds the data themselves, so that a proof can be checked years later without the arrays it came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from normalfan.exact.rational_json import canonical_text

Row: TypeAlias = tuple[tuple[int, Fraction], ...]  # (next state, probability > 0), by state
Kernel: TypeAlias = tuple[Row, ...]  # [S·A], row s·A + a
Loss: TypeAlias = tuple[tuple[tuple[Fraction, ...], ...], ...]  # [H][S][A]


@dataclass(frozen=True)
class ExactProblem:
    """The dynamics, the start and the two losses of a crossing, in rationals."""

    horizon: int  # H
    n_states: int  # S
    n_actions: int  # A
    max_denominator: int | None  # how floats were read; None: at their exact binary value
    initial: tuple[Fraction, ...] = field(repr=False)  # [S]
    kernels: tuple[Kernel, ...] = field(repr=False)  # [H], or [1] if every step has the same
    previous_loss: Loss = field(repr=False)  # [H][S][A]
    loss: Loss = field(repr=False)  # [H][S][A]

    def digest(self) -> str:
        """The SHA-256 of the problem's canonical text, in hexadecimal."""
        return hashlib.sha256(canonical_text(self).encode("ascii")).hexdigest()


def malformed_problem(problem: ExactProblem) -> Iterator[str]:
    """Say what is wrong with the sizes and types of a problem; its numbers are checked elsewhere."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    for name, size in (("horizon", H), ("n_states", S), ("n_actions", A)):
        if type(size) is not int or size < 1:
            yield f"{name} is not a positive integer"
    limit = problem.max_denominator
    if limit is not None and (type(limit) is not int or limit < 1):
        yield "max_denominator is neither None nor a positive integer"
    if type(problem.kernels) is not tuple or len(problem.kernels) not in (1, H):
        yield "kernels holds neither one kernel nor one for each step"
    yield from misfits("initial", problem.initial, (S,), is_fraction)
    shape = (len(problem.kernels), S * A)
    yield from misfits("kernels", problem.kernels, shape, lambda row: _is_row(row, S))
    yield from misfits("previous_loss", problem.previous_loss, (H, S, A), is_fraction)
    yield from misfits("loss", problem.loss, (H, S, A), is_fraction)


def misfits(
    name: str,
    value: object,
    shape: tuple[int, ...],
    is_item: Callable[[object], bool],
    place: tuple[int, ...] = (),
) -> Iterator[str]:
    """Say where nested tuples depart from a shape or hold something that is no proper item."""
    if not shape:
        if not is_item(value):
            yield f"{name} holds a wrong entry at index {list(place)}"
    elif type(value) is not tuple or len(value) != shape[0]:
        yield f"{name} is not a tuple of {shape[0]} at index {list(place)}"
    else:
        for i, item in enumerate(value):
            yield from misfits(name, item, shape[1:], is_item, (*place, i))


def is_fraction(value: object) -> bool:
    """Whether a value is exact: a float that slips in would compare equal and prove nothing."""
    return type(value) is Fraction


def _is_row(row: object, n_states: int) -> bool:
    if type(row) is not tuple or any(type(e) is not tuple or len(e) != 2 for e in row):
        return False
    states = [state for state, _ in row]
    if any(type(state) is not int or not 0 <= state < n_states for state in states):
        return False
    return states == sorted(set(states)) and all(is_fraction(p) for _, p in row)
