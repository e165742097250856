"""Pairs of tiny problems, before and after, with all their deterministic policies listed.

An oracle that knows no advantages and no restricted backups: it lists every policy, or every policy that
remembers its way, and adds up losses. Probabilities are sixteenths and losses whole numbers: every number is
a fraction with a power of two below it, which floats hold exactly, so that a tie is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from listed_policies import dyadic_rows

from normalfan import MDP

SHAPES = [(1, 1, 3), (1, 3, 2), (2, 1, 3), (2, 2, 2), (3, 2, 2), (2, 3, 2), (3, 3, 2), (2, 2, 3), (4, 2, 2)]
SHAPES += [(3, 3, 1), (3, 1, 2), (2, 4, 2)]


@dataclass(frozen=True, eq=False)
class Day:
    """The dynamics and the loss of one round."""

    kernel: np.ndarray  # [H, S, A, S]
    start: np.ndarray  # [S]
    loss: np.ndarray  # [H, S, A]

    @cached_property
    def policies(self) -> np.ndarray:
        """[N, H, S] actions."""
        steps, states, actions, _ = self.kernel.shape
        return np.indices((actions,) * (steps * states)).reshape(steps, states, -1).transpose(2, 0, 1)

    @cached_property
    def to_go(self) -> np.ndarray:
        """What every policy pays from every state, [N, H + 1, S]."""
        steps, states, _, _ = self.kernel.shape
        total, every = np.zeros((len(self.policies), steps + 1, states)), np.arange(states)
        for h in reversed(range(steps)):
            rows = self.kernel[h, every, self.policies[:, h]]
            own = self.loss[h, every, self.policies[:, h]]
            total[:, h] = own + np.einsum("nst,nt->ns", rows, total[:, h + 1])
        return total

    @cached_property
    def paid(self) -> np.ndarray:
        """What every policy pays from the start, [N]."""
        return self.to_go[:, 0] @ self.start

    @cached_property
    def ties(self) -> np.ndarray:
        """[H, S, A]: the actions with which some cheapest policy from there begins, at every state."""
        best = self.to_go[:, :-1] == self.to_go[:, :-1].min(axis=0)
        actions = range(self.kernel.shape[2])
        return np.stack([(best & (self.policies == a)).any(axis=0) for a in actions], axis=2)

    def follow(self, mask: np.ndarray) -> np.ndarray:
        """[H, S]: where a mask leads from the start."""
        reached = np.zeros(mask.shape[:2], dtype=bool)
        reached[0] = self.start > 0
        for h in range(len(mask) - 1):
            reached[h + 1] = (self.kernel[h][mask[h] & reached[h][:, None]] > 0).any(axis=0)
        return reached

    def within(self, mask: np.ndarray) -> np.ndarray:
        """[N]: the policies that do at every state what the mask keeps."""
        steps, states = mask.shape[:2]
        return mask[np.arange(steps)[:, None], np.arange(states), self.policies].all(axis=(1, 2))

    def regret(self, chosen: np.ndarray) -> float:
        return float(self.paid[chosen].min() - self.paid.min())

    def mdp(self) -> MDP:
        return MDP(self.kernel, self.start)

    def with_loss(self, loss: np.ndarray) -> Day:
        return Day(self.kernel, self.start, loss)


def readings(before: Day, after: Day) -> tuple[float, float, float]:
    """The price of yesterday's plan as optimal policies, on the plan's states, and at every state."""
    free = np.where(before.follow(before.ties)[:, :, None], before.ties, True)
    optimal = before.paid == before.paid.min()
    return after.regret(optimal), after.regret(after.within(free)), after.regret(after.within(before.ties))


def support_grows(before: Day, after: Day) -> bool:
    """Whether a kept action, or the start, gains a successor."""
    kept = before.ties & before.follow(before.ties)[:, :, None]
    gained = (after.kernel > 0) & (before.kernel == 0)
    return bool(gained[:-1][kept[:-1]].any() or ((after.start > 0) & (before.start == 0)).any())


def remembering_price(before: Day, after: Day) -> float:
    """The least regret today of a policy that was optimal yesterday and may remember its way: all listed."""
    steps, states, actions, _ = before.kernel.shape
    ways = [way for h in range(steps) for way in product(range(states), repeat=h + 1)]
    choices = np.indices((actions,) * len(ways)).reshape(len(ways), -1)
    place = {way: i for i, way in enumerate(ways)}
    paid = []
    for day in (before, after):
        total = np.zeros(choices.shape[1])
        chance = {(s,): np.full(choices.shape[1], day.start[s]) for s in range(states)}
        for h in range(steps):
            ahead = {}
            for way, own in chance.items():
                action = choices[place[way]]
                total += own * day.loss[h, way[-1], action]
                for s in range(states):
                    ahead[*way, s] = own * day.kernel[h, way[-1], action, s]
            chance = ahead
        paid.append(total)
    return float(paid[1][paid[0] == paid[0].min()].min() - after.paid.min())


def random_days(seed: int, count: int, shape: tuple[int, int, int] | None = None) -> list[Day]:
    """Rounds of one shape: dynamics that stay, lose or gain successors, move a row, or are all new."""
    rng = np.random.default_rng([seed, 1507])
    steps, states, actions = shape or SHAPES[seed % len(SHAPES)]

    def kernel() -> np.ndarray:
        rows = dyadic_rows(rng, steps * states * actions, states)
        return rows.reshape(steps, states, actions, states)

    days = [Day(kernel(), dyadic_rows(rng, 1, states)[0], np.zeros((steps, states, actions)))]
    for _ in range(count):
        last, kind = days[-1], rng.integers(4)
        rows, start = last.kernel.copy(), last.start
        if kind == 1:  # one row moves
            h, s, a = (int(rng.integers(n)) for n in (steps, states, actions))
            rows[h, s, a] = dyadic_rows(rng, 1, states)[0]
        elif kind == 2:  # every successor stays possible or becomes impossible
            for row in rows.reshape(-1, states):
                there = np.flatnonzero(row)
                row[:] = 0.0
                np.add.at(row, rng.choice(there, size=16), 1 / 16)
        elif kind == 3:
            rows, start = kernel(), dyadic_rows(rng, 1, states)[0]
        moved = rng.integers(0, 3, size=last.loss.shape) * (rng.random(last.loss.shape) < 0.7)
        loss = last.loss if rng.random() < 0.2 else moved.astype(float)
        days.append(Day(rows, start, loss))
    return days[1:]
