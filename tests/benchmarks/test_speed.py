"""The speed comparison: its command line, and that contestants do the same work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.table import check_agreement, contestants_of
from benchmarks.speed.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["arms", "hedge", "mirror"])
def test_contestants_agree(name: str) -> None:
    contestants = contestants_of(WORKLOADS[name](np.random.default_rng(0)))
    assert "normalfan" in contestants
    check_agreement(contestants)


@pytest.mark.processes
def test_an_unknown_workload_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.speed", "no-such-workload"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert ended.returncode == 2
    assert "'no-such-workload' does not exist: choose from dense, grid" in ended.stderr
