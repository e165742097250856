"""A priced stream in a few numbers: how often it mattered, where, and whether loss variation knew.

A round is *free* if its price is zero, *negligible* if it is below one percent of what the round is worth
(|J*_t|), and *priced* otherwise. The first round has no plan before it and counts as none of them.

The dearest rounds are looked at again, one by one, for the place in the plan where most of the price is paid:
the step and state at which the cheapest of yesterday's optimal plans does something that today's does not.

    >>> from normalfan.pricing.stream import price_stream
    >>> corridor = MDP(np.array([[0, 1], [0, 2], [1, 2]]), initial=1, horizon=2)
    >>> losses = np.zeros((3, 2, 3, 2))
    >>> losses[0, :, :, 0] = 1.0
    >>> losses[1, :, :, 0] = 5.0
    >>> losses[2, :, :, 1] = 1.0
    >>> told = summarise(corridor, losses, price_stream(corridor, losses))
    >>> told.free, told.negligible, told.priced, told.dearest[0].price
    (1, 0, 1, 2.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.crossing import price
from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import BoolArray, FloatArray, first_index
from normalfan.problem.losses import LossStream, as_stream, names_of_rounds, rounds_of
from normalfan.problem.mdp import MDP

NEGLIGIBLE = 0.01
"""Below this share of a round's value, its price is negligible."""


@dataclass(frozen=True, slots=True)
class DearRound:
    """A round whose price stands out, and the place in the plan that carries most of it."""

    round: int
    name: str
    price: float
    value: float
    variation: float
    variation_rank: int  # 1: no round moved further
    step: str  # the place, in the problem's own names
    state: str
    action: str  # what yesterday's plan does there, the first of its actions that come to the same
    instead: str  # what today's would do
    paid: float  # the part of the price paid there


@dataclass(frozen=True, slots=True)
class Summary:
    """What a stream came to."""

    rounds: int
    free: int
    negligible: int
    priced: int
    crossed: int  # rounds whose optimal face is not the one before
    total: float  # of all prices
    value: float  # of all J*
    dearest: tuple[DearRound, ...]  # dearest first; rounds that cost nothing are left out
    free_variation: float  # the share of the loss variation that fell on free rounds
    rank_correlation: float | None  # Spearman's, of price and variation; None where one of them is constant
    shared: int  # how many of the dearest rounds are among as many that moved furthest
    ambiguous: int  # rounds whose price hangs on a near-tie
    total_lowest: float  # the total, reading near-ties as ties
    total_highest: float  # and reading them as differences


def summarise(
    mdp: MDP,
    losses: Any,
    motion: PricedMotion,
    *,
    dearest: int = 5,
    norm: str = "l1",
    ties: TieRule = DEFAULT_TIES,
) -> Summary:
    """What `motion = price_stream(mdp, losses, ties)` found; the dearest rounds are read once more."""
    stream = as_stream(losses)
    kinds = kinds_of_rounds(motion)
    moved = motion.variation(norm)
    order = np.argsort(-motion.prices, kind="stable")[:dearest]
    dear = tuple(_look_again(mdp, stream, motion, moved, int(t), ties) for t in order if motion.prices[t] > 0)
    return Summary(
        rounds=len(kinds),
        free=int(np.count_nonzero(kinds == "free")),
        negligible=int(np.count_nonzero(kinds == "negligible")),
        priced=int(np.count_nonzero(kinds == "priced")),
        crossed=int(np.count_nonzero(motion.crossed)),
        total=motion.total,
        value=math.fsum(motion.values),
        dearest=dear,
        free_variation=float(moved[motion.prices == 0].sum() / moved.sum()) if moved.any() else 0.0,
        rank_correlation=_rank_correlation(motion.prices[1:], moved[1:]),
        shared=sum(one.variation_rank <= len(dear) for one in dear),
        ambiguous=int(np.count_nonzero(motion.ambiguous)),
        total_lowest=math.fsum(motion.lowest_prices),
        total_highest=math.fsum(motion.highest_prices),
    )


def kinds_of_rounds(motion: PricedMotion) -> Any:
    """[T]: "first", "free", "negligible" or "priced"."""
    small = motion.prices < NEGLIGIBLE * np.abs(motion.values)
    kinds = np.where(motion.prices == 0, "free", np.where(small, "negligible", "priced"))
    kinds[:1] = "first"
    return kinds


def _look_again(
    mdp: MDP, stream: LossStream, motion: PricedMotion, moved: FloatArray, t: int, ties: TieRule
) -> DearRound:
    yesterday, today = next(rounds_of(stream, t - 1, t + 1).blocks(mdp.shape, 2))
    face = optimal_face(mdp, yesterday, ties=ties)
    attribution = price(face, today, ties=ties).attribution
    h, s, a = first_index(attribution == attribution.max())
    advantages = optimal_backup(mdp, today).settled(mdp, ties)[h, s]
    names = names_of_rounds(stream)
    return DearRound(
        round=t,
        name=str(t) if names is None else names[t],
        price=float(motion.prices[t]),
        value=float(motion.values[t]),
        variation=float(moved[t]),
        variation_rank=1 + int(np.count_nonzero(moved > moved[t])),
        step=mdp.labels.step(h),
        state=mdp.labels.state(s),
        action=_first_of(mdp, face.mask[h, s] & (advantages == advantages[a])),
        instead=_first_of(mdp, advantages == 0),
        paid=float(attribution[h, s, a]),
    )


def _first_of(mdp: MDP, actions: BoolArray) -> str:
    return mdp.labels.action(int(actions.argmax()))


def _rank_correlation(first: FloatArray, second: FloatArray) -> float | None:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(_mean_ranks(first), _mean_ranks(second))[0, 1])


def _mean_ranks(numbers: FloatArray) -> FloatArray:
    """Ranks from smallest to largest; equal numbers share the mean of theirs."""
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2)[which]
    return ranks
