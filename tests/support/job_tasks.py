"""Tasks for the tests of jobs: harmless ones, and some that misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars


def draw(settings: Mapping[str, Any]) -> polars.DataFrame:
    """Random numbers; if asked to, slowly, or not before there is a file called `gate`."""
    time.sleep(settings.get("seconds", 0.0))
    while "gate" in settings and not Path(settings["gate"]).exists():
        time.sleep(0.01)
    rng = np.random.default_rng(settings["seed"])
    return polars.DataFrame({"seed": settings["seed"], "number": rng.random(5)})


def refuse_odd(settings: Mapping[str, Any]) -> polars.DataFrame:
    if settings["seed"] % 2:
        raise ArithmeticError("odd seed")
    return draw(settings)


def die(settings: Mapping[str, Any]) -> polars.DataFrame:
    """Kill the worker, always, or only if nobody did before (`once` names a file that remembers it)."""
    once = settings.get("once")
    if once is None or not Path(once).exists():
        if once is not None:
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(settings)


def sign_in(settings: Mapping[str, Any]) -> polars.DataFrame:
    """Leave the worker's process number behind."""
    (Path(settings["folder"]) / str(os.getpid())).touch()
    return draw(settings)


def return_a_number(settings: Mapping[str, Any]) -> int:
    return int(settings["seed"])
