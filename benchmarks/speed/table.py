"""The benchmark: every workload, every contestant, in one run and one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from benchmarks.speed import limits, peers, simulators
from benchmarks.speed.peers import Peer
from benchmarks.speed.workloads import WORKLOADS, Workload
from normalfan.progress import progress_bar

Contestants: TypeAlias = dict[str, Callable[[Workload], Peer | None]]

PRICERS: Contestants = {
    "normalfan": peers.ours,
    "normalfan, 2 threads": peers.ours_two_threads,
    "normalfan, full detail": peers.ours_full,
    "normalfan, full detail, 2 threads": peers.ours_full_two_threads,
    "QuantEcon": peers.quantecon,
    "QuantEcon, backups alone": peers.quantecon_backups,
    "NumPy, batched": peers.numpy_batched,
    "NumPy, bandit": peers.numpy_arms,
    "jaxdp, vmapped": peers.jaxdp_vmapped,
    "HiGHS": peers.highs,
}

SIMULATORS: Contestants = {
    "normalfan": simulators.ours,
    "normalfan, 2 threads": simulators.ours_two_threads,
    "normalfan, one run with its accounts": simulators.ours_one_run,
    "NumPy, run by run": simulators.numpy_one_run,
    "NumPy, all runs at once": simulators.numpy_all_runs,
}

SEED = 20260629


def measure(names: Sequence[str], *, quick: bool = False) -> list[dict[str, Any]]:
    """One row per workload and contestant: microseconds per round, and its ratio to ours."""
    from threadpoolctl import threadpool_limits

    rows = []
    with progress_bar("benchmark", len(names), wanted=True) as advance, threadpool_limits(1):
        for name in names:
            rows += _measure_workload(WORKLOADS[name](np.random.default_rng(SEED)), quick)
            advance(1)
    return rows


def _measure_workload(workload: Workload, quick: bool) -> list[dict[str, Any]]:
    contestants = contestants_of(workload)
    best = dict.fromkeys(contestants, np.inf)
    for peer in contestants.values():
        peer.run()  # compile, load, touch the data
    check_agreement(contestants)
    # Taking turns spreads whatever else the machine is doing over all of them alike.
    for _ in range(2 if quick else 7):
        for name, peer in contestants.items():
            repetitions = 1 if peer.rounds > 1 else 3
            clock = time.perf_counter if "threads" in name else time.process_time
            taken = limits.seconds(peer.run, repetitions, clock) / peer.rounds
            best[name] = min(best[name], taken)
    rows = [_row(workload, name, taken, best["normalfan"]) for name, taken in best.items()]
    yardsticks = {} if workload.etas else _yardsticks(workload)
    return rows + [_row(workload, name, taken, best["normalfan"]) for name, taken in yardsticks.items()]


def contestants_of(workload: Workload) -> dict[str, Peer]:
    """Those who can do this work and are installed, by name."""
    entered = {name: enter(workload) for name, enter in (SIMULATORS if workload.etas else PRICERS).items()}
    return {name: peer for name, peer in entered.items() if peer is not None}


def check_agreement(contestants: dict[str, Peer]) -> None:
    """A contest between different answers would measure nothing."""
    if "QuantEcon" in contestants:
        theirs = contestants["QuantEcon"].run()
        ours = contestants["normalfan"].run()[1 : len(theirs) + 1]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    for name in list(SIMULATORS)[2:]:
        if name in contestants:
            paid = np.atleast_2d(contestants[name].run())
            ours = contestants["normalfan"].run()[: len(paid), : paid.shape[1]]
            np.testing.assert_allclose(ours, paid, rtol=1e-9)


def _row(workload: Workload, contestant: str, taken: float, ours: float) -> dict[str, Any]:
    return {
        "workload": workload.name,
        "problem": workload.description,
        "contestant": contestant,
        "microseconds_per_round": taken * 1e6,
        "times_ours": taken / ours,
    }


def _yardsticks(workload: Workload) -> dict[str, float]:
    """Seconds a round that this machine takes for what cannot be left out."""
    mdp = workload.mdp
    read = 8.0 * np.count_nonzero(mdp.reachable) * mdp.n_actions
    entries = float(mdp.transitions.csr(0).nnz * (mdp.horizon - 1))
    match workload.name:
        case "dense":
            # P V' in full; P W' for the one action that the old face keeps.
            flops = 2.0 * entries * (1.0 + 1.0 / mdp.n_actions)
            return {"matrix product": flops / _rate(limits.product_rate)}
        case "sparse":
            return {"sum of values met, in cache": (16.0 * entries + read) / _rate(limits.cache_sum_rate)}
        case _:
            return {
                "sum of the losses": read / _rate(limits.memory_sum_rate),
                "limit: memory": read / _rate(limits.reading_rate, 1),
                "limit: memory, 2 threads": read / _rate(limits.reading_rate, 2),
            }


@cache
def _rate(measured: Callable[..., float], *threads: int) -> float:
    return measured(*threads)


def print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="A round: both its backups, or a learner's step; float64, one thread unless said otherwise"
    )
    table.add_column("problem")
    table.add_column("contestant")
    table.add_column("µs a round", justify="right")
    table.add_column("× ours", justify="right")
    before = None
    for row in rows:
        if before not in (None, row["workload"]):
            table.add_section()
        table.add_row(
            f"{row['workload']}: {row['problem']}" if row["workload"] != before else "",
            row["contestant"],
            f"{row['microseconds_per_round']:,.3g}",
            f"{row['times_ours']:.2f}",
        )
        before = row["workload"]
    Console().print(table)
