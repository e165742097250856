"""The trust region, many runs at once: what each would have paid, round by round.

    π_{t+1} = argmin of the linearised loss within a ball of relative entropy around π_t,      pays J_t(π_t)

is the learner `TrustRegion` in its three kinds and both directions, with a constant step size and a floor,
and gives what that gives one at a time up to the accuracy of its root. See `hedge_runs` for the layout. Each
run may have losses of its own: this learner is swept over seeds rather than over settings.

    >>> arms = MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> simulate_trust_region(arms, losses, [TrustSetting(floor=0.01)]).round(3)
    array([[0.5  , 0.265, 0.918]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from normalfan.errors import InputError, check_choice, check_number
from normalfan.learners.learner import check_constant_step, check_floor
from normalfan.learners.trust_region import DEFAULT_RADIUS, Direction, Kind
from normalfan.pricing.kernels import reachable_states
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan_paper.simulation.streams import (
    checked_payments,
    deterministic,
    in_parts,
    own_streams,
    whole_stream,
)


@dataclass(frozen=True, slots=True)
class TrustSetting:
    """One run of the trust region. The floor must be positive: policies are kept as probabilities."""

    floor: float
    eta: float = 10.0
    radius: float = DEFAULT_RADIUS
    kind: Kind = "per state"
    direction: Direction = "new from old"

    def __post_init__(self) -> None:
        check_constant_step("TrustSetting.eta", self.eta)
        check_number("TrustSetting.radius", self.radius, positive=True)
        if not self.floor > 0:
            raise InputError(
                f"TrustSetting.floor is {self.floor}, but must be positive: for a floor of 0 run the learner "
                f"TrustRegion."
            )
        check_choice("TrustSetting.kind", self.kind, get_args(Kind))
        check_choice("TrustSetting.direction", self.direction, get_args(Direction))


def simulate_trust_region(
    mdp: MDP, losses: Losses, settings: Sequence[TrustSetting], *, threads: int = 1
) -> FloatArray:
    """What the trust region pays with each of the settings, in expectation: [n_settings, T].

    `losses`: [T, H, S, A] or a loss stream, shared by all runs; or an array [n_settings, T, H, S, A], for
    each run its own. The transitions must be deterministic.
    """
    from normalfan._kernels.buffers import LANES
    from normalfan_paper._kernels import trust_lanes

    transitions = deterministic("simulate_trust_region", mdp)
    own = own_streams(mdp, losses, len(settings))
    streams = whole_stream(mdp, losses)[None] if own is None else own
    states = reachable_states(mdp)
    columns = np.array([(s.eta, s.radius, check_floor(mdp, s.floor)) for s in settings]).reshape(-1, 3)
    modes = [(kind, way) for kind in get_args(Kind) for way in get_args(Direction)]
    kinds = np.array([modes.index((s.kind, s.direction)) for s in settings], dtype=np.int64)
    groups = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)] or [np.arange(0)]
    blocks = [group[i : i + LANES] for group in groups for i in range(0, len(group), LANES)]

    def run(part: slice) -> list[FloatArray]:
        return [_block(members) for members in blocks[part]]

    def _block(members: Any) -> FloatArray:
        kind = settings[members[0]].kind
        return trust_lanes.run_trust_region(
            streams if own is None else own[_as_slice(members)], transitions.nexts, states, mdp.initial,
            mdp.horizon, tuple(columns[members].T), kind == "per state",
            settings[members[0]].direction == "old from new",
            1 / mdp.horizon if kind == "average" else 1.0,
        )  # fmt: skip

    paid = [row for part in in_parts(run, len(blocks), 1, threads) for row in part]
    order = np.argsort(np.concatenate(groups), kind="stable")
    return checked_payments(np.concatenate(paid)[order])


def _as_slice(members: Any) -> Any:
    """The same runs as a slice if they are neighbours, so that their losses are not copied."""
    first, last = int(members[0]), int(members[-1])
    return slice(first, last + 1) if last - first + 1 == len(members) else members
