"""Every round of a stream, carried by the page at full precision: for its filter, sums and download."""

from __future__ import annotations

from typing import Any

from normalfan.pricing.motion import PricedMotion, norm_name
from normalfan.report.content import are_dates

MOST_CARRIED = 20_000  # rounds, about 100 bytes each
_COLUMNS = ("price", "value", "crossed", "ambiguous", "lowest_price", "highest_price")


def every_round(motion: PricedMotion, norm: str | float) -> dict[str, Any] | None:
    """Columns [T] by their names in frames and files, and names; None if there are too many rounds."""
    if len(motion.prices) > MOST_CARRIED:
        return None
    columns = motion.columns()
    kept = [*_COLUMNS[:2], f"variation_{norm_name(norm)}", *_COLUMNS[2:]]
    return {
        "names": None if motion.round_names is None else list(motion.round_names),
        "columns": {name: columns[name].tolist() for name in kept},
    }


def input_of_rounds(motion: PricedMotion) -> dict[str, Any]:
    """The attributes of an input element that chooses a round: a date, a time, or its number."""
    if not are_dates(motion.round_names):
        return {"type": "number", "min": 0, "max": len(motion.prices) - 1, "step": 1}
    names = [name.replace(" ", "T")[:16] for name in motion.round_names or ()]
    days = max(map(len, names)) == 10
    first, last = (name if days or len(name) > 10 else f"{name}T00:00" for name in (names[0], names[-1]))
    return {"type": "date" if days else "datetime-local", "min": first, "max": last}
