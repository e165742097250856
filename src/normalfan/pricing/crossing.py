"""The price of one crossing.

Staying on a face F under a loss ℓ costs at least

    Γ = min_{u ∈ F} ⟨u, ℓ⟩ − min_q ⟨q, ℓ⟩ = ρ·W_1,
    W_h(s) = min over a in F's mask at (h,s) of  A_h(s,a) + E[W_{h+1}(s')],

with A the optimal advantages of ℓ: a sum of non-negative terms, not a difference of two large values. The
minimiser's occupancy u shows where it is paid: Γ = Σ u_h(s,a) A_h(s,a). An advantage that the tie rule counts
as none is none here too, hence Γ = 0 exactly when F meets the optimal face of ℓ. Where ℓ allows none of F's
actions, all that it allows stand for them (docs/details/forbidden.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.geometry.bellman import (
    allowed_policy,
    as_deterministic_policy,
    occupancy,
    optimal_backup,
    restricted_backup,
)
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import new_figure
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan.text import html_table, number


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
