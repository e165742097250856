"""Regret splits into price and selection error: degenerate faces."""

from __future__ import annotations

from normalfan_paper.experiment import Experiment
from normalfan_paper.experiments.degenerate.check import check
from normalfan_paper.experiments.degenerate.draw import draw
from normalfan_paper.experiments.degenerate.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="degenerate",
    title="Regret splits into price and selection error (degenerate faces)",
    cells=cells,
    task="normalfan_paper.experiments.degenerate.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
