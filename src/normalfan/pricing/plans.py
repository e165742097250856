"""Which plan is kept: that of the round before, an older one, a forecast's, or a policy of one's own.

The price of round t is that of the face of one loss m_t under another, ℓ_t,

    Γ_t = min_{u ∈ F(m_t)} ⟨u, ℓ_t⟩ − J*_t,     m_t = ℓ_{t−k}, ℓ_0, or a forecast of ℓ_t,

and for a policy with occupancy q it is ⟨q, A_t⟩, A_t the advantages of ℓ_t.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.bellman import as_policy, uniform_policy
from normalfan.geometry.face import optimal_face
from normalfan.geometry.ties import TieRule
from normalfan.pricing.crossing import Crossing, price, price_policy
from normalfan.problem.arrays import FloatArray, check_shape, first_index, read_numbers
from normalfan.problem.losses import (
    Losses,
    LossStream,
    are_rewards,
    as_stream,
    names_of_rounds,
    rounds_of,
)
from normalfan.problem.mdp import MDP

Against: TypeAlias = str | int | Losses
"""What may be priced: "previous", "first", an age in rounds, forecasts, a policy or actions [H, S]."""


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """The plans that are kept, round by round, and what to call them."""

    name: str  # what is priced
    short: str  # the same, where it stands beside the best action
    planless: int = 0  # rounds at the beginning that have no such plan: their price is 0
    age: int | None = None  # the plan is that of so many rounds before
    forecasts: LossStream | None = None  # the plans are those of these losses
    policy: FloatArray | None = None  # [H, S, A]; with none of the three, the plan of round 0 is kept

    def made_for(
        self, mdp: MDP, blocks: Iterable[tuple[int, int, FloatArray]]
    ) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Of each block the number of its first new round, and m_t and ℓ_t of the new ones, [B, H, S, A]."""
        forecasts = None if self.forecasts is None else _each_round(mdp, self.forecasts)
        earlier = deque[FloatArray](maxlen=self.age or 1)  # copies: a view would keep its block in memory
        number = 0
        for _, shared, block in blocks:
            losses, makers = block[shared:], []
            for t, loss in enumerate(losses, start=number):
                if forecasts is None:
                    makers.append(earlier[0] if t >= self.planless else loss)
                    if self.age or t == 0:
                        earlier.append(np.array(loss))
                elif (forecast := next(forecasts, None)) is not None:
                    makers.append(forecast)
                else:
                    raise InputError(
                        f"the forecasts end before round {t}, but each round needs one: add the rest."
                    )
            yield number, np.stack(makers), losses
            number += len(losses)
        if forecasts is not None and next(forecasts, None) is not None:
            raise InputError(
                f"the forecasts go on after round {number - 1}, the last of the losses, but each round has "
                f"one: drop the others."
            )

    def crossing(self, mdp: MDP, stream: LossStream, t: int, near: FloatArray, *, ties: TieRule) -> Crossing:
        """What the plan of round t costs, and where; `near`: see `last_two`."""
        loss = near[-1]
        if self.policy is not None:
            return price_policy(mdp, self.policy, loss, ties=ties)
        if self.forecasts is not None:
            maker = last_two(mdp, self.forecasts, t)[-1]
        else:
            maker = near[0] if self.age == 1 else last_two(mdp, stream, t - self.age if self.age else 0)[-1]
        return price(optimal_face(mdp, maker, ties=ties), loss, ties=ties)


OLD = "the old plan"
PREVIOUS = Plans("the plan of the round before", OLD, planless=1, age=1)
FIRST = Plans("the plan of the first round", OLD, planless=1)


def keeping(name: str, short: str) -> str:
    """Old plans are kept, others are followed.

    >>> keeping(PREVIOUS.name, PREVIOUS.short), keeping("your plan", "your plan")
    ('Keeping the plan of the round before', 'Following your plan')
    """
    return f"{'Keeping' if short == OLD else 'Following'} {name}"


