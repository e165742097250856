"""The paper's illustrations, computed: what is drawn is what the library found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars


def draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    """All illustrations; the frame of the statements holds what the barrier is drawn from."""
    from normalfan_paper.figures import barrier, bellman, faces, fan, gate

    drawn = [fan.draw(folder), bellman.draw(folder), faces.draw(folder), gate.draw(folder)]
    return [path for paths in (*drawn, barrier.draw(frame, folder)) for path in paths]
