"""Random small problems full of corners: ties, unreachable states, H=1, one action, one state."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from normalfan import MDP


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem in integers, so that floats and exact rationals can both be made of it."""

    counts: np.ndarray  # [H, S, A, S], non-negative, no empty row
    start: np.ndarray  # [S], non-negative, not all zero
    losses: np.ndarray  # [T, H, S, A], integers

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.counts.shape[:3]

    def mdp(self, kind: str = "dense") -> MDP:
        probabilities = self.counts / self.counts.sum(axis=-1, keepdims=True)
        initial = self.start / self.start.sum()
        if kind == "dense":
            return MDP(probabilities, initial)
        if kind == "sparse":
            from scipy.sparse import csr_array

            horizon, n_states, _ = self.shape
            flat = probabilities.reshape(horizon, -1, n_states)
            return MDP([csr_array(kernel) for kernel in flat], initial)
        assert kind == "deterministic"
        assert self.is_deterministic
        return MDP(self.counts.argmax(axis=-1), initial)

    def kinds(self) -> tuple[str, ...]:
        every = ("dense", "sparse")
        return (*every, "deterministic") if self.is_deterministic else every

    @property
    def is_deterministic(self) -> bool:
        return bool(((self.counts > 0).sum(axis=-1) == 1).all())

    def probability(self, h: int, s: int, a: int) -> dict[int, Fraction]:
        return self._rows[h][s][a]

    @cached_property
    def _rows(self) -> list[list[list[dict[int, Fraction]]]]:
        return [[[_shares(row) for row in rows] for rows in layer] for layer in self.counts.tolist()]

    def initial(self) -> dict[int, Fraction]:
        return _shares(self.start.tolist())


def _shares(counts: list[int]) -> dict[int, Fraction]:
    total = sum(counts)
    return {j: Fraction(count, total) for j, count in enumerate(counts) if count}


def random_problem(rng: np.random.Generator, *, rounds: int | None = None) -> Problem:
    horizon, n_states, n_actions = (int(rng.integers(1, 5)) for _ in range(3))
    n_rounds = int(rng.integers(2, 7)) if rounds is None else rounds
    shape = (horizon, n_states, n_actions)
    # Few successors leave states unreachable; a third of the problems have exactly one.
    successors = 1 if rng.random() < 1 / 3 else int(rng.integers(1, n_states + 1))
    counts = np.zeros((*shape, n_states), dtype=np.int64)
    for row in counts.reshape(-1, n_states):
        row[rng.choice(n_states, size=successors, replace=False)] = rng.integers(1, 4, successors)
    start = np.zeros(n_states, dtype=np.int64)
    start[rng.choice(n_states, size=int(rng.integers(1, n_states + 1)), replace=False)] = 1
    start *= rng.integers(1, 3, n_states)
    # A narrow range of losses makes ties common; some rounds repeat or barely differ.
    losses = rng.integers(-1, int(rng.integers(1, 4)), size=(n_rounds, *shape))
    for t in range(1, n_rounds):
        if rng.random() < 0.3:
            losses[t] = losses[t - 1] * int(rng.integers(1, 3))
            losses[t].reshape(-1)[rng.integers(losses[t].size)] += int(rng.integers(-1, 2))
    return Problem(counts, start, losses)


def random_stream(seed: int) -> tuple[MDP, np.ndarray]:
    """A small problem and six rounds of losses [6, H, S, A]."""
    problem = random_problem(np.random.default_rng([seed, 51]), rounds=6)
    return problem.mdp(), problem.losses.astype(float)
