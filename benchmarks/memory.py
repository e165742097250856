"""Peak memory of long streams and of very large rounds; writes memory.json beside itself.

    python benchmarks/memory.py

Each case runs in a process of its own. What counts is the peak of resident memory above that of the same
process after its kernels have been loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import normalfan as nf

HERE = Path(__file__).parent
SHAPE = (24, 41, 5)  # a day of a battery: hours, levels, actions
LARGE = {"million_states": (20, 1_000_000), "ten_million_states": (5, 10_000_000)}
"""Steps and states of sparse problems; the larger one needs 14 GB."""


def forget_peak() -> float:
    """Start to measure the peak again; returns the present size in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


def peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) / 1024


def battery_like(rng: np.random.Generator) -> nf.MDP:
    return nf.MDP(rng.integers(0, SHAPE[1], size=SHAPE[1:]), 20, horizon=SHAPE[0])


def price_file(path: str) -> dict[str, float]:
    """Price a memory-mapped file of losses."""
    mdp = battery_like(np.random.default_rng(0))
    nf.price_stream(mdp, np.zeros((300, *SHAPE)))
    before, start = forget_peak(), time.perf_counter()
    motion = nf.price_stream(mdp, np.load(path, mmap_mode="r"))
    return {
        "rounds": len(motion.prices),
        "file_megabytes": Path(path).stat().st_size / 2**20,
        "results_megabytes": (motion.by_step.nbytes + 120 * len(motion.prices)) / 2**20,
        "peak_growth_megabytes": peak_megabytes() - before,
        "seconds": time.perf_counter() - start,
    }


def price_large(name: str, detail: str) -> dict[str, float]:
    """Price two rounds of a sparse problem with very many states."""
    from scipy.sparse import csr_array

    (horizon, n_states), n_actions, successors = LARGE[name], 4, 4
    rng = np.random.default_rng(0)
    n_rows = n_states * n_actions
    weights = rng.dirichlet(np.ones(successors), size=n_rows).reshape(-1)
    columns = rng.integers(0, n_states, size=n_rows * successors).astype(np.int32)
    kernel = csr_array(
        (weights, columns, np.arange(0, n_rows * successors + 1, successors)), shape=(n_rows, n_states)
    )
    mdp = nf.MDP(kernel, 0, horizon=horizon)
    del weights, columns, kernel
    losses = rng.random((2, horizon, n_states, n_actions))
    before, start = forget_peak(), time.perf_counter()
    motion = nf.price_stream(mdp, losses, detail=detail)  # type: ignore[arg-type]
    return {
        "loss_megabytes_per_round": losses[0].nbytes / 2**20,
        "peak_growth_megabytes": peak_megabytes() - before,
        "peak_megabytes": peak_megabytes(),
        "seconds_per_round": (time.perf_counter() - start) / len(losses),
        "price": float(motion.prices[1]),
    }


def in_own_process(*arguments: str) -> dict[str, float]:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(*arguments, done.stdout.strip(), flush=True)
    return json.loads(done.stdout)


def main() -> None:
    results: dict[str, object] = {"command": "python benchmarks/memory.py"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "losses.npy"
        streams = []
        for rounds in (1_000, 10_000, 100_000):
            file = np.lib.format.open_memmap(path, "w+", np.float64, (rounds, *SHAPE))
            rng = np.random.default_rng(1)
            for first in range(0, rounds, 1000):
                file[first : first + 1000] = rng.random((min(1000, rounds - first), *SHAPE))
            del file
            streams.append(in_own_process("file", str(path)))
        results["streams"] = streams
    for name in LARGE:
        results[name] = {detail: in_own_process(name, detail) for detail in ("prices", "full")}
    (HERE / "memory.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["file", path]:
            print(json.dumps(price_file(path)))
        case [name, detail] if name in LARGE:
            print(json.dumps(price_large(name, detail)))
        case _:
            main()
