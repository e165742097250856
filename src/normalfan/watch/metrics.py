"""Metrics as a text file in the exposition format of Prometheus, for node_exporter's textfile collector.

The file appears by atomic rename, at most once a second. Rounds, prices, crossings and alarms count on over
restarts that share a state; bad and skipped lines are those of the present process.
"""

from __future__ import annotations

import time
from pathlib import Path

from normalfan.files import written_atomically
from normalfan.watch.tally import Tally
from normalfan.watch.targets import check_can_be_written

SECONDS = 1.0

_FAMILIES = {
    "rounds_total": ("counter", "Rounds priced."),
    "price_total": ("counter", "Prices of all rounds, added up."),
    "crossings_total": ("counter", "Rounds whose optimal face was not the previous one."),
    "alarms_total": ("counter", "Alarms raised."),
    "bad_lines_total": ("counter", "Lines that could not be read."),
    "skipped_lines_total": ("counter", "Lines of rounds that had been priced before."),
    "last_round": ("gauge", "Number of the last round priced."),
    "last_price": ("gauge", "Price of the last round."),
    "last_value": ("gauge", "Best expected loss in the last round."),
    "last_update_timestamp_seconds": ("gauge", "When the last round was priced, in Unix time."),
}


class MetricsFile:
    """The file at `path`, with `model` as the label of every sample."""

    def __init__(self, path: str | Path, model: str) -> None:
        self.path = Path(path)
        check_can_be_written(self.path)
        self.model = model
        self._due = 0.0  # on the monotonic clock

    def write_if_due(self, tally: Tally) -> None:
        if time.monotonic() >= self._due:
            self.write(tally)

    def write(self, tally: Tally) -> None:
        with written_atomically(self.path) as file:
            file.write(exposition(tally, self.model).encode())
        self._due = time.monotonic() + SECONDS


def exposition(tally: Tally, model: str) -> str:
    """The text; a family whose number is not known yet is left out."""
    numbers = tally.metrics()
    lines = []
    for name, (kind, meaning) in _FAMILIES.items():
        if numbers[name] is not None:
            full = f"normalfan_watch_{name}"
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
            lines += [f'{full}{{model="{_escaped(model)}"}} {numbers[name]!r}']
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
