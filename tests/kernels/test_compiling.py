"""Compiled code on disk: used again when whole, replaced when damaged, never in the way."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numba
import pytest

SOURCE = """
from normalfan._kernels.compiling import kernel

@kernel
def double(x):
    return 2 * x
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("doubling", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["emptied", "truncated", "flipped"])
def test_damaged_code_is_compiled_again(
    suffix: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")  # beside the source, wherever kernels are kept
    path = tmp_path / "doubling.py"
    path.write_text(SOURCE)
    assert load(path).double(21) == 42
    kept = load(path)
    assert kept.double(21) == 42
    assert not kept.double.stats.cache_misses  # what the first one compiled was used
    (file,) = tmp_path.rglob(f"*.{suffix}")
    content = bytearray(file.read_bytes())
    if damage == "flipped":
        content[-40] ^= 4
    file.write_bytes({"emptied": b"", "truncated": content[:-50], "flipped": content}[damage])
    mended = load(path)
    assert mended.double(21) == 42
    assert mended.double.stats.cache_misses
    assert not load(path).double.stats.cache_misses


def test_code_kept_for_a_class_that_has_another_name_now_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "doubling.py"
    for name in ("Old", "New"):
        pair = f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    x: int\n"
        path.write_text(pair + SOURCE.replace("2 * x", "2 * x.x"))
        module = load(path)
        monkeypatch.setitem(sys.modules, "doubling", module)  # where the kept code looks for the class
        assert module.double(getattr(module, name)(21)) == 42


@pytest.mark.processes
def test_without_a_folder_to_write_to_a_temporary_one_is_used() -> None:
    code = (
        "from numba.core import caching\n"
        "user = caching.UserProvidedCacheLocator\n"
        "caching.CompileResultCacheImpl._locator_classes = [user]\n"
        "import numpy as np, normalfan as nf\n"
        "arms = nf.MDP(np.array([[0, 0]]), 0, 1)\n"
        "print(nf.price_stream(arms, np.zeros((2, 1, 1, 2))).total)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.stdout == "0.0\n", run.stderr
    assert run.stderr.count("set NUMBA_CACHE_DIR to keep them") == 1
    assert "Traceback" not in run.stderr
