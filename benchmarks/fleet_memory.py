"""Peak memory of the client of a fleet, as members grow in number; writes fleet_memory.json beside itself.

    python benchmarks/fleet_memory.py [MEMBERS …]          2,000 and 200,000, if not told otherwise

Members are as small as can be (one state, two actions, three rounds), and share their files: what could grow
is only what the client keeps of them. Each run is a process of its own, with a worker process for each core.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars
from memory import peak_megabytes

import normalfan as nf
from normalfan.fleet import members_of_table, price_fleet
from normalfan.io import save_mdp
from normalfan.sweep import Processes

HERE = Path(__file__).parent
ROW_GROUP = 10_000  # rows: polars reads at least a row group of the table at a time


def make_fleet(folder: Path, members: int) -> Path:
    save_mdp(nf.MDP(np.array([[0, 0]]), 0, horizon=1), folder / "model.npz")
    np.save(folder / "losses.npy", np.array([[0.0, 1.0], [2.0, 1.5], [0.0, 1.0]]))
    table = folder / "fleet.parquet"
    polars.select(
        member=polars.format("member {}", polars.int_range(members)),
        model=polars.lit("model.npz"),
        losses=polars.lit("losses.npy"),
    ).write_parquet(table, row_group_size=ROW_GROUP)
    return table


def price(table: str) -> dict[str, float]:
    start = time.perf_counter()
    result = price_fleet(members_of_table(table), Path(table).parent / "out", Processes())
    return {
        "members": result.totals.members,
        "client_peak_megabytes": peak_megabytes(),
        "seconds": time.perf_counter() - start,
    }


def in_own_process(members: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        table = make_fleet(Path(folder), int(members))
        command = [sys.executable, __file__, "price", str(table)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(done.stdout.strip(), flush=True)
    return json.loads(done.stdout)


def main(*members: str) -> None:
    runs = [in_own_process(count) for count in members or ("2000", "200000")]
    results = {"command": " ".join(["python benchmarks/fleet_memory.py", *members]), "runs": runs}
    (HERE / "fleet_memory.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["price", table]:
            print(json.dumps(price(table)))
        case members:
            main(*members)
