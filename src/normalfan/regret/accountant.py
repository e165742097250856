"""One round, accounted for; docs/details/regret.md has the derivation, and the yardsticks.

With A the optimal advantages (zero where tied) and W the values of the restricted backup on the last face,

    regret r = ⟨q, A⟩,      price Γ = ρ·W_1,      selection error ε = ⟨q, A + E W_{h+1} − W_h⟩

of a play q. The three are computed apart, so that r = Γ + ε can fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalfan.geometry.bellman import occupancy, optimal_backup, restricted_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.selectors import first_vertex
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP

ON_FACE_TOLERANCE = 1e-9  # the expected number of steps off the face up to which a play counts as on it


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The accounts of one round. In the first all that compares with a previous round is 0."""

    visits: FloatArray  # [H, S, A] the play's occupancy
    regret: float
    loss_paid: float  # ⟨q, ℓ⟩
    value: float  # J*
    price: float
    selection: float
    off_face_mass: float  # expected number of steps off the previous face
    dimension: int  # of this round's optimal face
    variations: FloatArray  # [3] l1, l2, linf
    path_length: float
    causal_path_length: float

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
    """Keeps the accounts of a run, round after round."""

    def __init__(self, mdp: MDP, *, ties: TieRule = DEFAULT_TIES) -> None:
        self.mdp = mdp
        self.ties = ties
        self._past: _Past | None = None

    def account(self, loss: FloatArray, policy: FloatArray) -> Entry:
        """The entry of a round in which `policy` was played against `loss`, both [H, S, A]."""
        mdp = self.mdp
        visits = occupancy(mdp, policy)
        backup = optimal_backup(mdp, loss)
        tied = backup.tied(mdp, self.ties)
        advantages = np.where(tied, 0.0, backup.advantages)
        face = Face(mdp, tied)
        comparator = first_vertex(face)
        now = _Past(np.array(loss), face, comparator, occupancy(mdp, comparator))
        past = self._past or now
        price, selection = (0.0, 0.0) if past is now else split_regret(past.face, advantages, visits)
        self._past = now
        return Entry(
            visits=visits,
            regret=float((visits * advantages).sum()),
            loss_paid=float((visits * loss).sum()),
            value=backup.value(mdp),
            price=price,
            selection=selection,
            off_face_mass=0.0 if past is now else float(visits[~past.face.mask].sum()),
            dimension=face.dimension,
            variations=loss_distances(now.loss, past.loss),
            path_length=occupancy_distance(now.comparator_visits, past.comparator_visits),
            causal_path_length=causal_distance(mdp, now.comparator, past.comparator),
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


def loss_distances(loss: FloatArray, previous: FloatArray) -> FloatArray:
    """‖loss − previous‖ in the norms l1, l2, linf: [3]."""
    moved = np.abs(loss - previous)
    # Not np.linalg.norm: waking the threads of BLAS for one dot product costs more than the round.
    return np.array([moved.sum(), np.sqrt((moved * moved).sum()), moved.max()])


def occupancy_distance(visits: FloatArray, others: FloatArray) -> float:
    """The L1 distance of two occupancies [H, S, A]."""
    return float(np.abs(visits - others).sum())


def causal_distance(mdp: MDP, policy: FloatArray, other: FloatArray) -> float:
    """How much of the horizon a change of policy [H, S, A] redirects, as a number of steps on average."""
    together = mdp.initial
    steps = 0.0
    for h in range(mdp.horizon):
        common = np.minimum(policy[h], other[h])
        parting = np.maximum(1.0 - common.sum(axis=1), 0.0)  # exactly 0 where certain policies agree
        steps += float(together @ parting) * (mdp.horizon - h)
        together = mdp.transitions.push(h, together[:, None] * common)
    return steps
