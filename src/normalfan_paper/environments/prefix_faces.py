"""Degenerate faces on a layered tree: all paths that share a prefix are optimal.

A round t is a string b_t of H bits and a length k_t: only the first k_t steps count, and F_t holds the
2^(H−k_t) paths that begin like b_t. From round to round the prefixes grow coarser or finer (k moves) and come
to conflict (b moves). What a path x pays, with c the length of its common prefix with b_t and c < k_t:

    to the prefix   γ (k_t − c): whoever has left the prefix pays on each step it has left; the rest is free
    to the end      γ (H − c): the same, on every step that the tree has left, as on the layered tree
    separable       γ times the number of wrong bits among the first k_t

In all of them a path on the prefix pays nothing. Take the face F of round t−1, of length k, against round t:

    conflict    b_{t−1} and b_t differ on a layer that both prefixes cover: every point of F leaves the prefix
                there. With the first two losses all pay the price and nothing more
    refinement  no conflict and k_t > k: some points of F are still optimal, the price is 0, and what a
                selector gets wrong on the layers k+1..k_t is selection error
    otherwise   F lies in F_t, and nobody pays

    >>> faces = PrefixFaces(1.0, np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0]]), np.array([1, 3, 2]))
    >>> faces.prices()
    array([0., 0., 2.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, read_only
from normalfan_paper.environments.constructions import Instance, layered_tree_mdp

Charge: TypeAlias = Literal["to the end", "to the prefix", "separable"]


@dataclass(frozen=True, slots=True, eq=False)
class PrefixFaces:
    """A sequence of prefix faces; layers count from 1, rounds without a past cost nothing."""

    gamma: float
    strings: IntArray  # [T, H] of 0 and 1
    lengths: IntArray  # [T] of the prefixes, 1..H
    charge: Charge = "to the prefix"

    def __post_init__(self) -> None:
        rounds, horizon = np.shape(self.strings)
        lengths = np.asarray(self.lengths)
        if lengths.shape != (rounds,) or not ((lengths >= 1) & (lengths <= horizon)).all():
            raise InputError(
                f"lengths has shape {list(lengths.shape)} and a least entry of "
                f"{lengths.min(initial=horizon)}, but must be [{rounds}] with entries "
                f"1 to {horizon}: give the length of each round's prefix."
            )
        if self.charge not in ("to the end", "to the prefix", "separable"):
            raise InputError(
                f"charge is {self.charge!r}, but must be 'to the prefix', 'to the end' or 'separable': "
                f"choose one."
            )
        object.__setattr__(self, "strings", read_only(np.array(self.strings, dtype=np.int64)))
        object.__setattr__(self, "lengths", read_only(lengths.astype(np.int64)))

    @property
    def horizon(self) -> int:
        return int(self.strings.shape[1])

    def costs(self, wrong: BoolArray) -> FloatArray:
        """[T]: what paths [T, H] pay that are wrong where `wrong` says so, one path a round."""
        counted = wrong & (np.arange(self.horizon) < self.lengths[:, None])
        if self.charge == "separable":
            return np.asarray(self.gamma * counted.sum(axis=1))
        return self.gamma * np.where(counted.any(axis=1), self._last() - counted.argmax(axis=1), 0)

    def expected_costs(self, astray: FloatArray) -> FloatArray:
        """[T]: what policies pay that take a wrong step with probability `astray` [T, H].

        On the layers of the prefix `astray` is meant at the node on b_t, which for separable losses must be
        the same at every node of the layer.
        """
        value = np.zeros(len(self.lengths))
        for h in reversed(range(self.horizon)):
            ahead = value + self.gamma if self.charge == "separable" else self.gamma * (self._last() - h)
            moved = value + astray[:, h] * (ahead - value)
            value = np.where(h < self.lengths, moved, 0.0)
        return value

    def prices(self) -> FloatArray:
        """[T]: the price of each round against the face before: what its best point pays."""
        wrong = np.zeros(self.strings.shape, dtype=bool)
        held = np.arange(self.horizon) < self.lengths[:-1, None]
        wrong[1:] = held & (self.strings[1:] != self.strings[:-1])
        return self.costs(wrong)

    def free_layers(self) -> IntArray:
        """[T]: H − k, the layers on which the face leaves both actions; its dimension is 2^(H−k) − 1."""
        return self.horizon - self.lengths

    def explicit(self) -> Instance:
        """The tree with all its states, for small H."""
        tree = layered_tree_mdp(self.horizon)
        losses = np.zeros((len(self.lengths), *tree.shape))
        for t, (string, length) in enumerate(zip(self.strings, self.lengths, strict=True)):
            on = 0
            for h in range(self.horizon):
                if self.charge == "separable":
                    losses[t, h, :, 1 - string[h]] = self.gamma * (h < length)
                    continue
                everywhere = h < length or self.charge == "to the end"
                losses[t, h] = self.gamma * everywhere
                if h < length:
                    losses[t, h, on, string[h]] = 0.0
                    on = 2 * on + string[h]
                else:  # every node below the prefix
                    below = 2 ** (h - length)
                    losses[t, h, on * below : (on + 1) * below] = 0.0
        return Instance(tree, losses)

    def _last(self) -> IntArray:
        """[T]: how many steps a path pays that never was on the prefix."""
        return self.lengths if self.charge == "to the prefix" else np.full_like(self.lengths, self.horizon)


def flipping_bits(
    rounds: int,
    horizon: int,
    *,
    rng: np.random.Generator,
    flip: float = 0.025,
    redraw: float = 0.25,
    longest: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Strings [T, H] of which each bit flips with probability `flip`, and lengths [T] in 1..`longest`.

    The length is redrawn with probability `redraw`; `longest` is H − 2 unless given.
    """
    flips = rng.random((rounds, horizon)) < flip
    flips[0] = rng.random(horizon) < 0.5
    return np.cumsum(flips, axis=0) % 2, _held(rng, redraw, rounds, longest or max(horizon - 2, 1))


def switching_faces(
    rounds: int, horizon: int, *, rng: np.random.Generator, switch: float = 0.025, longest: int | None = None
) -> tuple[IntArray, IntArray]:
    """Strings [T, H] and lengths [T] that are redrawn together with probability `switch`, else held."""
    fresh = rng.random(rounds) < switch
    fresh[0] = True
    which = np.cumsum(fresh) - 1
    count = int(which[-1]) + 1
    strings = rng.integers(2, size=(count, horizon))
    lengths = rng.integers(1, (longest or max(horizon - 2, 1)) + 1, size=count)
    return strings[which], lengths[which]


def _held(rng: np.random.Generator, redraw: float, rounds: int, longest: int) -> IntArray:
    """Lengths that are redrawn with probability `redraw`, else held."""
    fresh = rng.random(rounds) < redraw
    fresh[0] = True
    lengths: IntArray = rng.integers(1, longest + 1, size=rounds)[np.flatnonzero(fresh)[np.cumsum(fresh) - 1]]
    return lengths
