"""The two wheels, and virtual environments that have them and named dependencies, without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def build_wheels(folder: Path) -> dict[str, Path]:
    """The wheels by the name of their distribution."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT, ROOT / "companion")
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


def new_environment(folder: Path, *wheels: Path, extras: Iterable[str] = ()) -> Path:
    """Install wheels into an empty environment beside the base dependencies and those of some extras.

    The dependencies are links to what is installed here. Returns the folder of its commands.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    wanted = [
        *PROJECT["dependencies"],
        *(line for e in extras for line in PROJECT["optional-dependencies"][e]),
    ]
    for one in _with_all_they_need(wanted):
        for name in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            (packages / name).symlink_to(one.locate_file(name))
    _pip("--python", folder / "bin" / "python", "install", "--no-deps", "--no-index", *wheels)
    for compiled in (ROOT / "src").glob(
        "*/_kernels/__pycache__/*.nb?"
    ):  # what is known is not compiled again
        there = packages / compiled.relative_to(ROOT / "src")
        if there.parents[1].is_dir():
            there.parent.mkdir(exist_ok=True)
            shutil.copy(compiled, there)
    return folder / "bin"


def run_there(
    commands: Path, folder: Path, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `normalfan` of an environment in a folder; nothing of this process's environment reaches it."""
    return _started([str(commands / "normalfan"), *arguments], folder, stdin)


def run_all_there(commands: Path, folder: Path, lines: list[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Run `normalfan` for one command line after the other in one process: exit codes and standard errors."""
    done = _started([str(commands / "python"), "-c", ONE_AFTER_THE_OTHER], folder, json.dumps(lines))
    answers: list[tuple[int, str]] = json.loads(done.stdout)
    return answers


ONE_AFTER_THE_OTHER = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from normalfan.cli import main

answers = []
for words in json.load(sys.stdin):
    sys.argv = ["normalfan", *words]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as told:
        try:
            main()
        except SystemExit as end:
            answers.append((end.code, told.getvalue()))
print(json.dumps(answers))
"""


def _started(command: list[str], folder: Path, stdin: str) -> subprocess.CompletedProcess[str]:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(  # noqa: S603
        command, cwd=folder, input=stdin, capture_output=True, text=True, check=False, env=surroundings
    )


def _with_all_they_need(requirements: Iterable[str]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            found[name] = distribution(name)
            waiting += map(Requirement, found[name].requires or ())
    return list(found.values())


def _pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603
