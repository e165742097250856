"""Loss variation is not the difficulty: four regimes on the simplex, four algorithms."""

from __future__ import annotations

from normalfan.paper.experiment import Experiment
from normalfan.paper.simplex.check import check
from normalfan.paper.simplex.draw import draw
from normalfan.paper.simplex.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="simplex",
    title="Loss variation is not the difficulty (simplex)",
    cells=cells,
    task="normalfan.paper.simplex.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
