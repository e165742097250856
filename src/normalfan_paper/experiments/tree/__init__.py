"""Early crossings cost more: the layered tree."""

from __future__ import annotations

from normalfan_paper.experiment import Experiment
from normalfan_paper.experiments.tree.check import check
from normalfan_paper.experiments.tree.draw import draw
from normalfan_paper.experiments.tree.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="tree",
    title="Early crossings cost more (layered tree)",
    cells=cells,
    task="normalfan_paper.experiments.tree.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
