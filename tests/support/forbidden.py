"""Tiny problems in which actions are not allowed, with all their deterministic policies listed.

An oracle that knows no advantages and no restricted backups: it lists every policy and adds up losses. What
is not allowed is a flag here, never a number. Probabilities are sixteenths and losses whole numbers, so that
floats are exact and a tie is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from listed_policies import dyadic_rows

from normalfan import MDP

MOST_POLICIES = 5000


@dataclass(frozen=True)
class Listed:
    kernel: np.ndarray  # [H, S, A, S]
    start: np.ndarray  # [S]
    costs: np.ndarray  # [T, H, S, A], all finite
    allowed: np.ndarray  # [T, H, S, A]

    @property
    def losses(self) -> np.ndarray:
        return np.where(self.allowed, self.costs, np.inf)

    @property
    def is_certain(self) -> bool:
        return bool((self.kernel.max(axis=-1) == 1).all())

    def mdp(self, kind: str, allowed: np.ndarray | None = None) -> MDP:
        from scipy.sparse import csr_array

        steps, states, _, _ = self.kernel.shape
        if kind == "deterministic":
            return MDP(self.kernel.argmax(axis=-1), self.start, allowed=allowed)
        if kind == "sparse":
            flat = self.kernel.reshape(steps, -1, states)
            return MDP([csr_array(rows) for rows in flat], self.start, allowed=allowed)
        return MDP(self.kernel, self.start, allowed=allowed)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("dense", "sparse", "deterministic") if self.is_certain else ("dense", "sparse")

    @cached_property
    def policies(self) -> np.ndarray:
        """[N, H, S] actions."""
        steps, states, actions, _ = self.kernel.shape
        return np.indices((actions,) * (steps * states)).reshape(steps, states, -1).transpose(2, 0, 1)

    def costs_to_go(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Of every policy from every state, [N, H + 1, S]: its cost, and whether it does what it may not.

        A state in which nothing is allowed is an end: it costs nothing.
        """
        steps, states, _, _ = self.kernel.shape
        total = np.zeros((len(self.policies), steps + 1, states))
        wrong = np.zeros(total.shape, dtype=bool)
        every = np.arange(states)
        for h in reversed(range(steps)):
            move = self.policies[:, h]
            rows = self.kernel[h, every, move]  # [N, S, S]
            total[:, h] = self.costs[t, h, every, move] + np.einsum("nst,nt->ns", rows, total[:, h + 1])
            wrong[:, h] = ~self.allowed[t, h, every, move] | ((rows > 0) & wrong[:, None, h + 1]).any(axis=2)
            closed = ~self.allowed[t, h].any(axis=1)
            total[:, h, closed], wrong[:, h, closed] = 0.0, False
        return total, wrong

    def ties(self, t: int) -> np.ndarray:
        """[H, S, A]: the actions with which some cheapest policy from there begins."""
        steps, _, actions, _ = self.kernel.shape
        total, wrong = self.costs_to_go(t)
        best = np.where(wrong, np.inf, total)[:, :steps]
        cheapest = best == best.min(axis=0)
        tied = np.stack([(cheapest & (self.policies == a)).any(axis=0) for a in range(actions)], axis=2)
        return tied & self.allowed[t].any(axis=2, keepdims=True)

    def from_the_start(self, t: int) -> np.ndarray:
        """What each policy costs, [N]; infinite if it does what it may not."""
        total, wrong = self.costs_to_go(t)
        return np.where((wrong[:, 0] & (self.start > 0)).any(axis=1), np.inf, total[:, 0] @ self.start)

    def price(self, t: int) -> float:
        """Γ: the least cost of doing what was best before."""
        return self.price_of(self.ties(t - 1), t)

    def price_of(self, plan: np.ndarray, t: int) -> float:
        """What keeping to a plan [H, S, A] costs; where it keeps nothing allowed, all that is counts."""
        kept = plan & self.allowed[t]
        kept = np.where(kept.any(axis=2, keepdims=True), kept, self.allowed[t])
        kept |= ~self.allowed[t].any(axis=2, keepdims=True)
        steps, states, _, _ = self.kernel.shape
        chosen = kept[np.arange(steps)[:, None], np.arange(states), self.policies].all(axis=(1, 2))
        now = self.from_the_start(t)
        return float(now[chosen].min() - now.min())

    def face(self, t: int) -> np.ndarray:
        """[H, S, A]: the ties where they lead."""
        mask, reached = self.ties(t), self.start > 0
        for h, layer in enumerate(mask):
            layer &= reached[:, None]
            reached = (self.kernel[h][layer] > 0).any(axis=0)
        return mask

    def margin(self, t: int) -> float:
        """The least that a policy outside the face loses."""
        lost = self.from_the_start(t) - self.from_the_start(t).min()
        return float(lost[lost > 0].min(initial=np.inf))


def listed(seed: int, *, rounds: int = 3, moving: bool = True) -> Listed:
    rng = np.random.default_rng([seed, 77])
    steps, states, actions = (int(n) for n in rng.integers(1, 4, size=3))
    if seed % 5 == 0:
        steps, states, actions = 1, 1, int(rng.integers(1, 12))
    if actions ** (steps * states) > MOST_POLICIES:
        actions = 2
    shape = (steps, states, actions)
    kernel = dyadic_rows(rng, np.prod(shape), states).reshape(*shape, states)
    if rng.random() < 1 / 3:
        kernel = np.eye(states)[rng.integers(states, size=shape)]
    start = dyadic_rows(rng, 1, states)[0]
    costs = rng.integers(0, int(rng.integers(2, 5)), size=(rounds, *shape)).astype(float)
    allowed = rng.random((rounds if moving else 1, *shape)) < rng.choice([0.4, 0.7, 0.9])
    for mask in allowed:
        open_dead_ends(rng, kernel, start, mask)
    return Listed(kernel, start, costs, np.array(np.broadcast_to(allowed, costs.shape)))


def open_dead_ends(rng: np.random.Generator, kernel: np.ndarray, start: np.ndarray, mask: np.ndarray) -> None:
    """Allow an action wherever some policy can be; states that none can be in may stay closed."""
    reached = start > 0
    for h, layer in enumerate(mask):
        for s in np.flatnonzero(reached & ~layer.any(axis=1)):
            layer[s, rng.integers(layer.shape[1])] = True
        reached = (kernel[h][layer & reached[:, None]] > 0).any(axis=0)
