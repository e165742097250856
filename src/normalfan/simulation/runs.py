"""Runs that advance together: what each learner of a sweep would have paid, round by round.

    simulate_hedge             w_{t+1}(a) ∝ w_t(a) exp(−η ℓ_t(a)),                       pays ⟨w_t, ℓ_t⟩
    simulate_mirror_descent    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η Q^{π_t}_t(s,a) − λ·1{a ∉ near(h,s)}),
                               near(h,s) = {a : Â_h(s,a) ≤ threshold},                   pays J_t(π_t)

are the learners `Hedge`, `MirrorDescent` and `ThresholdedMirrorDescent` (constant step size, no floor, the
last loss as model, the default tie rule), and give what these give one at a time, up to rounding in the last
digits. They are here because a sweep runs the same learner tens of times on the same losses.

Layout. A run is a lane of vector registers and the runs are the contiguous axis of everything that is kept:
eight of them take one pass over the losses, and no lane ever waits for another. The axis is padded to whole
lanes with copies of the last setting; what those pay is dropped. Only states that some policy reaches are
kept. Threads share out the lanes. A lane holds the same bits whatever runs beside it.

    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> simulate_hedge(arms, losses, etas=[np.log(3), np.log(9)]).round(3)
    array([[0.5  , 0.25 , 0.9  ],
           [0.5  , 0.1  , 0.988]])

    >>> corridor = MDP([[0, 1], [0, 2], [1, 2]], initial=1, horizon=2)
    >>> losses = np.zeros((3, *corridor.shape))
    >>> losses[..., 0] = 1.0                                                # going left is dear
    >>> settings = [MirrorSetting(eta=1.0), MirrorSetting(eta=1.0, threshold=0.1, penalty=0.7)]
    >>> simulate_mirror_descent(corridor, losses, settings).round(3)
    array([[1.   , 0.538, 0.238],
           [1.   , 0.309, 0.065]])
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.learners.options import check_not_negative
from normalfan.pricing.sweeps import reachable_states
from normalfan.problem.arrays import FloatArray, check_finite, read_numbers, read_only
from normalfan.problem.losses import as_stream
from normalfan.problem.mdp import MDP
from normalfan.problem.transitions import Deterministic


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """One run of mirror descent; `ThresholdedMirrorDescent` if the threshold is finite."""

    eta: float
    threshold: float = math.inf
    penalty: float = 0.0
    penalty_inside_step: bool = False

    def __post_init__(self) -> None:
        _check_step_size("MirrorSetting.eta", self.eta)
        check_not_negative("MirrorSetting.threshold", self.threshold, may_be_infinite=True)
        check_not_negative("MirrorSetting.penalty", self.penalty)

    @property
    def charge(self) -> float:
        """What an action outside the near set loses in log-odds."""
        return self.eta * self.penalty if self.penalty_inside_step else self.penalty


def simulate_hedge(mdp: MDP, losses: Any, etas: Sequence[float], *, threads: int = 1) -> FloatArray:
    """What Hedge pays on one state with each of the step sizes: [n_runs, T].

    `losses`: [T, 1, 1, A] or a loss stream, shared by all runs; or an array [n_runs, T, 1, 1, A], for each
    run its own (seeds). To cross settings with long shared streams, call once a stream.
    """
    from normalfan._kernels import simulate

    if mdp.shape[:2] != (1, 1):
        raise InputError(
            f"simulate_hedge was given a problem of {mdp.horizon} steps and {mdp.n_states} states, but must "
            f"have one of each: use simulate_mirror_descent, the same update in every state and step."
        )
    steps = np.array([_check_step_size(f"etas[{i}]", eta) for i, eta in enumerate(etas)])
    if np.ndim(losses) == 5:
        streams = _own_streams(mdp, losses, len(steps))[:, :, 0, 0]

        def run(part: slice) -> FloatArray:
            return simulate.simulate_hedge(streams[part], steps[part])
    else:
        shared = _whole_stream(mdp, losses)[:, 0, 0]

        def run(part: slice) -> FloatArray:
            return simulate.simulate_hedge(shared, steps[part])

    return _in_parts(run, len(steps), simulate.LANES, threads)


def simulate_mirror_descent(
    mdp: MDP, losses: Any, settings: Sequence[MirrorSetting], *, threads: int = 1
) -> FloatArray:
    """What mirror descent pays with each of the settings, in expectation: [n_settings, T].

    `losses`: [T, H, S, A] or a loss stream, shared by all runs. The transitions must be deterministic.
    """
    from normalfan._kernels import simulate

    transitions = mdp.transitions
    if not isinstance(transitions, Deterministic):
        raise InputError(
            f"simulate_mirror_descent was given {type(transitions).__name__.lower()} transitions, but must "
            f"have deterministic ones: build the MDP from integer next states, or run the learners singly."
        )
    rounds = _whole_stream(mdp, losses)
    states = reachable_states(mdp)
    table = np.array([(run.eta, run.threshold, run.charge) for run in settings], dtype=np.float64)
    etas, thresholds, charges = table.reshape(-1, 3).T

    ties = (DEFAULT_TIES.absolute, DEFAULT_TIES.relative)

    def run(part: slice) -> FloatArray:
        runs = (etas[part], thresholds[part], charges[part])
        return simulate.simulate_mirror_descent(rounds, transitions.nexts, states, mdp.initial, runs, ties)

    return _in_parts(run, len(settings), simulate.LANES, threads)


def _check_step_size(name: str, eta: float) -> float:
    if not (eta > 0 and math.isfinite(eta)):
        raise InputError(
            f"{name} is {eta}, but must be positive and finite: for losses around 1, try 0.04 to 1."
        )
    return float(eta)


def _whole_stream(mdp: MDP, losses: Any) -> FloatArray:
    """All rounds [T, H, S, A] of what a user may pass as losses, finite."""
    blocks = list(as_stream(losses).blocks(mdp.shape, rounds=sys.maxsize))
    if not blocks:
        raise InputError("losses hold no round, but a stream needs at least one: check the source.")
    check_finite("losses", blocks[0])
    return blocks[0]


def _own_streams(mdp: MDP, losses: Any, n_runs: int) -> FloatArray:
    """One stream for each run, [n_runs, T, 1, 1, A], finite."""
    numbers = read_numbers("losses", losses)
    if len(numbers) != n_runs or numbers.shape[1] < 1 or numbers.shape[2:] != mdp.shape:
        raise InputError(
            f"losses have shape {list(numbers.shape)}, but must be [{n_runs}, T, 1, 1, {mdp.n_actions}] with "
            f"a round at least: give one stream for each of the {n_runs} step sizes."
        )
    check_finite("losses", numbers)
    return numbers.astype(np.float64, copy=False)


def _in_parts(run: Callable[[slice], FloatArray], n_runs: int, lanes: int, threads: int) -> FloatArray:
    """The runs in as many parts of whole lanes as there are threads, one after another in the result."""
    if threads < 1:
        raise InputError(f"threads is {threads}, but must be at least 1: leave it out for one thread.")
    if n_runs < 1:
        raise InputError("settings hold no run, but a sweep needs at least one: give a step size or more.")
    size = -(-n_runs // (lanes * threads)) * lanes
    parts = [slice(start, min(start + size, n_runs)) for start in range(0, n_runs, size)]
    if len(parts) == 1:
        paid = np.ascontiguousarray(run(parts[0]))
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            paid = np.concatenate(list(pool.map(run, parts)))
    overflowed = ~np.isfinite(paid).all(axis=0)
    if overflowed.any():
        raise InputError(
            f"losses of round {int(overflowed.argmax())} or before add up beyond the range of float64, but "
            f"sums over a horizon and over rounds must be finite: rescale the losses."
        )
    return read_only(paid)
