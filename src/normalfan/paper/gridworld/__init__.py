"""Advantage-thresholded mirror descent on gridworlds whose losses move."""

from normalfan.paper.experiment import Experiment
from normalfan.paper.gridworld.check import check
from normalfan.paper.gridworld.draw import draw
from normalfan.paper.gridworld.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="gridworld",
    title="Advantage-thresholded gridworld control",
    cells=cells,
    task="normalfan.paper.gridworld.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
