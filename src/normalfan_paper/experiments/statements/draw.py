"""The paper's illustrations, computed: what is drawn is what the library found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan_paper.experiments.statements.figures import (
    advantage_gate,
    barrier,
    bellman_causal,
    degenerate_crossing,
    normal_fan,
)

if TYPE_CHECKING:
    import polars


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    """All illustrations; the frame of the statements has what the barrier is drawn from."""
    fixed = (normal_fan, bellman_causal, degenerate_crossing, advantage_gate)
    drawn = [*(figure.draw(folder) for figure in fixed), barrier.draw(frame, folder)]
    return [path for paths in drawn for path in paths]
