"""Rounds that have another model: a table of round and model, and of features if losses are factored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import normalfan as nf
from normalfan.cli.options import ProblemOptions, round_of

OPTION = "--model-of-round"


def models_of_rounds(
    source: str | None, mdp: nf.MDP, stream: nf.LossStream, losses: str, problem: ProblemOptions
) -> tuple[Any, Any, dict[str, Any]]:
    """The problems, the losses (one stream for each, if features differ) and `dynamics_of_round` by name.

    Rounds that the table `source` does not name have `mdp`; without a table that and the losses are all.
    Files are looked for in the folder of the table.
    """
    if source is None:
        return mdp, stream, {}
    from normalfan.io.frames import Dialect
    from normalfan.io.tables import read_table

    table = read_table(source, ("round", "model"), ("features",), Dialect(problem.separator, problem.decimal))
    names, folder = table.text("round").to_list(), Path(source).parent
    columns = [column for column in ("model", "features") if column in table.columns]
    table.cells({"round": table.names("round")})  # none of them comes twice
    problems, streams = [mdp], [stream]
    known: dict[tuple[str, ...], int] = {}
    of_round = [0] * (stream.n_rounds or 0)
    for row, files in enumerate(zip(*(table.text(column) for column in columns), strict=True)):
        if files not in known:
            known[files] = len(problems)
            problems.append(problem.load(str(folder / files[0])))
            if len(files) == 2:
                own = replace(problem, features=str(folder / files[1]))
                streams.append(own.losses(losses, problems[-1]))
        of_round[round_of(stream, OPTION, names[row])] = known[files]
    return problems, streams if len(columns) == 2 else stream, {"dynamics_of_round": of_round}
