"""Regret splits into price and selection error: degenerate faces."""

from __future__ import annotations

from normalfan.paper.degenerate.check import check
from normalfan.paper.degenerate.draw import draw
from normalfan.paper.degenerate.settings import CHOICES, cells
from normalfan.paper.experiment import Experiment

EXPERIMENT = Experiment(
    id="degenerate",
    title="Regret splits into price and selection error (degenerate faces)",
    cells=cells,
    task="normalfan.paper.degenerate.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
