"""Where most of a round's price is paid, found fast enough for every line of a stream.

The same cell as `normalfan.pricing.attribution` finds, by compiled code, from advantages that are read once a
round: those of today are yesterday's tomorrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normalfan.pricing.attribution import shortest_named
from normalfan.pricing.reading import Reader
from normalfan.problem.arrays import FloatArray


class CostliestCells:
    """Finds the costliest cell of one crossing after the other."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._last: tuple[FloatArray | None, Any] = (None, None)  # a loss, and its advantages
        steps, states, _ = reader.mdp.shape
        self._room = np.empty((2, states)), np.empty((steps, states), np.int64), np.empty((2, states))

    def find(self, old: FloatArray | None, new: FloatArray | None) -> dict[str, Any] | None:
        """The step, state and action at which most is paid, by name, with the part paid there."""
        from normalfan._kernels.cell import costliest_cell

        if old is None or new is None:
            return None
        mdp, rows = self.reader.mdp, self.reader.rows[:4]
        before = self._last[1] if self._last[0] is old else self.reader.read(old).advantages
        now = self.reader.read(new).advantages
        self._last = (new, now)
        h, s, action, paid = costliest_cell(before, now, mdp.initial, *rows, *self._room)
        if not paid:
            return None
        name = mdp.labels.action(shortest_named(mdp, new, h, s, action))
        return {"step": mdp.labels.step(h), "state": mdp.labels.state(s), "action": name, "price": paid}
