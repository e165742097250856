"""The priced motion of a stream: what every round cost, and the usual yardsticks beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars

NORMS = ("l1", "l2", "linf")

_NORM_NAMES = {1: "l1", 2: "l2", np.inf: "linf", "inf": "linf"}


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """What a full pricing adds to prices: where they are paid, and how sure they are."""

    by_step: FloatArray  # [T, H]  the part of each price paid at each step
    variations: FloatArray  # [T, 3]  ‖ℓ_t − ℓ_{t−1}‖ in the norms NORMS; 0 in the first round
    margins: FloatArray  # [T]     cone margin, exact or a lower bound (inf: no other face)
    margin_exact: BoolArray  # [T]
    advantage_gaps: FloatArray  # [T]  the smallest advantage of a left-out action on the face
    ambiguous: BoolArray  # [T]    the price or the crossing hangs on a near-tie
    lowest_prices: FloatArray  # [T]  the price under the loose reading of ties
    highest_prices: FloatArray  # [T] the price under the strict reading
    decided_exactly: BoolArray  # [T] the near-tie was decided in rational arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class PricedMotion:
    """Every round of a stream, priced. Round 0 has no previous face: its price is 0."""

    prices: FloatArray  # [T]
    values: FloatArray  # [T]  J*_t, the best expected loss
    crossed: BoolArray  # [T]  the optimal face is not the previous one
    dimensions: IntArray  # [T]  dimension of the optimal face
    details: Details | None  # None after price_stream(..., detail="prices")

    @property
    def total(self) -> float:
        """Γ over the whole stream, summed without rounding until the end."""
        return math.fsum(self.prices)

    @property
    def by_step(self) -> FloatArray:
        return self._full.by_step

    @property
    def margins(self) -> FloatArray:
        return self._full.margins

    @property
    def ambiguous(self) -> BoolArray:
        return self._full.ambiguous

    def variation(self, norm: str | float = "l1") -> FloatArray:
        """[T]: how far the loss moved since the round before, in "l1", "l2" or "linf"."""
        return self._full.variations[:, _norm_index(norm)]

    def columns(self) -> dict[str, Any]:
        """Every per-round number by name, each an array [T]."""
        columns: dict[str, Any] = {
            "price": self.prices,
            "value": self.values,
            "crossed": self.crossed,
            "dimension": self.dimensions,
        }
        if self.details is not None:
            full = self.details
            columns |= {f"variation_{norm}": self.variation(norm) for norm in NORMS}
            columns |= {
                "margin": full.margins,
                "margin_exact": full.margin_exact,
                "advantage_gap": full.advantage_gaps,
                "ambiguous": full.ambiguous,
                "price_lowest": full.lowest_prices,
                "price_highest": full.highest_prices,
                "decided_exactly": full.decided_exactly,
            }
        return columns

    def to_frame(self, round_names: Sequence[str] | None = None) -> polars.DataFrame:
        """One row per round, called by its name if the rounds have names."""
        import polars

        rounds = np.arange(len(self.prices)) if round_names is None else round_names
        return polars.DataFrame({"round": rounds} | self.columns())

    @property
    def _full(self) -> Details:
        if self.details is None:
            raise InputError(
                'this stream was priced with detail="prices", but that keeps prices, values, crossed and '
                'dimensions only: price it again with detail="full".'
            )
        return self.details


def _norm_index(norm: str | float) -> int:
    asked = norm.lower() if isinstance(norm, str) else norm
    name = _NORM_NAMES.get(asked, asked)
    if name not in NORMS:
        raise InputError(
            f'norm is {norm!r}, but must be "l1", "l2" or "linf" (or 1, 2, inf): choose one of them.'
        )
    return NORMS.index(str(name))
