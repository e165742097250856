"""One line out: what a round cost, and where, in the user's own names.

Numbers are written so that they read back to the bit. JSON knows no infinity: where a margin is infinite
(there is no other face) the record holds null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from normalfan.geometry.face import optimal_face
from normalfan.pricing.crossing import price
from normalfan.pricing.monitor import PricedRound
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.text import as_json


def round_record(
    mdp: MDP,
    step: PricedRound,
    *,
    since: int | None,
    total: float,
    alarms: Sequence[str],
    old: FloatArray | None,
    new: FloatArray,
) -> bytes:
    """The line for a round that was priced against the round `since`; `old` and `new` are their losses."""
    record: dict[str, Any] = {"round": step.round, "since": since, **asdict(step)}
    record["dearest"] = None if old is None or step.price == 0 else dearest(mdp, old, new)
    record["total"] = total
    if alarms:
        record["alarms"] = list(alarms)
    return as_line(record)


def error_record(line: int, error: Exception) -> bytes:
    return as_line({"line": line, "error": str(error)})


def as_line(record: dict[str, Any]) -> bytes:
    return as_json(record).encode() + b"\n"


def dearest(mdp: MDP, old: FloatArray, new: FloatArray) -> dict[str, Any] | None:
    """The step, state and action at which most of a price is paid, by name, with the part paid there."""
    attribution = price(optimal_face(mdp, old), new).attribution
    h, s, a = (int(i) for i in np.unravel_index(int(attribution.argmax()), mdp.shape))
    if attribution[h, s, a] == 0:
        return None
    labels = mdp.labels
    return {
        "step": labels.step(h),
        "state": labels.state(s),
        "action": labels.action(a),
        "price": float(attribution[h, s, a]),
    }
