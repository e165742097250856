"""Which plan is kept, and what a round costs under it.

Staying on a face F under a loss ℓ costs at least

    Γ = min_{u ∈ F} ⟨u, ℓ⟩ − min_q ⟨q, ℓ⟩ = ρ·W_1,
    W_h(s) = min over a in F's mask at (h,s) of  A_h(s,a) + E[W_{h+1}(s')],

with A the optimal advantages of ℓ: a sum of non-negative terms, not a difference of two large values. The
minimiser's occupancy u shows where it is paid: Γ = Σ u_h(s,a) A_h(s,a). An advantage that the tie rule counts
as none is none here too, hence Γ = 0 exactly when F meets the optimal face of ℓ. Where ℓ allows none of F's
actions, all that it allows stand for them (docs/details/forbidden.md).

In a stream F is the optimal face of another loss: ℓ_{t−k}, ℓ_0, or a forecast of ℓ_t. A policy with occupancy
q costs ⟨q, A⟩.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.bellman import (
    allowed_policy,
    as_deterministic_policy,
    as_policy,
    completed_plan,
    occupancy,
    optimal_backup,
    policy_of_actions,
    restricted_backup,
)
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import new_figure
from normalfan.problem.arrays import FloatArray, check_shape, read_numbers, read_only
from normalfan.problem.losses import (
    Losses,
    LossStream,
    are_rewards,
    as_loss,
    as_stream,
    names_of_rounds,
    numbered,
)
from normalfan.problem.mdp import MDP
from normalfan.text import html_table, number

Against: TypeAlias = str | int | Losses
"""What may be priced: "previous", "first", an age in rounds, forecasts, a policy or actions [H, S]."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Crossing:
    """What staying on a face costs under a loss, and where it is paid: what `price` returns.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.price(nf.optimal_face(arms, [[[0.0, 1.0]]]), [[[3.0, 1.0]]])
    Crossing: price 2 on a value of 1; most at step 0 (2)
    """

    price: float  # Γ, the least regret of staying on the face
    value: float  # J*, the best expected loss of any policy
    attribution: FloatArray  # [H, S, A]: the part of the price paid there
    policy: FloatArray  # [H, S, A]: the cheapest policy of the face
    step_names: tuple[str, ...] | None = None  # [H]; None if steps are numbered

    @property
    def by_step(self) -> FloatArray:
        """[H]: the part of the price paid at each step."""
        paid: FloatArray = self.attribution.sum(axis=(1, 2))
        return paid

    def plot(self) -> Any:
        """Draw the part of the price paid at each step; returns a matplotlib figure."""
        figure, axes = new_figure(f"Price {number(self.price)}, by step", x="step", y="price")
        axes.bar(range(len(self.policy)), self.by_step)
        if self.step_names and len(self.step_names) <= 30:
            axes.set_xticks(range(len(self.step_names)), self.step_names, rotation=90)
        return figure

    def __repr__(self) -> str:
        text = f"Crossing: price {number(self.price)} on a value of {number(self.value)}"
        return text + "".join(f"; most at step {name} ({part})" for name, part in self._costliest_steps(1))

    def _repr_html_(self) -> str:
        caption = f"Price {number(self.price)} on a value of {number(self.value)}; the costliest steps"
        return html_table(caption, ("step", "price"), self._costliest_steps(5))

    def _costliest_steps(self, count: int) -> list[tuple[str, str]]:
        paid = self.by_step
        order = [h for h in np.argsort(-paid, kind="stable")[:count].tolist() if paid[h] > 0]
        return [(self.step_names[h] if self.step_names else str(h), number(paid[h])) for h in order]


def price(face: Face, loss: npt.ArrayLike, *, ties: TieRule = DEFAULT_TIES) -> Crossing:
    """The least regret, under a loss, of staying on a face: Γ = min_{u ∈ F} ⟨u, ℓ⟩ − min_q ⟨q, ℓ⟩.

    Parameters
    ----------
    face : Face
        The plans to stay with: `optimal_face(mdp, previous_loss)`.
    loss : array_like [H, S, A]
    ties : TieRule, optional
        Which differences count as none.

    Returns
    -------
    Crossing

    Raises
    ------
    InputError
        If the loss has the wrong shape or is no number.

    Examples
    --------
    >>> import normalfan as nf
    >>> yesterday = nf.optimal_face(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[0.0, 1.0, 2.0]]])
    >>> nf.price(yesterday, [[[3.0, 1.0, 2.0]]]).price
    2.0
    """
    mdp = face.mdp
    backup = optimal_backup(mdp, as_loss(mdp, loss))
    advantages = backup.settled(mdp, ties)
    values, actions = restricted_backup(mdp, face.mask_under(backup.loss), advantages)
    policy = as_deterministic_policy(mdp, actions, advantages < np.inf)
    regret = float(mdp.initial @ values[0])
    return Crossing(regret, backup.value(mdp), *_paid(mdp, policy, advantages), mdp.labels.steps)


def price_policy(mdp: MDP, policy: FloatArray, loss: FloatArray, *, ties: TieRule = DEFAULT_TIES) -> Crossing:
    """The regret of a policy [H, S, A] under a loss, ⟨q, A⟩, in the same form."""
    backup = optimal_backup(mdp, as_loss(mdp, loss))
    advantages = backup.settled(mdp, ties)
    paid, policy = _paid(mdp, allowed_policy(mdp, policy, advantages), advantages)
    return Crossing(float(paid.sum()), backup.value(mdp), paid, policy, mdp.labels.steps)


def _paid(mdp: MDP, policy: FloatArray, advantages: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where a policy pays its regret, [H, S, A], and the policy."""
    paid = occupancy(mdp, policy) * np.where(advantages < np.inf, advantages, 0.0)
    return read_only(paid), read_only(policy)


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
            policy = as_policy(mdp, numbers) if numbers.ndim == 3 else policy_of_actions(mdp, numbers)
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
    for _, shared, block in numbered(stream.blocks(mdp.shape, 56)):
        yield from block[shared:]
