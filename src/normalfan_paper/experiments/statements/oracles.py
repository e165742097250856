"""Values without backups, from a list of all vertices: they share no arithmetic with what they judge."""

from __future__ import annotations

import numpy as np

from normalfan.geometry.face import Face, whole_polytope
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP


def listed_values(face: Face, loss: FloatArray) -> FloatArray:
    """⟨v, loss⟩ of every vertex of a face, one by one."""
    return np.array([float((vertex * loss).sum()) for vertex in face.vertices(10**6)])


def listed_optimum(mdp: MDP, loss: FloatArray) -> float:
    """J* as the least of all vertices of the polytope."""
    return float(listed_values(whole_polytope(mdp), loss).min())
