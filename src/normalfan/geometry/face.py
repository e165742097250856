"""Faces of the occupancy polytope, each kept as a *canonical* mask [H, S, A]: its support.

(h,s,a) is kept when a is optimal at (h,s) and s is reached from the start through kept actions. Then

    equal masks   ⇔  equal faces                   dim F  =  #kept (h,s,a) − #reached (h,s)
    F ∩ F' ≠ ∅    ⇔  from every start state some policy stays within both masks to the end
    ⟨u, ℓ⟩        is minimised over u ∈ F by one backup restricted to the mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.bellman import as_deterministic_policy, finite_backup, occupancy, restricted_backup
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import BoolArray, FloatArray, check_shape, first_index, read_numbers, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP, follow
from normalfan.text import html_table

Plan: TypeAlias = tuple[npt.NDArray[np.int64], BoolArray]  # actions [H, S] so far, and where they lead

MOST_DRAWN = 60  # steps and states that a picture of a face shows at most: more could not be told apart


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """A face of a problem's occupancy polytope: the plans that some loss makes optimal.

    Get one from `optimal_face` or `whole_polytope`. Faces are compared by content and can be dictionary keys.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> nf.optimal_face(arms, [[[1.0, 1.0, 2.0]]]).meets(nf.optimal_face(arms, [[[0.0, 1.0, 1.0]]]))
    True
    """

    mdp: MDP  # the problem
    mask: BoolArray  # [H, S, A]: what the face's policies may do where they can be; any more is dropped
    plan: BoolArray = field(init=False)  # [H, S, A]: the mask as given, with what it keeps at other states

    def __post_init__(self) -> None:
        check_shape("mask", np.shape(self.mask), self.mdp.shape, "keep or drop every (h, s, a)")
        plan = read_only(np.array(self.mask, dtype=bool))
        kept, reached = follow(self.mdp, plan)
        stuck = reached & ~kept.any(axis=2)
        if stuck.any():
            raise InputError(
                f"mask{list(first_index(stuck))} keeps no action, but a policy of the face can be there: "
                f"keep at least one."
            )
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "mask", kept)

    @property
    def reached(self) -> BoolArray:
        """[H, S]: where the face's policies can be."""
        return np.asarray(self.mask.any(axis=2))

    @property
    def dimension(self) -> int:
        """The dimension of the face: kept actions minus reached states, over all steps."""
        return int(np.count_nonzero(self.mask)) - int(np.count_nonzero(self.reached))

    @property
    def is_vertex(self) -> bool:
        """Whether the face is a single point: one plan."""
        return self.dimension == 0

    @property
    def n_policies(self) -> int:
        """The number of deterministic policies on the mask, as an exact integer."""
        return math.prod(self.mask.sum(axis=2)[self.reached].tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Face):
            return NotImplemented
        return self.mdp.fingerprint == other.mdp.fingerprint and np.array_equal(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash((self.mdp.fingerprint, self.mask.tobytes()))

    def __repr__(self) -> str:
        kept, reached = np.count_nonzero(self.mask), np.count_nonzero(self.reached)
        counts = f"dimension={self.dimension}, kept_actions={kept}, reached_states={reached}"
        return f"Face({counts},\n     mdp={self.mdp!r})"

    def _repr_html_(self) -> str:
        choices = self.mask.sum(axis=2)
        counts = self.dimension, np.count_nonzero(choices), choices.sum(), np.count_nonzero(choices > 1)
        head = ("dimension", "reached (step, state)", "kept actions", "(step, state) with a choice")
        return html_table("Face", head, [[f"{count:,}" for count in counts]])

    def meets(self, other: Face) -> bool:
        """Say whether the two faces share a point: exactly then crossing from one to the other is free."""
        if self.mdp is not other.mdp and self.mdp.fingerprint != other.mdp.fingerprint:
            raise InputError(
                "the two faces belong to different problems, but only faces of one polytope can meet: "
                "build both from the same MDP."
            )
        common = self.mask & other.mask
        viable = np.ones(self.mdp.n_states, dtype=bool)
        for h in range(self.mdp.horizon - 1, -1, -1):
            leaves = self.mdp.transitions.expect(h, (~viable).astype(float)) > 0
            viable = (common[h] & ~leaves).any(axis=1)
        return bool(viable[self.mdp.initial > 0].all())

    def contains(self, visits: npt.ArrayLike, tolerance: float = 1e-9) -> bool:
        """Say whether `visits` [H, S, A] is an occupancy measure on the face, up to `tolerance` an entry."""
        q = read_numbers("occupancy", visits)
        check_shape("occupancy", q.shape, self.mdp.shape, "build it with occupancy(mdp, policy)")
        if not (np.isfinite(q).all() and q.min() >= -tolerance):
            return False
        arriving = self.mdp.initial
        for h in range(self.mdp.horizon):
            if np.abs(q[h].sum(axis=1) - arriving).max() > tolerance:
                return False
            arriving = self.mdp.transitions.push(h, np.asarray(q[h], dtype=np.float64))
        return bool(q[~self.mask].max(initial=0.0) <= tolerance)

    def mask_under(self, loss: FloatArray) -> BoolArray:
        """[H, S, A]: the mask under a loss that may forbid what it keeps (see forbidden.md)."""
        allowed = loss < np.inf
        return self.mask if allowed.all() else follow(self.mdp, completed(self.plan, allowed))[0]

    def under(self, mdp: MDP) -> Face:
        """The face of what the plan does in other dynamics, at every state (see moving.md)."""
        if mdp is self.mdp or mdp.fingerprint == self.mdp.fingerprint:
            return self
        check_shape("mdp", mdp.shape, self.mdp.shape, "dynamics that move keep steps, states and actions")
        return Face(mdp, completed(self.plan, mdp.allowed))

    def minimise(self, loss: npt.ArrayLike) -> tuple[float, FloatArray]:
        """The least expected loss on the face, and a policy [H, S, A] for it, uniform where F never is."""
        checked = as_loss(self.mdp, loss)
        values, actions = restricted_backup(self.mdp, self.mask_under(checked), checked)
        policy = as_deterministic_policy(self.mdp, actions, checked < np.inf)
        return float(self.mdp.initial @ values[0]), policy

    def vertices(self, limit: int = 10_000) -> Iterator[FloatArray]:
        """List the occupancy measures [H, S, A] of the vertices, each once; refuses more than `limit`."""
        if self.n_policies > limit:
            raise InputError(
                f"the face has up to {Decimal(self.n_policies):.3g} vertices, but vertices() lists at most "
                f"{limit}: pass a larger limit, or use minimise, which lists none."
            )
        plans = [(np.full(self.reached.shape, -1), self.mdp.initial > 0)]
        for h in range(self.mdp.horizon):
            plans = [after for plan in plans for after in self._choices(h, *plan)]
        return (occupancy(self.mdp, as_deterministic_policy(self.mdp, actions)) for actions, _ in plans)

    def _choices(self, h: int, actions: npt.NDArray[np.int64], reached: BoolArray) -> Iterator[Plan]:
        """All ways to go on: one kept action in each reached state."""
        for choice in product(*(np.flatnonzero(self.mask[h, s]) for s in np.flatnonzero(reached))):
            chosen = actions.copy()
            chosen[h, reached] = choice
            mass = (chosen[h, :, None] == np.arange(self.mdp.n_actions)).astype(float)
            yield chosen, self.mdp.transitions.push(h, mass) > 0

    def plot(self) -> Any:
        """Draw how many actions are kept at each step and state, of the first 60; needs `normalfan[plot]`."""
        from normalfan.plots import literal, new_figure

        labels, kept = self.mdp.labels, self.mask[:MOST_DRAWN].sum(axis=2).T
        states = np.flatnonzero(kept.any(axis=1))
        counts = kept[states[:MOST_DRAWN]].astype(float)
        n_states, n_steps = counts.shape
        figure, axes = new_figure(
            f"Face of dimension {self.dimension:,}",
            x=_axis_label("step", self.mdp.horizon - n_steps),
            y=_axis_label("state", len(states) - n_states),
        )
        counts[counts == 0] = np.nan  # white: the face's policies are never there
        most = int(kept.max())
        image = axes.imshow(counts, aspect="auto", interpolation="nearest", vmin=1, vmax=max(2, most))
        figure.colorbar(image, label="kept actions", ticks=np.unique(np.linspace(1, most, 6).astype(int)))
        for set_ticks, names in (
            (axes.set_xticks, [labels.step(h) for h in range(n_steps)]),
            (axes.set_yticks, [labels.state(s) for s in states[:n_states].tolist()]),
        ):
            every = 1 + len(names) // 15
            set_ticks(range(0, len(names), every), [literal(name) for name in names[::every]])
        return figure


def optimal_face(mdp: MDP, loss: npt.ArrayLike, *, ties: TieRule = DEFAULT_TIES) -> Face:
    """Find the face of all occupancy measures that are optimal under a loss.

    Parameters
    ----------
    mdp : MDP
    loss : array_like [H, S, A]
    ties : TieRule, optional
        When two actions count as equally good.

    Returns
    -------
    Face

    Raises
    ------
    InputError
        If `loss` has another shape or an entry that is no number.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.optimal_face(nf.MDP([[0, 0, 0]], initial=0, horizon=1), [[[1.0, 1.0, 2.0]]])
    Face(dimension=1, kept_actions=2, reached_states=1,
         mdp=MDP(horizon=1, states=1, actions=3, Deterministic))
    """
    return Face(mdp, finite_backup(mdp, as_loss(mdp, loss)).tied(mdp, ties))


def whole_polytope(mdp: MDP) -> Face:
    """Return the face of a constant loss: every occupancy measure of the problem.

    Parameters
    ----------
    mdp : MDP

    Returns
    -------
    Face

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.whole_polytope(nf.MDP([[0, 0, 0]], initial=0, horizon=2)).dimension
    4
    """
    return Face(mdp, np.ones(mdp.shape, dtype=bool) if mdp.allowed is None else mdp.allowed)


def completed(plan: BoolArray, allowed: BoolArray | None) -> BoolArray:
    """What a plan [..., A] keeps of what is allowed; where that is nothing, all that is allowed."""
    kept = plan if allowed is None else plan & allowed
    return np.where(kept.any(axis=-1, keepdims=True), kept, True if allowed is None else allowed)


def _axis_label(noun: str, missing: int) -> str:
    return f"{noun} ({missing:,} more are not drawn)" if missing else noun
