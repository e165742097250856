"""How often tests repeat what is random: often enough to notice a mistake, or at length by `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

SOAK = bool(os.environ.get("SOAK"))

Amount = TypeVar("Amount", int, float)


def repeated(usually: Amount, soaked: Amount) -> Amount:
    return soaked if SOAK else usually