def read_plans(mdp: MDP, against: Against, stream: LossStream) -> Plans:
    """What a user may price a stream against."""
    if isinstance(against, str | Integral):
        return plans_of_age(against)
    if isinstance(against, np.ndarray | list | tuple):
        numbers = read_numbers("against", against)
        if numbers.ndim in (2, 3):
            policy = as_policy(mdp, numbers) if numbers.ndim == 3 else _policy_of_actions(mdp, numbers)
            return Plans("your plan", "your plan", policy=completed_plan(mdp, policy, "against"))
        check_shape(
            "against",
            numbers.shape[1:],
            mdp.shape,
            "give forecasts [T, H, S, A], a policy [H, S, A] or actions [H, S]",
        )
    if not isinstance(against, LossStream | Iterable):
        raise InputError(
            f'against is {against!r}, but must be "previous", "first", a number of rounds, forecasts or a '
            f"policy: choose one of them."
        )
    forecasts = as_stream(against)
    _check_forecasts(forecasts, stream)
    return Plans("the forecast's plan", "the forecast's plan", forecasts=forecasts)


def plans_of_age(against: str | Integral | int) -> Plans:
    """Plans of the stream itself: "previous", "first", or an age in rounds."""
    if isinstance(against, str):
        check_choice("against", against, ("previous", "first"))
        return PREVIOUS if against == "previous" else FIRST
    check_whole("against", against, "1 is the plan of the round before")
    age = int(against)
    return PREVIOUS if age == 1 else Plans(f"the plan of {age} rounds before", OLD, planless=age, age=age)


def completed_plan(mdp: MDP, policy: FloatArray, source: str) -> FloatArray:
    """A policy [H, S, A] with rows of zeros where `source` says nothing: refused where the plan can be.

    There it may not do either what the problem never allows; what a round forbids is another thing.
    """
    silent = np.asarray(~policy.any(axis=2))
    reached = mdp.initial > 0
    for h in range(mdp.horizon):
        stuck = silent[h] & reached
        if stuck.any():
            state = mdp.labels.state(int(stuck.argmax()))
            raise InputError(
                f"{source} has no action for state {state} at step {mdp.labels.step(h)}, but the plan can be "
                f"there: add it."
            )
        moves = (policy[h] > 0) & reached[:, None]
        if mdp.allowed is not None and (never := moves & ~mdp.allowed[h]).any():
            s, a = first_index(never)
            raise InputError(
                f"{source} takes action {mdp.labels.action(a)} in state {mdp.labels.state(s)} at step "
                f"{mdp.labels.step(h)}, but the model never allows it there: choose another action."
            )
        reached = mdp.transitions.push(h, moves.astype(float)) > 0
    return as_policy(mdp, np.where(silent[:, :, None], uniform_policy(mdp), policy))


def last_two(mdp: MDP, stream: LossStream, t: int) -> FloatArray:
    """[2, H, S, A]: the losses of the rounds t − 1 and t, read again; of round 0 alone if t is 0."""
    return next(rounds_of(stream, slice(max(t - 1, 0), t + 1)).blocks(mdp.shape, 2))


def _policy_of_actions(mdp: MDP, actions: npt.NDArray[np.generic]) -> FloatArray:
    check_shape("against", actions.shape, mdp.shape[:2], "give an action for every step and state")
    unknown = ~np.isin(actions, range(-1, mdp.n_actions))
    if unknown.any():
        where = first_index(unknown)
        raise InputError(
            f"against{list(where)} is {actions[where]}, but an action is an index from 0 to "
            f"{mdp.n_actions - 1} (-1: none, as the plan is never there): check the numbering."
        )
    return np.asarray(actions[:, :, None] == range(mdp.n_actions), dtype=np.float64)


def _check_forecasts(forecasts: LossStream, stream: LossStream) -> None:
    senses = ["rewards" if are_rewards(one) else "losses" for one in (forecasts, stream)]
    if senses[0] != senses[1]:
        raise InputError(
            f"the forecasts are {senses[0]}, but the stream holds {senses[1]}: give both as rewards "
            f"(nf.rewards, a column reward), or none."
        )
    if None not in (forecasts.n_rounds, stream.n_rounds) and forecasts.n_rounds != stream.n_rounds:
        raise InputError(
            f"the forecasts have {forecasts.n_rounds} rounds, but the losses have {stream.n_rounds}: give "
            f"one forecast for each round."
        )
    names = names_of_rounds(forecasts), names_of_rounds(stream)
    for t, (one, other) in enumerate(zip(names[0] or (), names[1] or (), strict=False)):
        if one != other:
            raise InputError(
                f"the forecast of round {t} is called {one!r}, but the round is {other!r}: put both in the "
                f"same order."
            )


def _each_round(mdp: MDP, stream: LossStream) -> Iterator[FloatArray]:
    for i, block in enumerate(stream.blocks(mdp.shape, 56)):
        yield from block[min(i, 1) :]
