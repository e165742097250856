"""Where in the plan the price is paid: a map of steps against states.

Each crossing says for every (step, state, action) what the old plan pays there; the map is the sum over
crossings. A large problem is folded until it can be read: consecutive steps are joined, and of the states
those are shown that carry most of the price.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan.problem.labels import Labels

MOST_STEPS, MOST_STATES = 240, 60


@dataclass(frozen=True, slots=True, eq=False)
class PaidMap:
    """What was paid at each step in each state, folded for reading."""

    paid: FloatArray  # [states, steps]
    by_step: FloatArray  # [steps]  of the whole stream, whatever the map holds
    steps: tuple[str, ...]
    states: tuple[str, ...]
    states_left_out: int
    shown: float  # the part of the map's total that lies in the states shown


def fold(attribution: FloatArray, by_step: FloatArray, labels: Labels) -> PaidMap:
    """`attribution` [H, S]: a sum over crossings. `by_step` [H]: of all crossings."""
    horizon, n_states = attribution.shape
    starts = np.unique(np.linspace(0, horizon, min(horizon, MOST_STEPS), endpoint=False).astype(np.int64))
    ends = np.append(starts[1:], horizon)
    by_state = attribution.sum(axis=0)
    dearest = np.argsort(-by_state, kind="stable")[:MOST_STATES]
    kept = np.sort(dearest)
    total = by_state.sum()
    return PaidMap(
        paid=np.add.reduceat(attribution[:, kept], starts, axis=0).T,
        by_step=np.add.reduceat(by_step, starts),
        steps=tuple(_span(labels, int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)),
        states=tuple(labels.state(int(s)) for s in kept),
        states_left_out=n_states - len(kept),
        shown=float(by_state[kept].sum() / total) if total else 1.0,
    )


def _span(labels: Labels, first: int, last: int) -> str:
    return labels.step(first) if first == last else f"{labels.step(first)} – {labels.step(last)}"
