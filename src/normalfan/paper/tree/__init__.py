"""Early crossings cost more: the layered tree."""

from __future__ import annotations

from normalfan.paper.experiment import Experiment
from normalfan.paper.tree.check import check
from normalfan.paper.tree.draw import draw
from normalfan.paper.tree.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="tree",
    title="Early crossings cost more (layered tree)",
    cells=cells,
    task="normalfan.paper.tree.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
