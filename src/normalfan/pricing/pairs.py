"""Rounds priced against any plan, by the pricer that prices them against the plan of the round before."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.bellman import allowed_policy, occupancy
from normalfan.pricing.kernels import UNIT
from normalfan.pricing.motion import PricedMotion, each_array
from normalfan.pricing.reading import Reader, Reading
from normalfan.problem.arrays import FloatArray, IntArray, check_losses, first_index
from normalfan.problem.losses import forbid


class Pricer(Protocol):
    """What is asked of a `BlockPricer`."""

    reader: Reader

    def __call__(self, first_round: int, shared: int, losses: FloatArray) -> PricedMotion: ...
    def name_moves(self, losses: FloatArray, cells: IntArray) -> None: ...


class PairPricer:
    """Prices rounds against the optimal faces of other losses.

    They are laid out in pairs, m_0, ℓ_0, m_1, ℓ_1, …: of their prices every second one is wanted.
    """

    def __init__(self, pricer: Pricer) -> None:
        self.pricer = pricer

    def __call__(self, first_round: int, makers: FloatArray, losses: FloatArray) -> PricedMotion:
        """`makers`, `losses`: m_t and ℓ_t, [B, H, S, A]."""
        pairs = np.stack([makers, losses], axis=1).reshape(-1, *losses.shape[1:])
        try:
            priced = self.pricer(0, 0, pairs)
        except InputError:
            # The sentence counts rows of the pairs: say it again of the rounds.
            check_losses("forecasts", makers, offset=(first_round,))
            self.pricer(first_round, 0, losses)
            self.pricer(first_round, 0, makers)
            raise InputError(
                f"losses of rounds {first_round} to {first_round + len(losses) - 1} differ from those that "
                f"the plans were made for beyond the range of float64, but distances must fit: rescale the "
                f"losses."
            ) from None
        return PricedMotion(**each_array(lambda rows: rows[1::2], priced))


class PolicyPricer:
    """Prices rounds against one policy: Γ_t = ⟨q, A_t⟩, in the advantages of a careful reading."""

    def __init__(self, pricer: Pricer, policy: FloatArray) -> None:
        mdp = pricer.reader.mdp
        self.pricer = pricer
        self.policy = policy
        self.visits = occupancy(mdp, policy)
        # A bound on the relative error of sums of non-negative terms: those of q, then those of ⟨q, A⟩.
        self.rounding = 8.0 * (mdp.horizon + 1) * (mdp.n_states * mdp.n_actions + 4) * UNIT

    def __call__(self, first_round: int, shared: int, losses: FloatArray) -> PricedMotion:
        """As `BlockPricer`: all that is not about the plan is what it says."""
        priced = self.pricer(first_round, shared, losses)
        mdp = self.pricer.reader.mdp
        readings = [self.pricer.reader.read(loss) for loss in forbid(mdp, losses[shared:])]
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
        if vars(priced)["by_step"] is not None:
            found = [
                _costliest_cell(cells, one.advantages) for cells, one in zip(paid, readings, strict=True)
            ]
            cells = np.array([cell for cell, _ in found])
            self.pricer.name_moves(losses[shared:], cells)
            own |= {"by_step": by_step, "cells": cells, "cell_prices": np.array([paid for _, paid in found])}
        return PricedMotion(**(vars(priced) | own))

    def _visits(self, advantages: FloatArray) -> FloatArray:
        """Where the policy goes, [H, S, A], in a round that may not allow all that it does."""
        mdp = self.pricer.reader.mdp
        followed = allowed_policy(mdp, self.policy, advantages)
        return self.visits if followed is self.policy else occupancy(mdp, followed)

    def _enclosed(self, visits: FloatArray, reading: Reading, price: float) -> tuple[float, float]:
        """The least and the largest price that this reading allows."""
        low, high = (float(np.vdot(visits, _finite(ends))) for ends in (reading.low, reading.high))
        lowest = math.ldexp(low * (1.0 - self.rounding), reading.exponent)
        highest = math.ldexp(high * (1.0 + self.rounding), reading.exponent)
        return min(lowest, price), max(highest, price)


def _finite(advantages: FloatArray) -> FloatArray:
    """Those of what is not allowed, and so never done, as zero."""
    return np.where(advantages < np.inf, advantages, 0.0)


def _costliest_cell(paid: FloatArray, advantages: FloatArray) -> tuple[tuple[int, int, int, int], float]:
    """The step, state and action that pay most, the best action there, and what is paid."""
    in_states = paid.sum(axis=2)
    h, s = first_index(in_states == in_states.max())
    if in_states[h, s] == 0:
        return (-1, -1, -1, -1), 0.0
    # A plan that draws lots is called by the action that pays most.
    return (h, s, int(paid[h, s].argmax()), int(advantages[h, s].argmin())), float(in_states[h, s])
