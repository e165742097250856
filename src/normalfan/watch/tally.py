"""What a watch has seen so far."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Progress:
    """What is counted over all processes that share a state."""

    last_round: int | None = None
    crossings: int = 0
    alarms: int = 0

    def counting(self, number: int, *, crossed: bool, alarms: int) -> Progress:
        return replace(
            self, last_round=number, crossings=self.crossings + crossed, alarms=self.alarms + alarms
        )


@dataclass(slots=True)
class Tally:
    """The progress, and what only the present process knows."""

    progress: Progress
    rounds: int  # over all processes
    total: float  # likewise
    priced: int = 0
    skipped: int = 0
    bad_lines: int = 0
    alarms: int = 0
    last_price: float | None = None
    last_value: float | None = None
    last_update: float | None = None  # Unix time

    def summary(self) -> dict[str, float | int | None]:
        """The closing words, by name."""
        return {
            "priced": self.priced,
            "skipped": self.skipped,
            "bad_lines": self.bad_lines,
            "alarms": self.alarms,
            "last_round": self.progress.last_round,
            "rounds": self.rounds,
            "total": self.total,
            "crossings": self.progress.crossings,
        }

    def metrics(self) -> dict[str, float | int | None]:
        return {
            "rounds_total": self.rounds,
            "price_total": self.total,
            "crossings_total": self.progress.crossings,
            "alarms_total": self.progress.alarms,
            "bad_lines_total": self.bad_lines,
            "skipped_lines_total": self.skipped,
            "last_round": self.progress.last_round,
            "last_price": self.last_price,
            "last_value": self.last_value,
            "last_update_timestamp_seconds": self.last_update,
        }
