"""The layered tree, stored lazily: a million leaves at H numbers a round.

A binary tree of H layers; a policy that matters is a root-to-leaf path, and in round t one path b_t is
optimal. A step along it is free, any other step costs γ, so a path pays γ · (H − its common prefix with b_t).
All that a round holds is therefore the string b_t, and everything the package computes on the explicit tree
(`constructions.layered_tree`, 2^(H−1) states) has a short form in two neighbouring strings that part at
layer h:

    price             γ (H − h + 1): the old path errs on every layer from h on
    variation         2γ (H−h+1) in L1, γ √(2(H−h+1)) in L2, γ in L∞: H−h+1 entries go up, as many go down
    causal length     H − h + 1
    raw length        the layers on which the strings differ: H − h + 1 if the whole suffix turns, else fewer

So price, causal length and L1 variation are one number up to a factor, and the raw length is the same number
if a crossing turns its whole suffix.

    >>> tree = LazyTree(0.5, np.array([[0, 0, 0], [0, 1, 1], [0, 1, 0]]))
    >>> tree.prices, tree.raw_lengths
    (array([0. , 1. , 0.5]), array([0, 2, 1]))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, IntArray, first_index, read_numbers, read_only
from normalfan_paper.environments.constructions import Instance, layered_tree

Dwell: TypeAlias = Literal["random", "regular"]
Suffix: TypeAlias = Literal["flipped", "redrawn", "kept"]


@dataclass(frozen=True, eq=False)
class LazyTree:
    """A tree whose optimal path moves; layers count from 1, rounds without a past cost nothing."""

    gamma: float
    paths: IntArray  # [T, H] of 0 and 1, the optimal action string of each round

    def __post_init__(self) -> None:
        strings = read_numbers("paths", self.paths)
        if strings.ndim != 2 or 0 in strings.shape:
            raise InputError(
                f"paths has shape {list(strings.shape)}, but must be [T, H] with a round and a layer at "
                f"least: give one action string a round."
            )
        odd = (strings != 0) & (strings != 1)
        if odd.any():
            place = first_index(odd)
            raise InputError(
                f"paths{list(place)} is {strings[place]}, but an action is 0 or 1: check the strings."
            )
        if not (self.gamma > 0 and math.isfinite(self.gamma)):
            raise InputError(
                f"gamma is {self.gamma}, but must be positive and finite: it is the cost of a wrong step."
            )
        object.__setattr__(self, "paths", read_only(strings.astype(np.uint8)))

    @property
    def horizon(self) -> int:
        return int(self.paths.shape[1])

    @cached_property
    def causal_lengths(self) -> IntArray:
        """[T]: H − h + 1 where the path left the previous one at layer h, 0 where it stayed."""
        differs = np.zeros(self.paths.shape, dtype=bool)
        differs[1:] = self.paths[1:] != self.paths[:-1]
        return np.where(differs.any(axis=1), self.horizon - differs.argmax(axis=1), 0)

    @property
    def raw_lengths(self) -> IntArray:
        """[T]: the number of layers on which the path differs from the previous one."""
        lengths = np.zeros(len(self.paths), dtype=np.int64)
        lengths[1:] = (self.paths[1:] != self.paths[:-1]).sum(axis=1)
        return lengths

    @property
    def prices(self) -> FloatArray:
        """[T]: the closed form γ (H − h + 1)."""
        return np.asarray(self.gamma * self.causal_lengths)

    @property
    def backed_up_prices(self) -> FloatArray:
        """[T]: the same by a backup from the last layer, γ added step by step, as the engine does."""
        off_path = np.zeros(self.horizon + 1)  # by the number of steps left
        for steps in range(1, self.horizon + 1):
            off_path[steps] = self.gamma + off_path[steps - 1]
        return np.asarray(off_path[self.causal_lengths])

    def variations(self) -> FloatArray:
        """[T, 3]: how far the loss moved, in L1, L2 and L∞."""
        turned = self.causal_lengths
        return self.gamma * np.stack([2.0 * turned, np.sqrt(2.0 * turned), turned > 0], axis=1)

    def explicit(self) -> Instance:
        """The tree with all its states, for small H."""
        return layered_tree(self.horizon, self.gamma, self.paths)


def moving_path(
    rounds: int,
    horizon: int,
    rate: float,
    *,
    rng: np.random.Generator,
    dwell: Dwell = "random",
    suffix: Suffix = "flipped",
    layer: int | None = None,
) -> IntArray:
    """An optimal path [T, H] that crosses at `rate` a round.

    `dwell`: a crossing with probability `rate` in every round, or one every 1/`rate` rounds. `layer`: where
    (from 1); drawn again at every crossing if None. There the path takes the other action, and below it the
    suffix is flipped too, redrawn, or kept.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate}, but must lie in [0, 1]: it is the share of rounds that cross.")
    if layer is not None and not 1 <= layer <= horizon:
        raise InputError(f"layer is {layer}, but must lie in 1 to {horizon}: layers count from the root.")
    if dwell == "random":
        crosses = rng.random(rounds) < rate
    else:
        crosses = np.diff(np.floor(np.arange(rounds + 1) * rate)) > 0
    crosses[0] = False
    layers = rng.integers(1, horizon + 1, size=rounds) if layer is None else np.full(rounds, layer)
    below = np.arange(1, horizon + 1) - layers[:, None]  # [T, H]: 0 on the crossing's layer
    if suffix == "flipped":
        flips = below >= 0
    elif suffix == "redrawn":
        flips = (below == 0) | ((below > 0) & (rng.random(below.shape) < 0.5))
    else:
        flips = below == 0
    start = rng.integers(2, size=horizon)
    turns = np.cumsum(flips & crosses[:, None], axis=0)
    return np.asarray((start + turns) % 2)
