"""One round, accounted for.

A play q meets a loss ℓ with optimal advantages A (those that the tie rule counts as none set to zero).
By the performance-difference identity its regret is a sum of non-negative terms,

    r = ⟨q, ℓ⟩ − J* = ⟨q, A⟩.

Let W be the values of the restricted backup on the previous optimal face F, so that the price is
Γ = ρ·W_1, and put W = 0 where F never is. Flow conservation gives, for *every* occupancy q and every
function W with W_{H+1} = 0, Σ q_h(s,a) (E W_{h+1} − W_h(s)) = −ρ·W_1. Hence

    ε = r − Γ = ⟨q, A + E W_{h+1} − W_h⟩,

which is how the selection error is computed. On the actions that F keeps the bracket is never negative,
because W is the least of A + E W over them; so for a play on the face ε is a sum of non-negative terms
too, and no clipping is needed. A play that leaves the face may have brackets of either sign. Its ε is
reported as it comes, negative where the learner did better than any point of F, and the round is
flagged: there is no decomposition to speak of.

r, Γ and ε are computed apart, by three formulas. That r = Γ + ε is then a statement that can fail.

    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> accountant = Accountant(arms)
    >>> even = np.array([[[0.5, 0.5]]])
    >>> accountant.account(np.array([[[0.0, 0.0]]]), even).regret       # all is optimal
    0.0
    >>> entry = accountant.account(np.array([[[0.0, 1.0]]]), even)      # the whole simplex was the face
    >>> entry.regret, entry.price, entry.selection, entry.on_face
    (0.5, 0.0, 0.5, True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.geometry.bellman import occupancy, optimal_backup, restricted_backup
from normalfan.geometry.face import Face, canonical
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.tracking.selection import first_vertex
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.mdp import MDP
from normalfan.regret.lengths import causal_distance, loss_distances, occupancy_distance

ON_FACE_TOLERANCE = 1e-9
"""The mass off the face, as an expected number of steps, up to which a play counts as on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """How far the problem moved since the round before, by the yardsticks of `lengths`."""

    variations: FloatArray  # [3] l1, l2, linf
    path_length: float
    causal_path_length: float


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The accounts of one round; in the first there is no previous face, loss or comparator."""

    visits: FloatArray  # [H, S, A] the play's occupancy
    regret: float
    paid: float  # ⟨q, ℓ⟩
    value: float  # J*
    price: float  # 0 in the first round
    selection: float  # 0 in the first round
    off_face_mass: float  # expected number of steps off the previous face, 0 in the first round
    dimension: int  # of this round's optimal face
    motion: Motion  # since the round before, all 0 in the first

    @property
    def on_face(self) -> bool:
        return self.off_face_mass <= ON_FACE_TOLERANCE


@dataclass(frozen=True, slots=True, eq=False)
class _Past:
    loss: FloatArray
    face: Face
    comparator: FloatArray  # policy [H, S, A], the first vertex of the face
    comparator_visits: FloatArray  # [H, S, A]


class Accountant:
    """Keeps the books of a run, round after round."""

    def __init__(self, mdp: MDP, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.mdp = mdp
        self.ties = ties
        self._past: _Past | None = None

    @property
    def face(self) -> Face | None:
        """The optimal face of the last loss."""
        return None if self._past is None else self._past.face

    def account(self, loss: FloatArray, policy: FloatArray) -> Entry:
        """The entry of a round in which `policy` was played against `loss`, both [H, S, A]."""
        mdp, past = self.mdp, self._past
        visits = occupancy(mdp, policy)
        backup = optimal_backup(mdp, loss)
        tied = backup.tied(mdp, self.ties)
        advantages = np.where(tied, 0.0, backup.advantages)
        face = Face(mdp, canonical(mdp, tied))
        comparator = first_vertex(face)
        present = _Past(np.array(loss), face, comparator, occupancy(mdp, comparator))
        price, selection = (0.0, 0.0) if past is None else split_regret(past.face, advantages, visits)
        self._past = present
        return Entry(
            visits=visits,
            regret=float((visits * advantages).sum()),
            paid=float((visits * loss).sum()),
            value=backup.value(mdp),
            price=price,
            selection=selection,
            off_face_mass=0.0 if past is None else float(visits[~past.face.mask].sum()),
            dimension=face.dimension,
            motion=_motion(present, past),
        )


def split_regret(face: Face, advantages: FloatArray, visits: FloatArray) -> tuple[float, float]:
    """Γ and ε of an occupancy [H, S, A] under a loss with these advantages [H, S, A]."""
    mdp = face.mdp
    values, _ = restricted_backup(mdp, face.mask, advantages)
    selection = 0.0
    for h in range(mdp.horizon):
        excess = advantages[h] + mdp.transitions.expect(h, values[h + 1]) - values[h, :, None]
        selection += float((visits[h] * excess).sum())
    return float(mdp.initial @ values[0]), selection


def _motion(present: _Past, past: _Past | None) -> Motion:
    if past is None:
        return Motion(read_only(np.zeros(3)), 0.0, 0.0)
    return Motion(
        variations=read_only(loss_distances(present.loss, past.loss)),
        path_length=occupancy_distance(present.comparator_visits, past.comparator_visits),
        causal_path_length=causal_distance(present.face.mdp, present.comparator, past.comparator),
    )
