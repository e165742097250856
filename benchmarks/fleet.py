"""A fleet of batteries on real prices, priced three ways; writes fleet.json beside itself.

    python benchmarks/fleet.py [MEMBERS [DAYS]]               2,000 batteries, 365 days, if not told otherwise
    python benchmarks/fleet.py make FOLDER [MEMBERS [DAYS]]   only the files that `normalfan fleet` reads

Each battery has its own size, power, efficiency, leak and wear, and trades at one of ERCOT's hubs. The
command is run by one process, by a process for each core, and by a Dask cluster of as many workers: scheduler
and workers are processes of their own. The results must be equal to the bit.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars

from normalfan.battery import HUBS, Battery, ercot_prices
from normalfan.cores import usable_cores
from normalfan.io import save_losses, save_mdp
from normalfan.jobs.run import ONE_THREAD

HERE = Path(__file__).parent
MEMBERS, DAYS = 2000, 365
IN_A_FOLDER = 1000


def battery(rng: np.random.Generator) -> Battery:
    hours = int(rng.choice([2, 4, 5]))  # of full power: half of it then moves whole levels an hour
    power = float(rng.integers(5, 100))
    return Battery(
        capacity=hours * power,
        power=power,
        charging=float(rng.uniform(0.85, 0.97)),
        discharging=float(rng.uniform(0.85, 0.97)),
        leak=float(rng.uniform(0.0, 0.03)),
        wear=float(rng.uniform(1.0, 15.0)),
    )


def make_fleet(folder: Path, members: int = MEMBERS, days: int = DAYS) -> Path:
    """Write models and factored losses; the path of the fleet's table."""
    rng = np.random.default_rng(2021)
    markets = {hub: ercot_prices(hub) for hub in HUBS}
    rows = []
    for i in range(members):
        one, market = battery(rng), markets[HUBS[i % len(HUBS)]]
        place = Path(f"{i // IN_A_FOLDER}")
        (folder / place).mkdir(parents=True, exist_ok=True)
        mdp = one.mdp()
        model, losses = place / f"model-{i}.npz", place / f"losses-{i}.npz"
        save_mdp(mdp, folder / model)
        stream = one.losses(market.prices[:days], round_names=market.dates[:days])
        save_losses(stream, mdp, folder / losses)
        rows.append((f"battery {i}", str(model), str(losses)))
    table = folder / "fleet.parquet"
    polars.DataFrame(rows, schema=["member", "model", "losses"], orient="row").write_parquet(table)
    return table


def price(table: Path, out: Path, *engine: str) -> dict[str, float]:
    """Run the command; how long it took, it and the processes that it started, and what it told."""
    start, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "normalfan", "fleet", table, "--out", out, "--json", *engine]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds, after = time.perf_counter() - start, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "seconds": seconds,
        "cpu_seconds": spent,
        "members_per_second": told["members"] / seconds,
        "total": told["total"],
    }


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers on this machine; the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
    dask = [sys.executable, "-m", "dask"]
    serve = [*dask, "scheduler", "--host", address, "--no-dashboard"]
    work = [*dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    commands = [serve, *[work] * workers]
    started = [subprocess.Popen(command, cwd=folder, env=environment, **quiet) for command in commands]
    try:
        wait_for_workers(address, workers)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def wait_for_workers(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)


def everything(out: Path) -> polars.DataFrame:
    """All that a run found out, in one order."""
    return polars.scan_parquet(out / "cells" / "**" / "*.parquet").sort("member").collect()


def compare(members: int, days: int) -> dict[str, object]:
    cores = usable_cores()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = make_fleet(folder, members, days)
        few = folder / "few.parquet"
        polars.read_parquet(table).head(5).write_parquet(few)
        price(few, folder / "warm", "--workers", "1")  # kernels are compiled
        runs = {"one process": price(table, folder / "serial", "--workers", "1")}
        runs[f"{cores} processes"] = price(table, folder / "processes", "--workers", str(cores))
        with cluster(folder, cores) as address:
            runs[f"Dask, {cores} workers"] = price(table, folder / "dask", "--cluster", address)
        found = [everything(folder / out) for out in ("serial", "processes", "dask")]
        files = list((folder / "serial" / "cells").rglob("*.parquet"))
        spent = sum(float(polars.read_parquet_metadata(path)["seconds"]) for path in files)
        size = sum(path.stat().st_size for path in files)
    return {
        "command": f"python benchmarks/fleet.py {members} {days}",
        "members": members,
        "days": days,
        "cores": cores,
        "load_average": os.getloadavg()[2],
        "runs": runs,
        "cpu_milliseconds_per_member": 1000 * spent / members,
        "equal_to_the_bit": all(frame.equals(found[0]) for frame in found),
        "bytes_per_member": size / members,
    }


def main(members: int = MEMBERS, days: int = DAYS) -> None:
    results = compare(members, days)
    (HERE / "fleet.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, *sizes]:
            print(make_fleet(Path(folder), *map(int, sizes)))
        case sizes:
            main(*map(int, sizes))
