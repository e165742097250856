"""Starts commands quickly: a process that has imported everything, and forks.

Each request is a line {"arguments": […], "stdin": path, "stderr": path}. The answer is the id of the process
that runs the command, and, when it has ended, its exit code as `subprocess` would give it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

import normalfan as nf
import normalfan.replan
import normalfan.watch
from normalfan.cli import main
from normalfan.cli.app import app


def run(request: dict[str, object]) -> None:
    sys.argv = ["normalfan", *request["arguments"]]  # type: ignore[misc]
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", None), (2, "stderr", None)):
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND if flags is None else flags
        os.dup2(os.open(str(request.get(name, os.devnull)), how, 0o600), number)
    try:
        main()
    except SystemExit as ending:
        sys.stdout.flush()
        os._exit(int(ending.code or 0))
    os._exit(0)


if __name__ == "__main__":
    model = sys.argv[1]
    mdp = nf.io.load_mdp(model)
    nf.Monitor(mdp).update([[[0.0] * mdp.n_actions] * mdp.n_states] * mdp.horizon)
    with contextlib.redirect_stdout(io.StringIO()):  # parsing imports things, too
        app(["watch", model, "--state", "no-such-file", "--status"], standalone_mode=False)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            run(json.loads(line))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
