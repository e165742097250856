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
        committed: list[bytes] = []
        self.tally = Watcher(
            nf.Monitor(mdp),
            lambda records, _: committed.append(records),
            on_bad_line=lambda record: self.errors.append(json.loads(record)),
            on_alarm=self.alarms.append,
            **options,
        ).run([line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines])
        self.records = [json.loads(line) for line in b"".join(committed).splitlines()]


def arms(number: Any, *losses: float) -> dict[str, Any]:
    return {"round": number, "loss": [[list(losses)]]}
