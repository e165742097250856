"""Losses for one state and K arms: four ways for a loss to move through the fan of a simplex.

The normal cone of arm a is the set of losses under which a is cheapest. In every regime the best arm costs 0.

    within_cone   the best arm is always the same; the others wander in [γ, 1]: motion without price
    wall          two arms lie close and change places; the loser costs the distance |d| ≤ γ of a slow walk d,
                  so that each crossing is cheap; the others wander in [γ, 1], slowly unless told otherwise
    crossings     now and then another arm becomes best, anyone, and all the others cost at least γ
    rotating      the same, but the best arm moves on to its neighbour, at regular intervals

How a loss wanders within a cone (`drift`), with s its `stride`:

    walk     every arm takes a Gaussian step of standard deviation s, reflected at the ends of [γ, 1]
    step     all arms together take a step of Euclidean length s, reflected likewise
    redraw   every arm is drawn again, uniformly from [γ, 1] (no stride)
    offset   the arms keep their distances and a common offset takes Gaussian steps; the best arm costs it too

    >>> mdp, losses = crossings(3, 4, 0.25, rate=1.0, rng=np.random.default_rng(0))
    >>> losses[:, 0, 0].round(2)
    array([[0.  , 0.7 , 0.8 , 0.66],
           [0.95, 0.  , 0.25, 0.89],
           [0.28, 0.8 , 0.  , 0.9 ]])
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import InputError, check_choice
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan_paper.environments.constructions import Instance, one_state

DriftKind: TypeAlias = Literal["walk", "step", "redraw", "offset"]
Between: TypeAlias = Literal["held", "walk", "redrawn"]

WALL_STRIDE = 0.1
"""The steps of the walk between the two arms of `wall`, and of its other arms if held, in units of γ."""


def within_cone(
    rounds: int,
    arms: int,
    gamma: float,
    *,
    rng: np.random.Generator,
    drift: DriftKind = "walk",
    stride: float | None = None,
) -> Instance:
    """A loss that never leaves the cone of one arm; `stride` is γ unless given."""
    _check(arms, gamma)
    losses = np.zeros((rounds, arms))
    best = int(rng.integers(arms))
    others = np.arange(arms) != best
    losses[:, others] = _drifting(rounds, arms - 1, gamma, drift, gamma if stride is None else stride, rng)
    if drift == "offset":
        losses += np.cumsum(_gaussian_steps(rounds, 1, gamma if stride is None else stride, rng), axis=0)
    return _instance(losses)


def wall(
    rounds: int,
    arms: int,
    gamma: float,
    *,
    rng: np.random.Generator,
    stride: float | None = None,
    others: Between = "held",
) -> Instance:
    """A loss that drifts back and forth through one wall; `stride` is γ/10 unless given.

    The `others` take steps as small ("held"), steps of deviation γ ("walk"), or are redrawn.
    """
    _check(arms, gamma)
    step = WALL_STRIDE * gamma if stride is None else stride
    drift: DriftKind = "redraw" if _known_between(others) == "redrawn" else "walk"
    losses = _drifting(rounds, arms, gamma, drift, gamma if others == "walk" else step, rng)
    one, other = rng.permutation(arms)[:2]
    steps = _gaussian_steps(rounds, 1, step, rng)[:, 0]
    steps[0] = rng.uniform(-gamma, gamma)
    distance = reflected(np.cumsum(steps), -gamma, gamma)
    losses[:, one] = np.maximum(distance, 0.0)
    losses[:, other] = np.maximum(-distance, 0.0)
    return _instance(losses)


def crossings(
    rounds: int,
    arms: int,
    gamma: float,
    *,
    rate: float,
    rng: np.random.Generator,
    between: Between = "held",
) -> Instance:
    """Another arm, drawn from all others, becomes best with probability `rate` a round.

    `between` crossings the loss is held, or its costs take Gaussian steps of standard deviation γ or are
    redrawn, in every round.
    """
    _check(arms, gamma, rate)
    crosses = rng.random(rounds) < rate
    crosses[0] = False
    jumps = np.where(crosses, rng.integers(1, arms, size=rounds), 0)
    return _around(np.cumsum(jumps) % arms, crosses, arms, gamma, between, rng)


def rotating(
    rounds: int,
    arms: int,
    gamma: float,
    *,
    rate: float,
    rng: np.random.Generator,
    between: Between = "held",
) -> Instance:
    """The next arm becomes best every 1/`rate` rounds."""
    _check(arms, gamma, rate)
    turns = np.floor(np.arange(rounds) * rate).astype(np.int64)
    crosses = np.diff(turns, prepend=0) > 0
    return _around((int(rng.integers(arms)) + turns) % arms, crosses, arms, gamma, between, rng)


def reflected(walk: FloatArray, low: float, high: float) -> FloatArray:
    """An unbounded walk folded into [low, high] as by mirrors at both ends; no step gets longer."""
    width = high - low
    return np.asarray(high - np.abs((walk - low) % (2 * width) - width))


def _drifting(
    rounds: int, arms: int, gamma: float, drift: DriftKind, stride: float, rng: np.random.Generator
) -> FloatArray:
    """Costs [T, arms] in [γ, 1]."""
    if drift == "redraw":
        return rng.uniform(gamma, 1.0, size=(rounds, arms))
    start = rng.uniform(gamma, 1.0, size=arms)
    if drift == "offset":
        return np.tile(start, (rounds, 1))
    if drift not in ("walk", "step"):
        raise InputError(f'drift is {drift!r}, but must be "walk", "step", "redraw" or "offset": choose one.')
    steps = _gaussian_steps(rounds, arms, stride, rng)
    if drift == "step":
        lengths = np.sqrt(np.einsum("ta,ta->t", steps[1:], steps[1:]))
        steps[1:] *= stride / lengths[:, None]
    steps[0] = start
    return reflected(np.cumsum(steps, axis=0, out=steps), gamma, 1.0)


def _gaussian_steps(rounds: int, arms: int, stride: float, rng: np.random.Generator) -> FloatArray:
    steps = rng.standard_normal((rounds, arms))
    steps *= stride
    steps[0] = 0.0
    return steps


def _around(
    best: IntArray, crosses: BoolArray, arms: int, gamma: float, between: Between, rng: np.random.Generator
) -> Instance:
    """Losses that are 0 at the best arm [T] and in [γ, 1] elsewhere: drawn at crossings, or always moving."""
    rounds = len(best)
    if _known_between(between) == "walk":
        losses = _drifting(rounds, arms, gamma, "walk", gamma, rng)
    else:
        draws = np.cumsum(crosses) if between == "held" else np.arange(rounds)
        losses = rng.uniform(gamma, 1.0, size=(int(draws[-1]) + 1, arms))[draws]
    losses[np.arange(rounds), best] = 0.0
    return _instance(losses)


def _known_between(between: Between) -> Between:
    check_choice("between", between, get_args(Between))
    return between


def _instance(losses: FloatArray) -> Instance:
    rounds, arms = losses.shape
    return Instance(one_state(1, arms), losses.reshape(rounds, 1, 1, arms))


def _check(arms: int, gamma: float, rate: float = 0.0) -> None:
    if arms < 2:
        raise InputError(f"arms is {arms}, but a loss needs 2 at least to have walls: choose more.")
    if not 0 < gamma < 1:
        raise InputError(f"gamma is {gamma}, but must lie between 0 and 1: it is the least cost of an error.")
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate}, but must lie in [0, 1]: it is the share of rounds that cross.")
