"""The paper's statements, judged by computation: every theorem tried, every failure an instance to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normalfan_paper.experiment import Experiment, LedgerRow
from normalfan_paper.experiments.statements.settings import CHOICES, cells

if TYPE_CHECKING:
    import polars


def _check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    from normalfan_paper.experiments.statements.check import check

    return check(frame)


def _draw(frame: polars.DataFrame, folder: Path) -> Sequence[Path]:
    from normalfan_paper.figures import draw

    return draw(frame, folder)


EXPERIMENT = Experiment(
    id="statements",
    title="Statements: theorems, propositions, remarks",
    cells=cells,
    task="normalfan_paper.experiments.statements.run:run_cell",
    check=_check,
    draw=_draw,
    choices=CHOICES,
)
