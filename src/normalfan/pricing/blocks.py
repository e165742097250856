"""One block of rounds, priced: against the faces of the rounds before, of other losses, or against a policy.

The heavy arithmetic is one fused compiled sweep (see `kernels`). Rounds in which a tie could be read in two
ways are rare: they are read again with care (see `reading`) and replaced in what the sweep found.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import allowed_policy, occupancy
from normalfan.geometry.ties import TieRule
from normalfan.pricing.kernels import UNIT, Sweeper, Tables
from normalfan.pricing.reading import Reader, Reading
from normalfan.problem.arrays import FloatArray, IntArray, check_losses, first_index
from normalfan.problem.losses import forbid
from normalfan.problem.mdp import MDP, check_way_on

if TYPE_CHECKING:
    from normalfan._kernels.buffers import Swept

Columns: TypeAlias = dict[str, Any]
"""The arrays of a `PricedMotion`, by name."""

ROW_COLUMNS = ("prices", "crossed", "dimensions")
WALKED_COLUMNS = ("by_step", "cells", "cell_prices", "margins", "margin_exact", "advantage_gaps")
"""What a sweep tells of a round beside its value: always, and if its plans are walked through."""

DETAILS = frozenset({*WALKED_COLUMNS, "variations"})
"""What is told of a round only if it is asked for."""

NO_TOLERANCE = TieRule(absolute=0.0, relative=0.0, band=1.0)

READING_BYTES = 2**23
"""What readings may take at a time, unless one takes more."""


class BlockPricer:
    """Prices one block of rounds."""

    def __init__(
        self, mdp: MDP, ties: TieRule, *, details: Collection[str], exact_when_ambiguous: bool
    ) -> None:
        self.mdp = mdp
        self.ties = ties
        self.details = DETAILS.intersection(details)
        self.row_columns = (*ROW_COLUMNS, *(name for name in WALKED_COLUMNS if name in details))
        self.exact_when_ambiguous = exact_when_ambiguous
        self.tables = Tables(mdp)
        self.sweep = Sweeper(self.tables, ties, details=self.details)
        self.reader = Reader(self.tables, ties, exactly=exact_when_ambiguous)

    @cached_property
    def sweep_settled(self) -> Sweeper:
        """The sweep of advantages that the tie rule has settled: zeros are ties, and nothing else is."""
        return Sweeper(self.tables, NO_TOLERANCE, details=self.details - {"variations"})

    def __call__(self, first_round: int, shared: int, losses: FloatArray) -> Columns:
        """Price a block that begins with round `first_round`; its `shared` rounds are the last block's."""
        given, losses = losses, forbid(self.mdp, losses)
        swept = self.sweep(losses)
        if swept.closed.any() or not swept.finite.all():
            check_losses("losses", given[:], offset=(first_round,))
            for t in np.flatnonzero(swept.closed).tolist():
                check_way_on(self.mdp, losses[t] < np.inf, f"losses[{first_round + t}]")
            if not swept.finite.all():
                raise overflow(first_round + int(swept.finite.argmin()))
        moved: Columns = {}
        if "variations" in self.details:
            moved["variations"] = variations_of(losses, first_round, swept.variations)
        doubts = self._settle(losses, swept, shared)
        told = {name: getattr(swept, name) for name in ("values", *self.row_columns)}
        return {name: column[shared:] for name, column in (told | doubts | moved).items()}

    def price_pairs(self, first_round: int, makers: FloatArray, losses: FloatArray) -> Columns:
        """Price rounds ℓ_t against the optimal faces of other losses m_t, both [B, H, S, A]."""
        # Laid out as m_0, ℓ_0, m_1, ℓ_1, …: of their prices every second one is wanted.
        pairs = np.stack([makers, losses], axis=1).reshape(-1, *losses.shape[1:])
        try:
            priced = self(0, 0, pairs)
        except InputError:
            # The sentence counts rows of the pairs: say it again of the rounds.
            check_losses("forecasts", makers, offset=(first_round,))
            self(first_round, 0, losses)
            self(first_round, 0, makers)
            raise InputError(
                f"losses of rounds {first_round} to {first_round + len(losses) - 1} differ from those that "
                f"the plans were made for beyond the range of float64, but distances must fit: rescale the "
                f"losses."
            ) from None
        return {name: rows[1::2] for name, rows in priced.items()}

    def name_moves(self, losses: FloatArray, cells: IntArray) -> IntArray:
        """Call the moves of the costliest cells by their shortest names."""
        rounds = np.flatnonzero(cells[:, 0] >= 0)
        steps, states = cells[rounds, 0], cells[rounds, 1]
        charged = losses[rounds, steps, states]
        for column in (2, 3):
            moves = np.stack([states, cells[rounds, column]], axis=1)
            cells[rounds, column] = self.tables.shortest_named(charged, steps, moves)
        return cells

    def _settle(self, losses: FloatArray, swept: Swept, shared: int) -> Columns:
        """Enclose every price; rounds that the sweep could not clear are read again and replaced in it."""
        lowest, highest, wide = self.reader.rounding_intervals(swept.prices, swept.sizes)
        ambiguous, exactly = np.zeros(len(wide), dtype=bool), np.zeros(len(wide), dtype=bool)
        doubts = {
            "ambiguous": ambiguous,
            "decided_exactly": exactly,
            "lowest_prices": lowest,
            "highest_prices": highest,
        }
        unclear = np.flatnonzero(swept.near | np.append(False, swept.near[:-1]) | wide)
        unclear = unclear[unclear >= shared]
        at_once = max(1, READING_BYTES // (64 * math.prod(self.mdp.shape)))  # each with the round before it
        room = self.reader.room(2 * min(at_once, len(unclear)))
        for first in range(0, len(unclear), at_once):
            self._read_again(losses, unclear[first : first + at_once], swept, doubts, room)
        return doubts

    def _read_again(
        self, losses: FloatArray, chosen: IntArray, swept: Swept, doubts: Columns, room: FloatArray
    ) -> None:
        """Replace the chosen rounds by what a careful reading says of them."""
        days = np.union1d(chosen, np.maximum(chosen - 1, 0))
        is_new = [
            not (
                day - 1 in days
                and swept.values[day - 1] == swept.values[day]
                and np.array_equal(losses[day - 1], losses[day])
            )
            for day in days.tolist()
        ]
        read = self.reader.read_all(losses[days[is_new]], room)
        readings = [read[number] for number in np.cumsum(is_new) - 1]
        # Advantages are a loss whose values are 0: swept, they give the rows that these readings mean.
        rows = self.sweep_settled(np.stack([one.advantages for one in readings]), named=False)
        places = np.searchsorted(days, chosen)
        for name in self.row_columns:
            getattr(swept, name)[chosen] = getattr(rows, name)[places]
        if "cells" in self.details:
            swept.cells[chosen] = self.name_moves(losses[chosen], swept.cells[chosen])
        for t, place in zip(chosen.tolist(), places.tolist(), strict=True):
            now = readings[place]
            before = readings[place - 1] if t > 0 else now
            lowest = highest = price = float(swept.prices[t])
            if before is not now:
                lowest, highest, doubts["ambiguous"][t] = self.reader.enclose(before, now, price)
            doubts["lowest_prices"][t], doubts["highest_prices"][t] = lowest, highest
            doubts["decided_exactly"][t] = before.exactly or now.exactly


class PolicyPricer:
    """Prices rounds against one policy: Γ_t = ⟨q, A_t⟩, in the advantages of a careful reading."""

    def __init__(self, pricer: BlockPricer, policy: FloatArray) -> None:
        mdp = pricer.mdp
        self.pricer = pricer
        self.policy = policy
        self.visits = occupancy(mdp, policy)
        # A bound on the relative error of sums of non-negative terms: those of q, then those of ⟨q, A⟩.
        self.rounding = 8.0 * (mdp.horizon + 1) * (mdp.n_states * mdp.n_actions + 4) * UNIT

    def __call__(self, first_round: int, shared: int, losses: FloatArray) -> Columns:
        """As `BlockPricer`: all that is not about the plan is what it says."""
        priced = self.pricer(first_round, shared, losses)
        losses = losses[shared:]
        readings = self.pricer.reader.read_all(forbid(self.pricer.mdp, losses))
        visits = [self._visits(one.advantages) for one in readings]
        paid = [own * _finite(one.advantages) for own, one in zip(visits, readings, strict=True)]
        by_step = np.array([cells.sum(axis=(1, 2)) for cells in paid])
        prices = by_step.sum(axis=1)
        ends = np.array(list(map(self._enclosed, visits, readings, prices.tolist())))
        own = {
            "prices": prices,
            "crossed": prices > 0,
            "ambiguous": (ends[:, 0] == 0) & (ends[:, 1] > 0),  # whether the plan is optimal is open
            "lowest_prices": ends[:, 0],
            "highest_prices": ends[:, 1],
            "decided_exactly": np.array([one.exactly for one in readings]),
        }
        if "by_step" in self.pricer.details:
            own["by_step"] = by_step
        if not self.pricer.details.isdisjoint(("cells", "cell_prices")):
            found = [_costliest_cell(*both) for both in zip(paid, readings, strict=True)]
            cells = np.array([cell for cell, _ in found])
            self.pricer.name_moves(losses, cells)
            costliest = {"cells": cells, "cell_prices": np.array([most for _, most in found])}
            own |= {name: costliest[name] for name in self.pricer.details & costliest.keys()}
        return priced | own

    def _visits(self, advantages: FloatArray) -> FloatArray:
        """Where the policy goes, [H, S, A], in a round that may not allow all that it does."""
        followed = allowed_policy(self.pricer.mdp, self.policy, advantages)
        return self.visits if followed is self.policy else occupancy(self.pricer.mdp, followed)

    def _enclosed(self, visits: FloatArray, reading: Reading, price: float) -> tuple[float, float]:
        """The least and the largest price that this reading allows."""
        low, high = (float(np.vdot(visits, _finite(ends))) for ends in (reading.low, reading.high))
        lowest = math.ldexp(low * (1.0 - self.rounding), reading.exponent)
        highest = math.ldexp(high * (1.0 + self.rounding), reading.exponent)
        return min(lowest, price), max(highest, price)


def overflow(number: int) -> InputError:
    """The refusal of a round whose losses float64 cannot add."""
    return InputError(
        f"losses of round {number} add up beyond the range of float64, but sums over a horizon and "
        f"differences from the round before must be finite: rescale the losses."
    )


def variations_of(losses: FloatArray, first_round: int, found: FloatArray | None = None) -> FloatArray:
    """‖ℓ_t − ℓ_{t−1}‖ in L1, L2 and L∞, [B, 3], from what a sweep found, if there was one."""
    from normalfan._kernels.variation import settle_variations

    if found is None:
        found = np.full((len(losses), 3), np.nan)

    moved: FloatArray
    moved, all_finite = settle_variations(losses, found)
    if not all_finite:  # at a state that no policy reaches, or a distance beyond all floats
        check_losses("losses", losses[:], offset=(first_round,))
        raise overflow(first_round + int(np.isfinite(moved).all(axis=1).argmin()))
    return moved


def _finite(advantages: FloatArray) -> FloatArray:
    """Those of what is not allowed, and so never done, as zero."""
    return np.where(advantages < np.inf, advantages, 0.0)


def _costliest_cell(paid: FloatArray, reading: Reading) -> tuple[tuple[int, int, int, int], float]:
    """The step, state and action that pay most, the best action there, and what is paid."""
    in_states = paid.sum(axis=2)
    h, s = first_index(in_states == in_states.max())
    if in_states[h, s] == 0:
        return (-1, -1, -1, -1), 0.0
    # A plan that draws lots is called by the action that pays most.
    return (h, s, int(paid[h, s].argmax()), int(reading.advantages[h, s].argmin())), float(in_states[h, s])
