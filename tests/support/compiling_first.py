"""The kernels that take longest to compile, each compiled by one process of a run of all tests.

On a machine that has compiled nothing yet, the processes of a run meet the same kernels at the same time, and
each would compile them. So before its first test each takes what no other has taken from this list, costliest
first. What stands together shares functions, which are compiled once in a process.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import normalfan as nf


def problem(kind: str) -> nf.MDP:
    """Two steps, three states, two actions."""
    nexts = np.array([[0, 1], [1, 2], [2, 0]])
    if kind == "certain":
        return nf.MDP(nexts, initial=0, horizon=2)
    rows = (np.eye(3)[nexts.reshape(-1)] + 1 / 3) / 2
    return nf.MDP(csr_array(rows) if kind == "sparse" else rows.reshape(3, 2, 3), initial=0, horizon=2)


def sweeps(kind: str) -> None:
    """As the tests ask for them: of few rounds and many, in detail or not; some ties are near."""
    mdp = problem(kind)
    losses = np.zeros((20, *mdp.shape))
    losses[:, 1, 1] = [0.3, 0.1 + 0.2]
    losses[1] = np.arange(12.0).reshape(mdp.shape)
    factored = nf.FactoredLosses(losses[:, 0, 0], np.eye(12).reshape(12, *mdp.shape)[:2])
    for stream in (factored, losses, losses[:2]):
        for detail in ("full", "prices"):
            nf.price_stream(mdp, stream, detail=detail)
    nf.price_stream(mdp, losses.astype(np.float32))


def runs() -> None:
    """Of learners that step in different ways."""
    for kind in ("certain", "dense", "sparse"):
        mdp = problem(kind)
        losses = np.arange(36.0).reshape(3, *mdp.shape)
        for learner in (nf.learners.FaceTracker, nf.learners.MirrorDescent, nf.learners.TrustRegion):
            nf.run(mdp, learner(mdp), losses)


TASKS = {
    "sparse sweeps": partial(sweeps, "sparse"),
    "dense sweeps": partial(sweeps, "dense"),
    "certain sweeps": partial(sweeps, "certain"),
    "runs": runs,
}


def compile_what_nobody_has_taken(folder: Path) -> None:
    """Do the tasks that are not taken yet, as processes tell each other by files in a folder of theirs."""
    for name, task in TASKS.items():
        try:
            (folder / name).touch(exist_ok=False)
        except FileExistsError:
            continue
        task()
