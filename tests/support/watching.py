"""A watch in memory."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import normalfan as nf
from normalfan.watch import Watcher

ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)


class Watched:
    """A watch in memory, and all that came out of it."""

    def __init__(self, mdp: nf.MDP, lines: list[Any], **options: Any) -> None:
        self.errors: list[dict[str, Any]] = []
        self.alarms: list[str] = []
        self.output: list[bytes] = []  # records and errors in order, as standard output has them
        committed: list[bytes] = []

        def commit(records: bytes, _: object) -> None:
            committed.append(records)
            self.output.append(records)

        def refuse(record: bytes) -> None:
            self.errors.append(json.loads(record))
            self.output.append(record)

        self.tally = Watcher(
            nf.Monitor(mdp),
            commit,
            on_bad_line=refuse,
            on_alarm=self.alarms.append,
            **options,
        ).run([line if isinstance(line, bytes | None) else json.dumps(line).encode() for line in lines])
        self.records = [json.loads(line) for line in b"".join(committed).splitlines()]


def arms(number: Any, *losses: float) -> dict[str, Any]:
    return {"round": number, "loss": [[list(losses)]]}
