"""The experiments by name.

An experiment is a package of this one with an `EXPERIMENT`; it is imported when asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from normalfan.errors import InputError
from normalfan_paper.experiment import Experiment

EXPERIMENTS = ("statements", "simplex", "tree", "degenerate", "gridworld")


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
    experiment: Experiment = importlib.import_module(f"normalfan_paper.experiments.{name}").EXPERIMENT
    return experiment
