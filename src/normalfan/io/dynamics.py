"""Rounds that have another model: a table of round and model, and of features if losses are factored.

Files are looked for in the folder of the table. Rounds that it does not name have the model of all others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from normalfan.io.frames import Dialect
from normalfan.io.tables import Table, read_table
from normalfan.problem.losses import LossStream, names_of_rounds
from normalfan.problem.mdp import MDP


def problems_of_rounds(
    source: str | Path,
    mdp: MDP,
    stream: LossStream,
    load: Callable[[str], MDP],
    reopen: Callable[[str, MDP], LossStream],
    dialect: Dialect,
) -> tuple[list[MDP], Any, dict[str, Any]]:
    """What `price_stream` takes: problems, losses, and `dynamics_of_round` by its name.

    The losses are `stream` or, if the table has features, one stream for each problem: `reopen` reads them
    with the features of a file.
    """
    table = _read(source, dialect)
    rounds = names_of_rounds(stream) or tuple(map(str, range(stream.n_rounds or 0)))
    table.cells({"round": table.names("round")})  # none of them comes twice
    problems, streams, known = [mdp], [stream], dict[tuple[str, ...], int]()
    of_round = [0] * len(rounds)
    for t, files in zip(table.codes("round", rounds).tolist(), _files(table), strict=True):
        if files not in known:
            known[files] = len(problems)
            problems.append(load(files[0]))
            streams += [reopen(features, problems[-1]) for features in files[1:]]
        of_round[t] = known[files]
    return problems, stream if len(streams) == 1 else streams, {"dynamics_of_round": of_round}


def files_of_rounds(source: str | Path) -> list[Path]:
    """The files that a table names, each once."""
    return list(dict.fromkeys(Path(file) for files in _files(_read(source, Dialect())) for file in files))


def _read(source: str | Path, dialect: Dialect) -> Table:
    return read_table(source, ("round", "model"), ("features",), dialect)


def _files(table: Table) -> list[tuple[str, ...]]:
    """The model of each row and, if there is such a column, its features."""
    columns = [table.text(name) for name in ("model", "features") if name in table.columns]
    return [tuple(str(table.path.parent / file) for file in files) for files in zip(*columns, strict=True)]
