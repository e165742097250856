"""The command line: in this process, which is quick, or in one of its own, as a person meets it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from normalfan.cli import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def call(*arguments: object) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["normalfan", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())


def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "normalfan", *arguments]
    surroundings = {**os.environ, **environment}
    return subprocess.run(  # noqa: S603
        command, input=stdin, capture_output=True, text=True, check=False, env=surroundings
    )
