"""Where a problem begins, as a person says it."""

from __future__ import annotations

from collections.abc import Sequence

from normalfan.errors import InputError


def state_index(start: str | int, states: Sequence[str]) -> int:
    """A state by its label, or by its index where no label says otherwise."""
    if str(start) in states:
        return list(states).index(str(start))
    if str(start).isdecimal() and int(start) < len(states):
        return int(start)
    shown = ", ".join(states[:4]) + (", …" if len(states) > 4 else "")
    raise InputError(f"start is {start!r}, but the states are {shown}: name one of them.")
