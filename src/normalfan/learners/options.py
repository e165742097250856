"""The numbers a learner is built with: step sizes, floors and their checks.

    >>> step_size(0.3, round=7), step_size(lambda t: 1 / (1 + t), round=3)
    (0.3, 0.25)

A floor f > 0 mixes the stored policy with the uniform one after every step, π ← (1 − A·f) π + f. It decides
comparisons between learners: docs/details/learners.md says how much. The paper names none, so it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import TypeAlias

from normalfan.errors import InputError
from normalfan.problem.mdp import MDP

StepSize: TypeAlias = float | Callable[[int], float]
"""A constant step size, or a schedule: the step size of each round, counted from 0."""

DEFAULT_ETA = 0.3
"""Inside both of the paper's sweeps, 0.04 to 1 and 0.04 to 0.6: a place to start, not a recommendation."""


def step_size(eta: StepSize, round: int, *, may_be_infinite: bool = False) -> float:
    name, number = (f"eta({round})", eta(round)) if callable(eta) else ("eta", eta)
    return check_constant_step(name, number, may_be_infinite=may_be_infinite)


def check_step_size(eta: StepSize, *, may_be_infinite: bool = False) -> StepSize:
    """Refuse a bad constant at once; what a schedule says is checked in the round it is asked."""
    return eta if callable(eta) else check_constant_step("eta", eta, may_be_infinite=may_be_infinite)


def check_constant_step(name: str, eta: float, *, may_be_infinite: bool = False) -> float:
    tip = "for losses around 1, try 0.04 to 1"
    return check_positive(name, eta, may_be_infinite=may_be_infinite, remedy=tip)


def check_positive(
    name: str, number: float, *, may_be_infinite: bool = False, remedy: str = "leave it out for the default"
) -> float:
    if not number > 0 or (math.isinf(number) and not may_be_infinite):
        rule = "positive" if may_be_infinite else "positive and finite"
        raise InputError(f"{name} is {number}, but must be {rule}: {remedy}.")
    return float(number)


def check_not_negative(name: str, number: float, *, may_be_infinite: bool = False) -> float:
    if not number >= 0 or (math.isinf(number) and not may_be_infinite):
        rule = "at least 0" if may_be_infinite else "finite and at least 0"
        raise InputError(f"{name} is {number}, but must be {rule}: leave it out for the default.")
    return float(number)


def check_floor(mdp: MDP, floor: float) -> float:
    """A floor f for every action needs A·f < 1."""
    if not 0 <= floor < 1 / mdp.n_actions:
        raise InputError(
            f"floor is {floor}, but must be at least 0 and below {1 / mdp.n_actions:g} "
            f"(1 over {mdp.n_actions} actions): 0 switches it off."
        )
    return float(floor)


def check_one_state(name: str, mdp: MDP) -> MDP:
    if mdp.shape[:2] != (1, 1):
        raise InputError(
            f"{name} was given a problem of {mdp.horizon} steps and {mdp.n_states} states, but must have one "
            f"of each: use MirrorDescent, which is the same update in every state and step."
        )
    return mdp


class Described:
    """Has a short `repr`: the parameters of its constructor, without the problem."""

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in signature(type(self)).parameters if name != "mdp"}
        shown = (f"{name}={getattr(value, '__name__', repr(value))}" for name, value in values.items())
        return f"{type(self).__name__}({', '.join(shown)})"
