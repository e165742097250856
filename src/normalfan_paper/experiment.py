"""What an experiment is: settings, a run cut into cells, a check that gives verdicts, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import polars

Settings: TypeAlias = Mapping[str, Any]  # plain JSON: what a cell is, and all that its result depends on


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of the paper's size to run."""

    seeds: int = 32
    quick: bool = False  # every row gets a verdict within minutes: fewer rounds, sizes and settings


class Verdict(StrEnum):
    HOLDS = "holds"
    ASSUMES = "holds under a stated assumption"
    DEPENDS = "depends on the design"
    UNSEEN = "not reproduced by any design that was run"
    FALSE = "false as written"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One claim, judged by a run."""

    id: str  # "simplex/tracker-correlation"
    claim: str  # what the paper says, in our words
    measured: str  # what came out, with its standard error where there is one
    verdict: Verdict
    because: str  # the assumption, the choice that decides, or the counterexample, in one sentence
    numbers: Mapping[str, float] = field(default_factory=dict)
    seeds: str = ""  # of ours and of the alternatives; empty where nothing is drawn by seed
    beyond: bool = False  # a question of ours that the paper does not answer: told apart, and not counted


@dataclass(frozen=True, slots=True)
class Choice:
    """Something the paper leaves open: what we took, what else one could take, and where its effect shows."""

    id: str  # "gridworld/floor"
    question: str
    ours: str
    alternatives: tuple[str, ...]
    rows: tuple[str, ...] = ()  # ids of the ledger rows that show the effect
    known: str = ""  # what was known of the outcome before the run, where ours was chosen with that knowledge


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment is data and four functions."""

    id: str
    title: str
    cells: Callable[[Scale], Sequence[Settings]]
    task: str  # a function Settings -> DataFrame, as "normalfan_paper.experiments.simplex.run:run_cell"
    check: Callable[[polars.DataFrame], Sequence[LedgerRow]]
    draw: Callable[[polars.DataFrame, Path], Sequence[Path]]
    choices: tuple[Choice, ...] = ()
