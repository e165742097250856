"""What can go wrong, in one place.

ValueError
└── InputError        an input breaks a rule
RuntimeError
└── WorkStopped       long work cannot go on, through no fault of its input
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from numbers import Integral, Real

from normalfan.text import printable


class InputError(ValueError):
    """An input breaks a rule; the message says which, where, and what to do, in one sentence.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.MDP([[0, 5]], initial=0, horizon=1)
    Traceback (most recent call last):
    normalfan.errors.InputError: transitions[0, 1] is 5, but a next state must be an index from 0 to 0: check
    the numbering of the states.
    """

    def __str__(self) -> str:
        return printable(super().__str__())  # names in it come from files: no line break, no control code


class WorkStopped(RuntimeError):  # noqa: N818  a full disk is nobody's error
    """Long work cannot go on; the message says what happened and how to continue. Finished parts stay."""


def check_installed(package: str, reason: str, extra: str) -> None:
    """Refuse to go on without an optional package; `reason` is a clause such as "a figure needs it"."""
    if find_spec(package) is None:
        raise InputError(f"{package} is not installed, but {reason}: pip install 'normalfan[{extra}]'.")


def check_choice(name: str, given: object, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of `choices`."""
    if given not in choices:
        raise InputError(f"{name} is {given!r}, but must be one of {', '.join(choices)}: choose one of them.")


def check_whole(name: str, given: object, remedy: str, *, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(given, bool) or not isinstance(given, Integral) or given < least:
        raise InputError(f"{name} is {given!r}, but must be a whole number of at least {least}: {remedy}.")


def check_number(
    name: str,
    given: float,
    remedy: str = "leave it out for the default",
    *,
    least: float = 0.0,
    positive: bool = False,
    may_be_infinite: bool = False,
) -> float:
    """Refuse what is not a number of at least `least`, or positive; or infinite, unless it may be."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    is_infinite = given == math.inf and not may_be_infinite
    if not is_number or is_infinite or not (given > 0 if positive else given >= least):
        rule = "positive" if positive else f"at least {least:g}"
        finite = "" if may_be_infinite else "finite and "
        raise InputError(f"{name} is {given!r}, but must be a number, {finite}{rule}: {remedy}.")
    return float(given)
