"""Peak memory of the client of a fleet, as members grow in number; writes fleet_memory.json beside itself.

    python benchmarks/fleet_memory.py [MEMBERS …]          2,000, 20,000 and 200,000, if not told

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
from normalfan.io import save_mdp
from normalfan.jobs import Members, Processes, price_fleet
from normalfan.jobs.fleet import gather_members, total_up

HERE = Path(__file__).parent
ROW_GROUP = 10_000  # rows: polars reads at least a row group of the table at a time


def make_fleet(folder: Path, members: int) -> Path:
    save_mdp(nf.MDP(np.array([[0, 0]]), 0, horizon=1), folder / "model.npz")
    np.save(folder / "losses.npy", np.reshape([0.0, 1.0, 2.0, 1.5, 0.0, 1.0], (3, 1, 1, 2)))
    table = folder / "fleet.parquet"
    polars.select(
        member=polars.format("member {}", polars.int_range(members)),
        model=polars.lit("model.npz"),
        losses=polars.lit("losses.npy"),
    ).write_parquet(table, row_group_size=ROW_GROUP)
    return table


def price(table: str) -> dict[str, float]:
    start = time.perf_counter()
    result = price_fleet(Members.of_table(table), Path(table).parent / "out", Processes())
    return {
        "members": result.totals.members,
        "client_peak_megabytes": peak_megabytes(),
        "seconds": time.perf_counter() - start,
    }


def total(cells: str, copies: str) -> dict[str, float]:
    """Only what follows the run, on several copies of its results: fleets too large to price here."""
    files = sorted(Path(cells).rglob("*.parquet")) * int(copies)
    members = Path(cells).parent / "copies.parquet"
    gather_members(files, members)
    return {"members": total_up(members).members, "client_peak_megabytes": peak_megabytes()}


def in_own_process(*arguments: str) -> dict[str, float]:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(done.stdout.strip(), flush=True)
    return json.loads(done.stdout)


def main(*members: str) -> None:
    runs = []
    for count in members or ("2000", "20000", "200000"):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(in_own_process("price", str(make_fleet(Path(folder), int(count)))))
            totals = [in_own_process("total", f"{folder}/out/cells", copies) for copies in ("1", "5", "20")]
    command = " ".join(["python benchmarks/fleet_memory.py", *members])
    results = {"command": command, "runs": runs, "totals_of_copies_of_the_last": totals}
    (HERE / "fleet_memory.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["price", table]:
            print(json.dumps(price(table)))
        case ["total", cells, copies]:
            print(json.dumps(total(cells, copies)))
        case members:
            main(*members)
