"""Random faces, small enough to list, and what selectors are tried with on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalfan import MDP, Face
from normalfan.problem.mdp import follow


class Constant:
    """A model that always predicts the same."""

    def __init__(self, loss: np.ndarray) -> None:
        self.loss = loss

    def update(self, loss: np.ndarray) -> None:
        pass

    def predict(self) -> np.ndarray:
        return self.loss


def random_faces(
    seed: int, count: int, most: int = 40, n_states: int | None = None
) -> Iterator[tuple[Face, np.random.Generator]]:
    """Degenerate faces of random problems, with at most `most` deterministic policies."""
    rng = np.random.default_rng(seed)
    while count:
        H, S, A = (int(n) for n in rng.integers(1, 4, size=3))
        S = S if n_states is None else n_states
        kernel = rng.dirichlet(np.full(S, 0.6), size=(H, S, A))
        kernel = np.where(kernel < 0.05, 0.0, kernel)
        mdp = MDP(kernel / kernel.sum(axis=-1, keepdims=True), rng.dirichlet(np.ones(S)))
        mask = rng.random((H, S, A)) < 0.7
        mask[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = True
        face = Face(mdp, follow(mdp, mask)[0])
        if 1 < face.n_policies <= most:
            count -= 1
            yield face, rng


def random_policy(face: Face, rng: np.random.Generator, *, sharp: bool) -> np.ndarray:
    policy = rng.dirichlet(np.ones(face.mdp.n_actions), size=face.mask.shape[:2])
    return np.eye(face.mdp.n_actions)[policy.argmax(axis=2)] if sharp else policy
