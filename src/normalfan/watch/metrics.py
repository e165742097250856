"""What a watch has counted, and a text file that shows it to Prometheus.

The file is for the textfile collector of node_exporter. It is replaced as a whole, at most once a second.
Rounds, prices, crossings, alarms and re-plans count on over restarts that share a state; bad and skipped
lines are those of the present process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normalfan.errors import check_installed
from normalfan.files import check_target, remove_drafts, written_atomically
from normalfan.watch.journal import Progress

SECONDS = 1.0


@dataclass(slots=True)
class Tally:
    """The progress, and what only the present process has counted."""

    progress: Progress
    priced: int = 0
    skipped: int = 0
    bad_lines: int = 0
    alarms: int = 0
    replans: int = 0
    first_error: str | None = None
    last_price: float | None = None
    last_value: float | None = None
    last_update: float | None = None  # Unix time
    last_wall: dict[str, Any] | None = None  # the nearest, if ranges are asked for and one ends

    def summary(self) -> dict[str, float | int | None]:
        own = {name: getattr(self, name) for name in ("priced", "skipped", "bad_lines", "alarms", "replans")}
        shared = ("last_round", "rounds", "total", "crossings")
        return own | {name: getattr(self.progress, name) for name in shared}


class MetricsFile:
    """A metrics file for Prometheus; every metric has the label `model`."""

    def __init__(self, path: str | Path, model: str) -> None:
        check_installed("prometheus_client", "a metrics file needs it", "watch")
        check_target("the metrics file", path)
        remove_drafts(path)
        self.path = Path(path)
        self.model = model
        self._due = 0.0  # on the monotonic clock

    def write(self, tally: Tally, *, final: bool = False) -> None:
        """Write the file, unless that was done less than a second ago and there will be a later call."""
        if final or time.monotonic() >= self._due:
            with written_atomically(self.path) as file:
                file.write(exposition(tally, self.model))
            self._due = time.monotonic() + SECONDS


def exposition(tally: Tally, model: str) -> bytes:
    """The text of the file; a metric whose number is not known yet is left out."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    progress = tally.progress
    service, wall = progress.service, tally.last_wall or {}
    metrics: list[tuple[str, str, float | None]] = [
        ("rounds_total", "Rounds priced.", progress.rounds),
        ("price_total", "Sum of the prices of all rounds.", progress.total),
        ("crossings_total", "Rounds whose optimal face was not the previous one.", progress.crossings),
        ("alarms_total", "Alarms raised.", progress.alarms),
        ("bad_lines_total", "Lines that could not be read.", tally.bad_lines),
        ("skipped_lines_total", "Lines of rounds that had been priced before.", tally.skipped),
        ("last_round", "Number of the last round priced.", progress.last_round),
        ("last_price", "Price of the last round.", tally.last_price),
        ("last_value", "Best expected loss in the last round.", tally.last_value),
        ("wall_move", "Move of the nearest feature to the end of its range.", wall.get("move")),
        ("wall_share", "The same as a share of the feature, if it is not 0.", wall.get("share")),
        ("replans_total", "Re-plans that the rule called for.", service.replans if service else None),
        ("plan_age_rounds", "Rounds since that of the plan in service.", service.age if service else None),
        ("plan_cost", "Sum of the prices of the plan in service.", service.cost if service else None),
        ("last_update_timestamp_seconds", "When the last round was priced, in Unix time.", tally.last_update),
    ]

    class Families(CollectorRegistry):
        # The library's own counters can only be counted up, and a resumed watch begins above zero.
        def collect(self) -> Iterator[Any]:
            for name, meaning, number in metrics:
                if number is not None:
                    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                    family = kind(f"normalfan_watch_{name}", meaning, labels=["model"])
                    family.add_metric([model], number)
                    yield family

    return generate_latest(Families())
