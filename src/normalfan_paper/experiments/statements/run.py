"""One cell: a part of the statements, tried on a number of instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from normalfan_paper.experiment import Settings
from normalfan_paper.experiments.statements import decomposition, detection, geometry, selection, separation
from normalfan_paper.experiments.statements.finding import Finding, to_frame

if TYPE_CHECKING:
    import polars

CHECKS: Mapping[str, Callable[[int], Iterator[Finding]]] = {
    "decomposition": decomposition.decomposition,
    "bellman": decomposition.bellman,
    "large-variation": separation.large_variation_zero_price,
    "variation-separation": separation.variation_separations,
    "one-problem-or-two": separation.one_problem_or_two,
    "causal-anisotropy": separation.causal_anisotropy,
    "path-length": separation.path_length,
    "geometry": geometry.geometry,
    "predictive-selection": selection.predictive,
    "bregman-selection": selection.bregman,
    "degenerate-selection": selection.degenerate,
    "cone-detector": detection.cone_detector,
    "gate": detection.gate,
    "gate-speed": detection.gate_speed,
    "lower-bound": detection.coin,
}


def run_cell(settings: Settings) -> polars.DataFrame:
    return to_frame(CHECKS[settings["part"]](int(settings["instances"])))
