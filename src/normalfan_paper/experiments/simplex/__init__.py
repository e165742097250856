"""Loss variation is not the difficulty: four regimes on the simplex, four algorithms."""

from __future__ import annotations

from normalfan_paper.experiment import Experiment
from normalfan_paper.experiments.simplex.check import check
from normalfan_paper.experiments.simplex.draw import draw
from normalfan_paper.experiments.simplex.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="simplex",
    title="Loss variation is not the difficulty (simplex)",
    cells=cells,
    task="normalfan_paper.experiments.simplex.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
