"""The code of a module: its own source and all that it imports of its package and of the library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from sentences import check_refusal

from normalfan import sources
from normalfan.sources import digest_of_code, files_of_code

PACKAGE = {
    "__init__.py": "",
    "task.py": "import numpy\nfrom . import near\n",
    "near.py": "def late():\n    from study.inner.far import one\n    return one\n",
    "inner/__init__.py": "",
    "inner/far.py": "from ..base import two\nimport study.inner.beside\none = 1\n",
    "inner/beside.py": "",
    "base.py": "from normalfan.errors import InputError\ntwo = 2\n",
    "elsewhere.py": "import study.task\n",
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package whose task imports at the top, inside a function, and relative to itself."""
    folder = tmp_path / "here" / "study"
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder.parent))
    digest_of_code.cache_clear()
    yield folder
    digest_of_code.cache_clear()


def digest() -> str:
    digest_of_code.cache_clear()
    return digest_of_code("study.task")


def test_the_code_is_what_is_imported_through_others_too(study: Path) -> None:
    files = files_of_code("study.task")
    assert files["study.inner.far"] == study / "inner" / "far.py"
    assert sorted(files) == [
        "normalfan.errors",
        "normalfan.text",
        "study",
        "study.base",
        "study.inner.beside",
        "study.inner.far",
        "study.near",
        "study.task",
    ]
    assert not [name for name in sys.modules if name.startswith("study")]  # nothing was run


@pytest.mark.parametrize("name", ["task.py", "near.py", "inner/far.py", "inner/beside.py", "base.py"])
def test_a_change_in_what_is_imported_changes_the_digest(study: Path, name: str) -> None:
    before = digest()
    with (study / name).open("a") as file:
        file.write("# edited\n")
    assert digest() != before


def test_a_change_elsewhere_does_not(study: Path) -> None:
    before = digest()
    (study / "elsewhere.py").write_text("three = 3\n")
    (study / "new.py").write_text("four = 4\n")
    assert digest() == before


def test_where_the_files_are_does_not_count(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    moved = study.parent.parent / "there"
    shutil.move(study.parent, moved)
    monkeypatch.syspath_prepend(str(moved))
    assert files_of_code("study.task")["study.task"] == moved / "study" / "task.py"
    assert digest() == before


def test_the_same_lines_in_another_file_are_other_code(study: Path) -> None:
    before = digest()
    (study / "base.py").rename(study / "basis.py")
    far = study / "inner" / "far.py"
    far.write_text(far.read_text().replace("base", "basis"))
    assert digest() != before


@pytest.mark.processes
def test_two_processes_agree(study: Path) -> None:
    code = "from normalfan.sources import *; print(digest_of_code('study.task'), library_version())"
    path = os.pathsep.join([str(study.parent), *sys.path])
    told = [
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert told == [[digest(), sources.library_version()]] * 2


def test_a_task_that_imports_the_library_depends_on_all_that_computes(study: Path) -> None:
    (study / "task.py").write_text("import normalfan as nf\n")
    layers = {name.split(".")[1] for name in files_of_code("study.task") if name.startswith("normalfan.")}
    assert {"problem", "geometry", "exact", "pricing", "learners", "regret", "io", "_kernels"} <= layers
    assert "cli" not in layers


def test_compiled_modules_count_by_their_bytes(study: Path) -> None:
    (study / "base.so").write_bytes(b"\x7fELF\0")
    (study / "base.py").unlink()
    before = digest()
    (study / "base.so").write_bytes(b"\x7fELF\1")
    assert digest() != before


@pytest.mark.usefixtures("study")
def test_a_module_that_nobody_can_import_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    for name in ("study.nothing", "no_such_package.task", "study.base.two", "__main__"):
        check_refusal(partial(files_of_code, name), f"the module {name!r} was not found")
