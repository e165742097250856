"""The command line: in this process, which is quick, or in one of its own, as a person meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

import pytest

from normalfan.cli import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def call(*arguments: object, stdin: str = "") -> Answer:
    """Run the command here; its standard streams are files."""
    with ExitStack() as opened:
        given, out, err = (opened.enter_context(TemporaryFile("w+", encoding="utf-8")) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        patch = opened.enter_context(pytest.MonkeyPatch.context())
        for name, value in {"stdin": given, "stdout": out, "stderr": err}.items():
            patch.setattr(sys, name, value)
        patch.setattr(sys, "argv", ["normalfan", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Answer(code, *map(_whole, (out, err)))


def _whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "normalfan", *arguments]
    surroundings = {**os.environ, **environment}
    return subprocess.run(  # noqa: S603
        command, input=stdin, capture_output=True, text=True, check=False, env=surroundings
    )
