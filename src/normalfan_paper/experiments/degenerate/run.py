"""One cell of the experiment on degenerate faces: sequences of prefixes, and a tracker with each selector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.learners.learner import LastLoss
from normalfan.learners.selectors import (
    FaceTracker,
    Lexicographic,
    Oracle,
    RandomPoint,
    RandomVertex,
    Selector,
)
from normalfan.problem.arrays import FloatArray
from normalfan.regret import run
from normalfan_paper.environments.prefix_faces import PrefixFaces, flipping_bits, switching_faces
from normalfan_paper.experiment import Settings
from normalfan_paper.learners.sticky import StickyEntropy, StickyEuclidean
from normalfan_paper.simulation.prefix_runs import simulate_prefix_tracker

if TYPE_CHECKING:
    import polars


def run_cell(settings: Settings) -> polars.DataFrame:
    """One row a seed, selector and number of free layers of the previous face, summed over its rounds."""
    import polars

    play = _explicit if settings["variant"] == "explicit" else _lazy
    rows = []
    for seed in settings["seeds"]:
        rng = np.random.default_rng(np.random.SeedSequence([seed, settings["horizon"]]))
        faces = build_faces(settings, rng)
        for selector, price, regret, selection in play(faces, settings["selectors"], rng):
            known = {"variant": settings["variant"], "seed": seed, "selector": selector}
            rows += [known | row for row in _by_free_layers(faces, price, regret, selection)]
    return polars.DataFrame(rows)


def build_faces(settings: Settings, rng: np.random.Generator) -> PrefixFaces:
    """The faces of one sequence."""
    size, longest = (settings["rounds"], settings["horizon"]), settings["longest"]
    if settings["motion"] == "bits":
        moving = flipping_bits(
            *size, flip=settings["flip"], redraw=settings["redraw"], longest=longest, rng=rng
        )
    else:
        moving = switching_faces(*size, switch=settings["flip"], longest=longest, rng=rng)
    return PrefixFaces(settings["gamma"], *moving, settings["charge"])


def _lazy(
    faces: PrefixFaces, selectors: list[str], rng: np.random.Generator
) -> Iterator[tuple[str, FloatArray, FloatArray, FloatArray]]:
    prices = faces.prices()
    for selector in selectors:
        played = simulate_prefix_tracker(faces, selector, rng=rng)  # type: ignore[arg-type]
        yield selector, prices, played.regret, played.selection


def _explicit(
    faces: PrefixFaces, selectors: list[str], rng: np.random.Generator
) -> Iterator[tuple[str, FloatArray, FloatArray, FloatArray]]:
    """The same with the learners of the package on the tree with all its states, priced by the engine."""
    known: dict[str, Selector] = {
        "oracle": Oracle(),
        "occupancies": StickyEuclidean(LastLoss(), weight=1.0),
        "entropy": StickyEntropy(LastLoss(), weight=1.0),
        "lexicographic": Lexicographic(),
        "random vertex": RandomVertex(rng=rng),
        "random point": RandomPoint(rng=rng),
    }
    mdp, losses = faces.explicit()
    for selector in selectors:
        if selector in known:
            log = run(mdp, FaceTracker(mdp, known[selector]), losses)
            regret = log.regrets.copy()
            regret[0] = 0.0  # before any face: not part of the split
            yield selector, log.prices, regret, log.selections


def _by_free_layers(
    faces: PrefixFaces, price: FloatArray, regret: FloatArray, selection: FloatArray
) -> Iterator[dict[str, Any]]:
    """Rounds after the first, by the free layers of the face that was held."""
    free = faces.free_layers()[:-1]
    gap = np.abs(regret - price - selection)[1:]
    implied = (regret - selection)[1:]
    for layers in np.unique(free).tolist():
        here = free == layers
        yield {
            "free_layers": layers,
            "rounds": int(here.sum()),
            "price": float(price[1:][here].sum()),
            "regret": float(regret[1:][here].sum()),
            "selection": float(selection[1:][here].sum()),
            "largest_gap": float(gap[here].max()),
            "implied_price": float(implied[here].sum()),
        }
