"""Dynamic regret, split into what the losses cost and what the learner lost.

For a learner on the previous optimal face r_t = Γ_t + ε_t, t ≥ 1 (Theorem "Exact face-regret decomposition").
Round 0 has no previous face: its whole regret is `first_regret`. The three columns come from three formulas
(docs/details/regret.md), so that the identity is a finding; `residual` says how far it is off. A round off
the face has no such split: it is flagged in `on_face`, and its selection, still r − Γ, may be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.plots import new_figure, round_axis
from normalfan.pricing.motion import NORMS
from normalfan.problem.arrays import BoolArray, FloatArray
from normalfan.regret.run import RunLog
from normalfan.text import counted, html_table, number

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decomposition:
    """Regret = price + selection in every round after the first, where `on_face` is true.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 0.0, 3.0]]], [[[2.0, 1.0, 0.0]]]]     # the best of the tie pays 1, the first 2
    >>> nf.decompose(nf.run(arms, nf.learners.FaceTracker(arms), losses))
    Decomposition: 2 rounds, regret 3 = first round 1 + price 1 + selection 1
    """

    log: RunLog  # the run whose regret is split
    regret: FloatArray  # [T] r_t, against the best of each round
    price: FloatArray  # [T] Γ_t, the least regret of staying on the previous face; 0 in round 0
    selection: FloatArray  # [T] ε_t, what the choice on the face lost; negative only where `on_face` is false
    on_face: BoolArray  # [T] whether the play was on the previous face; true in round 0

    @property
    def exact(self) -> bool:
        """Whether every play was on the previous face, so that the theorem applies to the whole run."""
        return bool(self.on_face.all())

    @property
    def residual(self) -> FloatArray:
        """[T]: regret − price − selection, which is rounding; 0 in round 0."""
        rest = self.regret - self.price - self.selection
        rest[0] = 0.0
        return rest

    @property
    def first_regret(self) -> float:
        """The regret of round 0, which has no previous face."""
        return float(self.regret[0])

    @property
    def total_regret(self) -> float:
        """The dynamic regret of the run."""
        return self.log.total_regret

    @property
    def total_price(self) -> float:
        """The sum of the prices."""
        return math.fsum(self.price)

    @property
    def total_selection(self) -> float:
        """The sum of the selection errors."""
        return math.fsum(self.selection)

    def cumulative(self) -> dict[str, FloatArray]:
        """Regret, price, selection, variations and path lengths, summed up to each round: arrays [T]."""
        return {name: np.cumsum(column) for name, column in self._amounts().items()}

    def to_frame(self) -> polars.DataFrame:
        """One row for each round, called by its name if the rounds have names."""
        import polars

        rounds = {"round": self.log.round_names or range(self.log.n_rounds)}
        flags = {"on_face": self.on_face, "dimension": self.log.dimensions}
        return polars.DataFrame(rounds | self._amounts() | flags)

    def plot(self) -> Any:
        """Draw regret, price and selection error, summed up to each round; returns a matplotlib figure."""
        figure, axes = new_figure("Cumulative regret = price + selection error", x="round")
        at = round_axis(axes, self.log.round_names, self.log.n_rounds)
        sums = self.cumulative()
        for name, style in (("regret", "-"), ("price", "--"), ("selection", ":")):
            axes.plot(at, sums[name], style, label=name)
        axes.legend(frameon=False)
        return figure

    def __repr__(self) -> str:
        parts = " + ".join(f"{name} {number(part)}" for name, part in self._parts().items())
        off = np.count_nonzero(~self.on_face)
        return (
            f"Decomposition: {counted(self.log.n_rounds, 'round')}, "
            f"regret {number(self.total_regret)} = {parts}" + (f"; {off:,} off the face" if off else "")
        )

    def _repr_html_(self) -> str:
        rows = [("regret", number(self.total_regret)), *((k, number(v)) for k, v in self._parts().items())]
        return html_table(f"Regret of {counted(self.log.n_rounds, 'round')}", ("part", "total"), rows)

    def _parts(self) -> dict[str, float]:
        return {
            "first round": self.first_regret,
            "price": self.total_price,
            "selection": self.total_selection,
        }

    def _amounts(self) -> dict[str, FloatArray]:
        return {
            "regret": self.regret,
            "price": self.price,
            "selection": self.selection,
            **{f"variation_{norm}": self.log.variation(norm) for norm in NORMS},
            "path_length": self.log.path_lengths,
            "causal_path_length": self.log.causal_path_lengths,
        }


def decompose(log: RunLog) -> Decomposition:
    """Split the regret of a run into price and selection error: r_t = Γ_t + ε_t after round 0.

    Parameters
    ----------
    log : RunLog

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> decompose(nf.run(arms, nf.learners.FaceTracker(arms), [[[[0.0, 1.0]]], [[[1.0, 0.0]]]]))
    Decomposition: 2 rounds, regret 1.5 = first round 0.5 + price 1 + selection 0
    """
    return Decomposition(log, log.regrets, log.prices, log.selections, log.on_face)
