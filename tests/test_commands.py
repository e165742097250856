"""The command line as a person meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "normalfan", *arguments]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_demo_prints_a_priced_stream() -> None:
    result = run("demo")
    assert result.returncode == 0, result.stderr
    assert "free" in result.stdout
    assert "Keeping yesterday's plan cost" in result.stdout


def test_demo_speaks_json() -> None:
    result = run("demo", "--json")
    document = json.loads(result.stdout)
    prices = [entry["price"] for entry in document["rounds"]]
    assert sum(prices) == pytest.approx(document["total"])
    assert prices[:3] == [0, 0, 0]  # only the scale of the loss moved
    assert prices[6] > 0  # the goal jumped


@pytest.mark.parametrize(
    "command", ["demo", "bench", "price", "fan", "watch", "replan", "fleet", "reproduce"]
)
def test_help_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.returncode == 0
    assert f"Example:  normalfan {command}" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "no-such-workload"),
        ("reproduce", "no-such-claim"),
        ("no-such-command",),
        ("demo", "--no-such-option"),
    ],
)
def test_bad_input_is_a_sentence_and_an_exit_code(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.strip()
    assert not result.stdout


def test_version() -> None:
    import normalfan

    assert run("--version").stdout == f"normalfan {normalfan.__version__}\n"


def test_importing_loads_nothing_heavy() -> None:
    heavy = ("numba", "scipy", "polars", "gymnasium", "rich", "typer", "matplotlib", "llvmlite")
    code = f"import sys, normalfan; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_kernels_compile_once_per_machine(tmp_path: Path) -> None:
    """A second process loads what the first compiled, silently."""
    code = (
        "import numpy as np, normalfan as nf;"
        "nf.price_stream(nf.MDP(np.array([[0, 0]]), 0, horizon=1), np.zeros((2, 1, 1, 2)))"
    )

    def price() -> str:
        return subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stderr

    assert "compiling its kernels" in price()
    assert price() == ""
