"""Mirror descent, many settings at once: what each would have paid, round by round.

    π_{t+1}(a|s) ∝ π_t(a|s) exp(−η Q^{π_t}_t(s,a) − λ·1{a ∉ near(h,s)}),      pays J_t(π_t)
    near(h,s) = {a : A*_h(s,a) ≤ threshold}

are the learners `MirrorDescent`, `OptimisticMirrorDescent` and `ThresholdedMirrorDescent` (constant step
size, the last loss as model, the default tie rule), and give what these give one at a time, up to rounding
in the last digits; see `hedge_runs` for the layout. Only states that some policy reaches are kept.

Three things that the learners do not have. `driven_by="optimal"` puts the optimal advantages A*_t in the
place of Q^{π_t}, to ask what the values of the played policy are worth. `judged` are the losses that the
runs pay when those that they see are noisy. `record_mirror_descent` looks at every episode: where in the
horizon the regret falls (the performance-difference identity, J(π) − J* = Σ_h Σ_s d_h(s) Σ_a π(a|s)
A*_h(s,a)), and how much time is spent near the walls of the fan.

    >>> corridor = MDP([[0, 1], [0, 2], [1, 2]], initial=1, horizon=2)
    >>> losses = np.zeros((3, *corridor.shape))
    >>> losses[..., 0] = 1.0                                                # going left costs 1
    >>> settings = [MirrorSetting(eta=1.0), MirrorSetting(eta=1.0, threshold=0.1, penalty=0.7)]
    >>> simulate_mirror_descent(corridor, losses, settings).round(3)
    array([[1.   , 0.538, 0.238],
           [1.   , 0.309, 0.065]])
    >>> record_mirror_descent(corridor, losses, settings).regret_by_step[1].round(3)
    array([[0.5  , 0.5  ],
           [0.154, 0.154],
           [0.032, 0.032]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from normalfan.errors import InputError, check_number
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.learners.learner import check_constant_step, check_floor
from normalfan.pricing.kernels import reachable_states
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan_paper.simulation.streams import (
    checked_payments,
    deterministic,
    in_parts,
    whole_stream,
)

Driver: TypeAlias = Literal["played", "optimal"]

WALL = 0.1
"""An action whose optimal advantage is below this, yet positive, lies near a wall."""


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """One run of mirror descent; thresholded if the threshold is finite."""

    eta: float
    threshold: float = math.inf
    penalty: float = 0.0
    penalty_inside_step: bool = False
    floor: float = 0.0
    optimistic: bool = False
    driven_by: Driver = "played"  # Q of the played policy, or the optimal advantages

    def __post_init__(self) -> None:
        check_constant_step("MirrorSetting.eta", self.eta)
        check_number("MirrorSetting.threshold", self.threshold, may_be_infinite=True)
        check_number("MirrorSetting.penalty", self.penalty)
        check_number("MirrorSetting.floor", self.floor)
        if self.driven_by not in get_args(Driver):
            raise InputError(
                f"MirrorSetting.driven_by is {self.driven_by!r}, but must be one of "
                f"{', '.join(get_args(Driver))}: choose one."
            )
        if self.optimistic and (self.threshold < math.inf or self.driven_by != "played"):
            raise InputError(
                "MirrorSetting.optimistic is set beside a threshold or driven_by, but an optimistic run has "
                "neither: leave them out."
            )

    @property
    def charge(self) -> float:
        """What an action outside the near set loses in log-odds."""
        return self.eta * self.penalty if self.penalty_inside_step else self.penalty


@dataclass(frozen=True, slots=True)
class MirrorRecord:
    """Every episode of every run. Masses are expected numbers of steps, between 0 and H."""

    paid: FloatArray  # [n_settings, T]  J_t(π_t)
    regret_by_step: FloatArray  # [n_settings, T, H]  sums to J_t(π_t) − J*_t
    near_walls: FloatArray  # [n_settings, T]  on actions with 0 < A* ≤ wall
    near_optimal: FloatArray  # [n_settings, T]  on actions with A* ≤ wall
    at_thin_states: FloatArray  # [n_settings, T]  in states that have an action with 0 < A* ≤ wall


def simulate_mirror_descent(
    mdp: MDP,
    losses: Losses,
    settings: Sequence[MirrorSetting],
    *,
    judged: Losses | None = None,
    threads: int = 1,
) -> FloatArray:
    """What mirror descent pays with each of the settings, in expectation: [n_settings, T].

    `losses`: [T, H, S, A] or a loss stream, shared by all runs. `judged`: as many rounds, what is paid if not
    the losses that the runs see. The transitions must be deterministic.
    """
    paid, *_ = _simulate("simulate_mirror_descent", mdp, losses, settings, judged, None, threads)
    return checked_payments(paid)


def simulate_noisy_mirror_descent(
    mdp: MDP, losses: Losses, settings: Sequence[MirrorSetting], *, judged: Losses
) -> tuple[FloatArray, FloatArray]:
    """The same with what the runs pay by `judged` and by the `losses` that they see, [n_settings, T] each."""
    paid, seen, *_ = _simulate("simulate_noisy_mirror_descent", mdp, losses, settings, judged, None, 1)
    return checked_payments(paid), checked_payments(seen)


def record_mirror_descent(
    mdp: MDP,
    losses: Losses,
    settings: Sequence[MirrorSetting],
    *,
    judged: Losses | None = None,
    wall: float = WALL,
    threads: int = 1,
) -> MirrorRecord:
    """The same runs with a look at every episode: regret by step, mass near the walls of the judged loss."""
    wall = check_number("wall", wall)
    paid, _, by_step, masses = _simulate(
        "record_mirror_descent", mdp, losses, settings, judged, wall, threads
    )
    near_walls, near_optimal, thin = (read_only(np.ascontiguousarray(m)) for m in np.moveaxis(masses, -1, 0))
    return MirrorRecord(checked_payments(paid), read_only(by_step), near_walls, near_optimal, thin)


def _simulate(
    name: str,
    mdp: MDP,
    losses: Losses,
    settings: Sequence[MirrorSetting],
    judged: Losses | None,
    wall: float | None,
    threads: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Payments judged and seen, regret by step and masses, the last two empty without a wall."""
    from normalfan._kernels.buffers import LANES
    from normalfan_paper._kernels import mirror_lanes

    transitions = deterministic(name, mdp)
    seen, means = _rounds(mdp, losses, judged)
    for setting in settings:
        check_floor(mdp, setting.floor)
    states = reachable_states(mdp)
    table = np.array(
        [(s.eta, s.threshold, s.charge, s.driven_by == "optimal", s.floor) for s in settings],
        dtype=np.float64,
    ).reshape(-1, 5)
    ties = (DEFAULT_TIES.absolute, DEFAULT_TIES.relative)
    # A call of the kernel takes runs that keep the same: with a floor or without, optimistic or not.
    kinds = np.array([2 * (s.floor > 0) + s.optimistic for s in settings])
    groups = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)] or [np.arange(0)]
    parts = []
    for group in groups:

        def run(part: slice, group: Any = group) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
            members = group[part]
            return mirror_lanes.run_mirror_descent(
                seen, means, transitions.nexts, states, mdp.initial, mdp.horizon,
                mirror_lanes.Runs(*table[members].T), settings[members[0]].optimistic, ties, wall,
            )  # fmt: skip

        parts += in_parts(run, len(group), LANES, threads)
    order = np.argsort(np.concatenate(groups), kind="stable")
    paid, seen, by_step, masses = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if wall is None:
        return paid[order], seen[order], by_step, masses
    return paid[order], seen[order], by_step[order], masses[order]


def _rounds(mdp: MDP, losses: Losses, judged: Losses | None) -> tuple[FloatArray, FloatArray | None]:
    """The losses seen and, unless they are the same, those judged; both by step or both not."""
    seen = whole_stream(mdp, losses)
    if judged is None:
        return seen, None
    means = whole_stream(mdp, judged, "judged")
    if len(means) != len(seen):
        raise InputError(
            f"judged has {len(means)} rounds and losses {len(seen)}, but must be as many: "
            f"give the mean of every loss."
        )
    if means.shape != seen.shape:
        seen, means = (np.broadcast_to(rounds, (len(seen), *mdp.shape)) for rounds in (seen, means))
    return seen, means
