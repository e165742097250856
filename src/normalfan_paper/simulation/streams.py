"""What every batched simulation does with its input: streams are read whole, runs shared out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.learners.learner import check_constant_step
from normalfan.problem.arrays import FloatArray, check_finite, read_numbers, read_only
from normalfan.problem.losses import Losses, as_stream
from normalfan.problem.mdp import MDP
from normalfan.problem.transitions import Deterministic

Part = TypeVar("Part")


def step_sizes(etas: Sequence[float]) -> FloatArray:
    """The step sizes of some runs, one each, all of them positive and finite."""
    return np.array([check_constant_step(f"etas[{i}]", eta) for i, eta in enumerate(etas)])


def deterministic(name: str, mdp: MDP) -> Deterministic:
    """The problem's transitions, refused if they involve chance."""
    transitions = mdp.transitions
    if not isinstance(transitions, Deterministic):
        raise InputError(
            f"{name} was given {type(transitions).__name__.lower()} transitions, but must "
            f"have deterministic ones: build the MDP from integer next states, or run the learners singly."
        )
    return transitions


def whole_stream(mdp: MDP, losses: Losses, name: str = "losses") -> FloatArray:
    """All rounds of any losses, finite: [T, H, S, A], or [T, 1, S, A] if all steps share them."""
    blocks = list(as_stream(losses).blocks(mdp.shape, rounds=sys.maxsize))
    if not blocks:
        raise InputError(f"{name} have no round, but a stream needs at least one: check the source.")
    rounds = blocks[0][:, :1] if blocks[0].strides[1] == 0 else blocks[0]
    check_finite(name, rounds)
    return rounds


def own_streams(mdp: MDP, losses: Losses, n_runs: int) -> FloatArray | None:
    """One stream a run, finite: [n_runs, T, H, S, A], or [n_runs, T, 1, S, A] if all steps share them.

    None if `losses` are no array with an axis of runs: then all runs share them.
    """
    array = cast("npt.ArrayLike", losses)  # of anything else NumPy makes an array without axes
    if np.ndim(array) != 5:
        return None
    numbers = read_numbers("losses", array)
    if len(numbers) != n_runs or numbers.shape[1] < 1 or numbers.shape[2:] != mdp.shape:
        shape = ", ".join(map(str, mdp.shape))
        raise InputError(
            f"losses have shape {list(numbers.shape)}, but must be [{n_runs}, T, {shape}] with "
            f"a round at least: give one stream for each of the {n_runs} runs."
        )
    streams = numbers[:, :, :1] if numbers.strides[2] == 0 else numbers
    check_finite("losses", streams)
    return streams.astype(np.float64, copy=False)


def in_parts(run: Callable[[slice], Part], n_runs: int, lanes: int, threads: int) -> list[Part]:
    """The runs in as many parts of whole lanes as there are threads, in order."""
    if threads < 1:
        raise InputError(f"threads is {threads}, but must be at least 1: leave it out for one thread.")
    if n_runs < 1:
        raise InputError("settings have no run, but a sweep needs at least one: give a step size or more.")
    size = -(-n_runs // (lanes * threads)) * lanes
    parts = [slice(start, min(start + size, n_runs)) for start in range(0, n_runs, size)]
    if len(parts) == 1:
        return [run(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(run, parts))


def checked_payments(paid: FloatArray) -> FloatArray:
    """What the runs paid, [n_runs, T], finite, contiguous and read-only."""
    overflowed = ~np.isfinite(paid).all(axis=0)
    if overflowed.any():
        raise InputError(
            f"losses of round {int(overflowed.argmax())} or before add up beyond the range of float64, but "
            f"sums over a horizon and over rounds must be finite: rescale the losses."
        )
    return read_only(np.ascontiguousarray(paid))
