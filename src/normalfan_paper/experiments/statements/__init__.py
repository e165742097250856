"""The paper's statements, judged by computation: every theorem tried, every failure an instance to run."""

from __future__ import annotations

from normalfan_paper.experiment import Experiment
from normalfan_paper.experiments.statements.check import check
from normalfan_paper.experiments.statements.figures import draw
from normalfan_paper.experiments.statements.settings import CHOICES, cells

EXPERIMENT = Experiment(
    id="statements",
    title="Statements: theorems, propositions, remarks",
    cells=cells,
    task="normalfan_paper.experiments.statements.run:run_cell",
    check=check,
    draw=draw,
    choices=CHOICES,
)
