"""The price of every face on every later day, by the compiled sweep that prices streams.

A stream is priced against the face of the round before. So the rounds are laid out in pairs, the loss a plan
is made for and then the day it is held on: with m_j the former and ℓ_t the latter, for each age k

    m_0, ℓ_k, m_1, ℓ_{k+1}, …, m_{n−1−k}, ℓ_{n−1},

and every second price is one that is asked for. That is n² + n rounds, n²/2 of them for nothing, at the speed
of the sweep.
"""

from __future__ import annotations

import numpy as np

from normalfan.geometry.ties import TieRule
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import ArrayLosses, FactoredLosses, LossStream
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.replan.plans import each_round, trailing_means


def face_costs(mdp: MDP, stream: LossStream, window: int, ties: TieRule, *, progress: bool) -> FloatArray:
    """[n, n]: the face price of plan j on day t ≥ j, nan below."""
    if isinstance(stream, FactoredLosses):
        days, features = stream.coefficients, stream.features
    else:
        days, features = np.stack(list(each_round(mdp, stream))), None
    planned = np.stack(list(trailing_means(days, window)))
    n_days = len(days)
    costs = np.full((n_days, n_days), np.nan)
    with progress_bar("pricing faces", n_days, progress) as advance:
        for age in range(n_days):
            held = n_days - age
            pairs = np.stack([planned[:held], days[age:]], axis=1).reshape(2 * held, *days.shape[1:])
            losses = ArrayLosses(pairs) if features is None else FactoredLosses(pairs, features)
            prices = price_stream(mdp, losses, ties=ties, detail="prices").prices
            costs[range(held), range(age, n_days)] = prices[1::2]
            advance(1)
    return costs
