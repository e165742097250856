"""The ledger: every claim with its verdict, and all that a reader needs to run it again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from normalfan_paper.experiment import Choice, LedgerRow, Verdict


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment, run and judged. Without all of its cells it has no rows."""

    id: str
    title: str
    rows: tuple[LedgerRow, ...]
    choices: tuple[Choice, ...]
    figures: tuple[str, ...]  # file names of PNGs in the folder of figures
    cells: int  # all of them
    reused: int  # found from an earlier run
    cpu_seconds: float  # of all cells, whenever they were computed
    wall_seconds: float  # of this run: what was reused took none
    failures: tuple[str, ...]  # cells without a result, and why


@dataclass(frozen=True, slots=True)
class Ledger:
    """A run of some or all experiments."""

    command: str
    seeds: int
    quick: bool
    workers: str  # where it ran, in words
    versions: Mapping[str, str]
    sections: tuple[Section, ...]

    @property
    def rows(self) -> tuple[LedgerRow, ...]:
        return tuple(row for section in self.sections for row in section.rows)

    @property
    def failures(self) -> tuple[str, ...]:
        return tuple(failure for section in self.sections for failure in section.failures)

    def counts(self) -> dict[Verdict, int]:
        """How many claims of the paper have each verdict, the most favourable first."""
        found = Counter(row.verdict for row in self.rows if not row.beyond)
        return {verdict: found[verdict] for verdict in Verdict}

    def to_document(self) -> dict[str, Any]:
        """The ledger in plain JSON; numbers that JSON cannot say become null."""
        sections = [asdict(section) for section in self.sections]
        for section in sections:
            for row in section["rows"]:
                row["numbers"] = {
                    name: float(number) if math.isfinite(number) else None
                    for name, number in row["numbers"].items()
                }
        return {
            "command": self.command,
            "seeds": self.seeds,
            "quick": self.quick,
            "workers": self.workers,
            "versions": dict(self.versions),
            "counts": {str(verdict): count for verdict, count in self.counts().items()},
            "sections": sections,
        }
