"""Looking at some rounds of a stream again: each with the round before it, in one pass.

A stream hands out blocks that overlap by one round, so a crossing always lies within one block, and a
memory-mapped file is read only where a wanted round lies.

    >>> losses = np.arange(4.0).reshape(4, 1, 1, 1)
    >>> arm = MDP(np.array([[0]]), initial=0, horizon=1)
    >>> [(t, old.item(), new.item()) for t, old, new in crossings(arm, losses, [3, 1])]
    [(1, 0.0, 1.0), (3, 2.0, 3.0)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.pricing.stream import block_rounds
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_stream
from normalfan.problem.mdp import MDP


def crossings(
    mdp: MDP, losses: Any, wanted: Iterable[int]
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Each wanted round t ≥ 1 in ascending order, with the losses [H, S, A] of t − 1 and of t."""
    ahead = sorted(set(wanted), reverse=True)
    if not ahead:
        return
    stream = as_stream(losses)
    done = 0
    for block in stream.blocks(mdp.shape, block_rounds(mdp, is_view=stream.is_view)):
        first = max(done - 1, 0)
        done = first + len(block)
        while ahead[-1] < done:
            t = ahead.pop()
            yield t, block[t - 1 - first], block[t - first]
            if not ahead:
                return
    raise InputError(
        f"losses hold {done} rounds now, but round {ahead[-1]} was priced and has to be looked at again: "
        f"pass an array or a stream that can be read twice, not an iterator."
    )


def most_expensive(prices: FloatArray, *, share: float, at_most: int) -> list[int]:
    """The fewest rounds that carry `share` of the total price, dearest first; equal prices by time."""
    order = np.argsort(-prices, kind="stable")
    paid = np.cumsum(prices[order])
    enough = int(np.searchsorted(paid, share * paid[-1])) + 1
    dearest = order[: min(enough, at_most)]
    return [int(t) for t in dearest if prices[t] > 0]
