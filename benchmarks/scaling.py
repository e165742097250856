"""How the cost of a stream grows with rounds, steps, states, actions and successors, beside the peers.

python -m benchmarks.scaling      writes benchmarks/scaling.json, and draws benchmarks/scaling.png from it

One size varies at a time around a sparse problem with random successors; one thread, float64.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.speed import limits, peers
from benchmarks.speed.workloads import Workload
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar

RESULTS = Path(__file__).with_suffix(".json")
BASE = {"rounds": 16, "steps": 20, "states": 2000, "actions": 5, "successors": 5}
SIZES = {
    "rounds": (2, 4, 8, 16, 32, 64, 128, 256),
    "steps": (1, 3, 10, 20, 60, 160),
    "states": (30, 100, 300, 1000, 2000, 8000, 32_000),
    "actions": (2, 5, 10, 20, 50),
    "successors": (1, 2, 5, 10, 30, 100),
}
CONTESTANTS = {
    "normalfan, prices": peers.ours,
    "normalfan, full detail": peers.ours_full,
    "QuantEcon, backups alone": peers.quantecon_backups,
    "NumPy, batched": peers.numpy_batched,
}
SEED = 20260629
REPETITIONS = 5


def workload(rounds: int, steps: int, states: int, actions: int, successors: int) -> Workload:
    rng = np.random.default_rng(SEED)
    rows = states * actions
    weights = rng.dirichlet(np.ones(successors), size=rows).reshape(-1)
    columns = rng.integers(0, states, size=rows * successors)
    starts = np.arange(0, rows * successors + 1, successors)
    kernel = csr_array((weights, columns, starts), shape=(rows, states))
    mdp = MDP(kernel, np.full(states, 1.0 / states), horizon=steps)
    return Workload("sparse", "", mdp, rng.random((rounds, *mdp.shape)))


def measure() -> list[dict[str, Any]]:
    """One row per size and contestant: the seconds of all rounds."""
    from threadpoolctl import threadpool_limits

    cases = [(name, size) for name, sizes in SIZES.items() for size in sizes]
    rows = []
    with progress_bar("scaling", len(cases), wanted=True) as advance, threadpool_limits(1):
        for varied, size in cases:
            case = workload(**(BASE | {varied: size}))
            for contestant, enter in CONTESTANTS.items():
                peer = enter(case)
                if peer is None:
                    continue  # not installed
                peer.run()  # compile, load, touch the data
                taken = limits.seconds(peer.run, REPETITIONS) * len(case.losses) / peer.rounds
                rows.append({"varied": varied, "size": size, "contestant": contestant, "seconds": taken})
            advance(1)
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(11, 2.9), layout="constrained")
    panels = figure.subplots(1, len(SIZES), sharey=True)
    for panel, varied in zip(panels, SIZES, strict=True):
        for contestant in CONTESTANTS:
            mine = [row for row in rows if (row["varied"], row["contestant"]) == (varied, contestant)]
            sizes, seconds = [row["size"] for row in mine], [row["seconds"] for row in mine]
            panel.loglog(sizes, seconds, marker="o", markersize=3, linewidth=1.2, label=contestant)
        panel.set_xlabel(varied)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3)
        panel.axvline(BASE[varied], color="0.7", linewidth=0.8, linestyle=":")
    panels[0].set_ylabel("seconds for all rounds")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    rows = measure()
    document = {"command": "python -m benchmarks.scaling", "base": BASE, "rows": rows}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    draw(rows, RESULTS.with_suffix(".png"))


if __name__ == "__main__":
    main()
