"""Advantage-thresholded mirror descent on gridworlds whose losses move."""

from normalfan_paper.experiment import Experiment
from normalfan_paper.experiments.gridworld.check import check
from normalfan_paper.experiments.gridworld.draw import draw
from normalfan_paper.experiments.gridworld.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="gridworld",
    title="Advantage-thresholded gridworld control",
    cells=cells,
    task="normalfan_paper.experiments.gridworld.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
