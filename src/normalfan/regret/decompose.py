"""Dynamic regret, split into what the losses cost and what the learner lost.

For a learner that plays on the previous optimal face (Theorem "Exact face-regret decomposition")

    DReg_T = r_0 + Σ_{t≥1} Γ_t + Σ_{t≥1} ε_t,        r_t = Γ_t + ε_t for t ≥ 1, rounds from 0.

Round 0 has no previous face. Its whole regret is `first_regret`, and price[0] = selection[0] = 0. The
columns regret, price and selection come from three different formulas (see `accountant`), so that the
identity is a finding and not a definition; it holds to the rounding of one backup, and `residual` says
how far it is off in each round. Sums over rounds are taken without rounding until the end
(`math.fsum`), so totals add no error of their own.

A round in which the learner was off the face has no such split. It is flagged in `on_face`, its
`selection` is still r − Γ, and may be negative: nothing is clipped. `exact` says whether the theorem
speaks of the whole run.

    >>> from normalfan.problem.mdp import MDP
    >>> from normalfan.regret.run import run
    >>> from normalfan.learners.tracking.tracker import FaceTracker
    >>> arms = MDP(np.array([[0, 0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[0.0, 0.0, 3.0], [2.0, 1.0, 0.0]]).reshape(2, 1, 1, 3)
    >>> split = decompose(run(arms, FaceTracker(arms), losses))
    >>> split.first_regret, split.price, split.selection      # the best of the tie pays 1, the first 2
    (1.0, array([0., 1.]), array([0., 1.]))
    >>> split.total_regret, split.exact
    (3.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from normalfan.pricing.motion import NORMS
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.regret.run import RunLog

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Regret = price + selection in every round after the first, where `on_face` is true."""

    first_regret: float  # r of round 0, which has no previous face
    regret: FloatArray  # [T]  regret[0] is first_regret
    price: FloatArray  # [T]  price[0] is 0
    selection: FloatArray  # [T]  selection[0] is 0; negative only where on_face is false
    on_face: BoolArray  # [T]  on_face[0] is true: nothing came before
    dimension: IntArray  # [T]  of the optimal face of each round
    variations: FloatArray  # [T, 3]  ‖ℓ_t − ℓ_{t−1}‖ in the norms l1, l2, linf
    path_length: FloatArray  # [T]
    causal_path_length: FloatArray  # [T]

    @property
    def exact(self) -> bool:
        """Whether every play lay on the previous face, so that the theorem applies throughout."""
        return bool(self.on_face.all())

    @property
    def residual(self) -> FloatArray:
        """[T]: regret − price − selection, which is rounding; 0 in round 0."""
        rest = self.regret - self.price - self.selection
        rest[0] = 0.0
        return rest

    @property
    def total_regret(self) -> float:
        return math.fsum(self.regret)

    @property
    def total_price(self) -> float:
        return math.fsum(self.price)

    @property
    def total_selection(self) -> float:
        return math.fsum(self.selection)

    def cumulative(self) -> dict[str, FloatArray]:
        """Regret, price, selection, variations and path lengths, summed up to each round, [T] each."""
        return {name: np.cumsum(column) for name, column in self._motion_columns().items()}

    def to_frame(self) -> polars.DataFrame:
        """One row per round."""
        import polars

        flags = {"on_face": self.on_face, "dimension": self.dimension}
        return polars.DataFrame({"round": np.arange(len(self.regret))} | self._motion_columns() | flags)

    def _motion_columns(self) -> dict[str, FloatArray]:
        return {
            "regret": self.regret,
            "price": self.price,
            "selection": self.selection,
            **{f"variation_{norm}": self.variations[:, i] for i, norm in enumerate(NORMS)},
            "path_length": self.path_length,
            "causal_path_length": self.causal_path_length,
        }


def decompose(log: RunLog) -> Decomposition:
    """Split the regret of a run into price and selection error."""
    return Decomposition(
        first_regret=float(log.regret[0]),
        regret=log.regret,
        price=log.price,
        selection=log.selection,
        on_face=log.on_face,
        dimension=log.dimension,
        variations=log.variations,
        path_length=log.path_length,
        causal_path_length=log.causal_path_length,
    )
