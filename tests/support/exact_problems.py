"""Tiny problems in fractions, and their answers by enumeration.

The oracle lists all deterministic policies, follows each forward from the start, and takes minima
over the list. It shares nothing with the package: no backup, no mask, no reading of floats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from normalfan.exact.certificate import Certificate
from normalfan.exact.certify import certify
from normalfan.problem.mdp import MDP

Policy = tuple[tuple[int, ...], ...]  # [H][S]


@dataclasses.dataclass(frozen=True)
class Tiny:
    """A problem in fractions, small enough to enumerate its policies."""

    initial: list[Fraction]  # [S]
    kernels: list[list[list[list[Fraction]]]]  # [H][S][A][S]
    previous_loss: list[list[list[Fraction]]]  # [H][S][A]
    loss: list[list[list[Fraction]]]  # [H][S][A]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.loss), len(self.loss[0]), len(self.loss[0][0])

    def mdp(self) -> MDP:
        return MDP(as_floats(self.kernels), as_floats(self.initial))

    def certify(self, max_denominator: int | None = None) -> Certificate:
        losses = as_floats(self.previous_loss), as_floats(self.loss)
        return certify(self.mdp(), *losses, max_denominator=max_denominator)


def as_floats(fractions: Any) -> np.ndarray[Any, Any]:
    return np.array(fractions, dtype=object).astype(float)


def every_policy(tiny: Tiny) -> Iterator[Policy]:
    H, S, A = tiny.shape
    for flat in product(range(A), repeat=H * S):
        yield tuple(flat[h * S : (h + 1) * S] for h in range(H))


def visits_of(tiny: Tiny, policy: Policy) -> list[list[Fraction]]:
    visits = [tiny.initial]
    for h, actions in enumerate(policy[:-1]):
        here = visits[-1]
        visits.append(
            [
                sum((here[s] * tiny.kernels[h][s][a][t] for s, a in enumerate(actions)), Fraction(0))
                for t in range(len(here))
            ]
        )
    return visits


def value_of(tiny: Tiny, policy: Policy, loss: list[list[list[Fraction]]]) -> Fraction:
    visits = visits_of(tiny, policy)
    return sum(
        (visits[h][s] * loss[h][s][a] for h, layer in enumerate(policy) for s, a in enumerate(layer)),
        Fraction(0),
    )


def old_optimal(tiny: Tiny) -> list[Policy]:
    values = {policy: value_of(tiny, policy, tiny.previous_loss) for policy in every_policy(tiny)}
    return [policy for policy, value in values.items() if value == min(values.values())]


def enumerated_price(tiny: Tiny) -> Fraction:
    best = min(value_of(tiny, policy, tiny.loss) for policy in every_policy(tiny))
    return min(value_of(tiny, policy, tiny.loss) for policy in old_optimal(tiny)) - best


def enumerated_mask(tiny: Tiny) -> set[tuple[int, int, int]]:
    return {
        (h, s, policy[h][s])
        for policy in old_optimal(tiny)
        for h, layer in enumerate(visits_of(tiny, policy))
        for s, visit in enumerate(layer)
        if visit > 0
    }


def is_cheapest_old_plan(tiny: Tiny, policy: Any) -> bool:
    """Whether a certificate's policy, completed anyhow where it is None, attains the price."""
    complete = tuple(tuple(0 if a is None else a for a in layer) for layer in policy)
    best = min(value_of(tiny, other, tiny.loss) for other in every_policy(tiny))
    attains = value_of(tiny, complete, tiny.loss) - best == enumerated_price(tiny)
    return attains and complete in old_optimal(tiny)


HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
SPLITS = [[Fraction(1)], [HALF, HALF], [QUARTER, 3 * QUARTER], [THIRD, 2 * THIRD]]
THREEFOLD_SPLITS = [[THIRD] * 3, [HALF, QUARTER, QUARTER]]
# All sizes whose policies can be listed: at most 3**4 or 2**6 of them.
SIZES = [(1, 1, 1), (1, 1, 3), (1, 3, 2), (2, 1, 3), (3, 2, 1), (2, 2, 2), (2, 2, 3), (2, 3, 2)]
SIZES += [(3, 1, 2), (3, 2, 2), (1, 4, 2), (4, 3, 1)]


@st.composite
def distributions(draw: st.DrawFn, n_states: int) -> list[Fraction]:
    splits = [s for s in SPLITS + THREEFOLD_SPLITS if len(s) <= n_states]
    split = draw(st.sampled_from(splits))
    places = draw(st.permutations(range(n_states)))
    row = [Fraction(0)] * n_states
    for place, probability in zip(places, split, strict=False):
        row[place] = probability
    return row


def losses(H: int, S: int, A: int, unit: Fraction) -> st.SearchStrategy[list[list[list[Fraction]]]]:
    # Few distinct numbers, so that ties are common and so are near misses.
    entry = st.integers(-2, 2).map(lambda n: n * unit)
    layer = st.lists(st.lists(entry, min_size=A, max_size=A), min_size=S, max_size=S)
    return st.lists(layer, min_size=H, max_size=H)


@st.composite
def tiny_problems(draw: st.DrawFn, unit: Fraction = QUARTER) -> Tiny:
    H, S, A = draw(st.sampled_from(SIZES))
    kernels = [
        [[draw(distributions(S)) for _ in range(A)] for _ in range(S)]
        for _ in range(1 if draw(st.booleans()) else H)
    ]
    return Tiny(
        initial=draw(distributions(S)),
        kernels=kernels if len(kernels) == H else [deepcopy(kernels[0]) for _ in range(H)],
        previous_loss=draw(losses(H, S, A, unit)),
        loss=draw(losses(H, S, A, unit)),
    )


def with_entry(nested: Any, place: tuple[int, ...], new: Any) -> Any:
    """Nested tuples with one entry replaced, or, if `new` is a function, changed by it."""
    if not place:
        return new(nested) if callable(new) else new
    first, *rest = place
    return (*nested[:first], with_entry(nested[first], tuple(rest), new), *nested[first + 1 :])
