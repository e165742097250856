"""The experiments by name, each imported when asked for.

An experiment is a folder of `experiments` with five modules: `settings` (its cells), `choices` (what the
paper leaves open), `run` (a cell), `check` (verdicts from the results) and `draw` (figures of them). The code
of a cell is `run` and what that imports: the other modules can change without a new run.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from normalfan.errors import InputError
from normalfan_paper.experiment import Experiment

EXPERIMENTS = {
    "statements": "Statements: theorems, propositions, remarks",
    "simplex": "Loss variation is not the difficulty (simplex)",
    "tree": "Early crossings cost more (layered tree)",
    "degenerate": "Regret splits into price and selection error (degenerate faces)",
    "gridworld": "Advantage-thresholded gridworld control",
}
"""Their titles by id, in the paper's order."""


def find_experiments(ids: Iterable[str] = ()) -> tuple[Experiment, ...]:
    """The experiments with these ids, in the paper's order, each once; all of them without any."""
    wanted = list(ids) or list(EXPERIMENTS)
    for name in wanted:
        if name not in EXPERIMENTS:
            raise InputError(
                f"{name!r} is asked for, but the experiments are {', '.join(EXPERIMENTS)}: choose among "
                f"them, or name none for all."
            )
    return tuple(_load(name) for name in EXPERIMENTS if name in wanted)


def _load(name: str) -> Experiment:
    folder = f"normalfan_paper.experiments.{name}"
    settings, choices, check, draw = (
        import_module(f"{folder}.{part}") for part in ("settings", "choices", "check", "draw")
    )
    return Experiment(
        id=name,
        title=EXPERIMENTS[name],
        cells=settings.cells,
        task=f"{folder}.run:run_cell",
        check=check.check,
        draw=draw.draw,
        choices=choices.CHOICES,
    )
