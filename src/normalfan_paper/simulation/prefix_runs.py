"""Trackers on prefix faces: what each way of choosing a point of the last face pays, round by round.

On the face of length k from the round before, a tracker's first k actions are given and its selector chooses
the rest. The selectors are those of `normalfan.learners`, in the short form that prefixes allow:

    oracle           the coming string on the free layers
    occupancies      `StickyEuclidean`, the point of the face with the occupancy nearest to the last play's:
                     it follows the last prefix as far as that agrees with the face, and is uniform below;
                     where the face conflicts with it nothing is near to anything remembered
    entropy          `StickyEntropy` with the last loss as its model: the last play, one hundredth uniform,
                     as far as the face keeps it; below the last prefix it forgets a hundredth a round
    strings          the nearest action string: each free bit as it last was in a face (0 at first)
    lexicographic    0 on the free layers
    random vertex    a fair coin on each free layer
    random point     a uniform probability at each free node

In round 0 there is no face and every tracker plays the uniform policy; that round is left out: 0.

    >>> faces = PrefixFaces(1.0, np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1]]), np.array([1, 3, 3]))
    >>> simulate_prefix_tracker(faces, "lexicographic").regret
    array([0., 2., 0.])

The regret is what the play pays. The selection error is counted on its own, on the free layers alone: it is
what the play gets wrong there, and nothing on a round of conflict, when node losses have charged all that is
left. Price plus selection error is the regret.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan_paper.environments.prefix_faces import PrefixFaces
from normalfan_paper.learners.sticky import MIXING

SelectorName: TypeAlias = Literal[
    "oracle", "occupancies", "entropy", "strings", "lexicographic", "random vertex", "random point"
]


class PrefixRun(NamedTuple):
    """What a tracker paid."""

    regret: FloatArray  # [T]
    selection: FloatArray  # [T]  counted on the free layers, not as a difference


def simulate_prefix_tracker(
    faces: PrefixFaces, selector: SelectorName, *, rng: np.random.Generator | None = None
) -> PrefixRun:
    """What the previous-face tracker pays with this selector."""
    horizon = faces.horizon
    coming, last = faces.strings[1:], faces.strings[:-1]
    if selector == "oracle":
        free = np.zeros(coming.shape, dtype=bool)
    elif selector == "lexicographic":
        free = coming != 0
    elif selector == "strings":
        free = coming != _last_seen(faces)
    elif selector == "random vertex":
        free = _generator(rng, selector).random(coming.shape) < 0.5
    elif selector == "random point":
        free = _generator(rng, selector).random(coming.shape)
    elif selector == "occupancies":
        free = _remembered_path(faces)
    elif selector == "entropy":
        free = _remembered_chances(faces)
    else:
        raise InputError(f"selector is {selector!r}, but no such selector is known: see SelectorName.")
    held = np.arange(horizon) < faces.lengths[:-1, None]
    shared = held & (np.arange(horizon) < faces.lengths[1:, None])
    conflict = (shared & (coming != last)).any(axis=1)
    selected = np.where(held, 0.0, free)
    if faces.charge != "separable":
        selected[conflict] = 0.0
    costs = _costs_of_certain if free.dtype == np.bool_ else PrefixFaces.expected_costs
    return PrefixRun(
        costs(faces, _after_first(np.where(held, coming != last, free))), costs(faces, _after_first(selected))
    )


def _costs_of_certain(faces: PrefixFaces, astray: FloatArray) -> FloatArray:
    return faces.costs(astray > 0)


def _after_first(rounds: FloatArray) -> FloatArray:
    """[T, H] from [T−1, H]: nothing goes wrong in round 0."""
    return np.concatenate([np.zeros((1, rounds.shape[1])), rounds])


def _generator(rng: np.random.Generator | None, selector: str) -> np.random.Generator:
    if rng is None:
        raise InputError(f"rng is missing, but the {selector} is drawn: pass np.random.default_rng(seed).")
    return rng


def _last_seen(faces: PrefixFaces) -> IntArray:
    """[T−1, H]: each bit as it was when a face last fixed it, up to the round before; 0 if none did."""
    rounds = np.arange(len(faces.lengths) - 1)[:, None]
    fixed = np.arange(faces.horizon) < faces.lengths[:-1, None]
    when = np.maximum.accumulate(np.where(fixed, rounds, -1), axis=0)
    seen = np.take_along_axis(faces.strings, np.maximum(when, 0), axis=0)
    return np.where(when >= 0, seen, 0)


def _remembered_path(faces: PrefixFaces) -> FloatArray:
    """[T−1, H]: the probability of a wrong step in round t ≥ 1, for a play that is certain as far as its
    remembered path goes and uniform below.
    """
    strings, lengths = faces.strings, faces.lengths
    memory = np.full(strings.shape, -1)[:-1]
    known, depth = np.zeros(faces.horizon, dtype=np.int64), 0
    for t in range(len(memory)):
        length = int(lengths[t])
        shared = min(depth, length)
        if depth <= length or (known[:shared] != strings[t, :shared]).any():
            known, depth = strings[t], length
        memory[t, :depth] = known[:depth]
    return np.where(memory < 0, 0.5, memory != strings[1:])


def _remembered_chances(faces: PrefixFaces) -> FloatArray:
    """[T−1, H]: the same for a play that follows its remembered path with a chance of its own on each layer.

    A node that a face fixes is followed for certain. Below a face the chance p of the remembered action
    becomes (1 − MIXING) p + MIXING / 2. Off a face all is forgotten: the path ends where a face leaves it.
    """
    strings, lengths = faces.strings, faces.lengths
    layers = np.arange(faces.horizon)
    astray = np.empty(strings[1:].shape)
    known, chance = strings[0].copy(), np.full(faces.horizon, 0.5)
    for t in range(len(astray)):
        fixed = layers < lengths[t]
        if (known != strings[t])[fixed].any():
            known, chance = strings[t].copy(), np.full(faces.horizon, 0.5)
        chance = np.where(fixed, 1.0, (1.0 - MIXING) * chance + MIXING / 2)
        astray[t] = _astray(known, chance, strings[t + 1], faces.charge == "separable")
    return astray


def _astray(known: IntArray, chance: FloatArray, coming: IntArray, anywhere: bool) -> FloatArray:
    """[H]: the chance of a wrong step, at the node on the coming path or, if `anywhere`, over all nodes."""
    wrong = np.where(known == coming, 1.0 - chance, chance)
    if anywhere:  # of those who are still on the remembered path, and of the others, who toss coins
        still = np.concatenate([[1.0], np.cumprod(chance)[:-1]])
        return np.asarray(still * wrong + (1.0 - still) * 0.5)
    together = np.concatenate([[True], np.cumprod(known == coming)[:-1].astype(bool)])
    return np.where(together, wrong, 0.5)
