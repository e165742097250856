"""What dynamics that move cost: twelve problems over ten thousand rounds, beside one.

    python benchmarks/moving.py

In runs, as maintenance and ageing come; in a random order, where almost every round has another problem than
the one before; and sparse problems that are all different. Writes moving.json beside itself
and the measured part of docs/how-to/moving.md; some minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from replan_tables import BEGIN, END
from scipy.sparse import csr_array

import normalfan as nf
from normalfan.battery import Battery
from normalfan_paper.environments.gridworlds import gridworld

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "moving.md"
ROUNDS, PROBLEMS, RANDOM_ROUNDS, DIFFERENT = 10_000, 12, 500, 40


def grid(rng: np.random.Generator) -> nf.MDP:
    """A gridworld in which twenty moves lead nowhere."""
    nexts = gridworld(15, 30).transitions.csr(0).indices.reshape(225, 5).copy()
    for s in rng.choice(225, size=20, replace=False):
        nexts[s, rng.integers(5)] = s
    return nf.MDP(nexts, 0, 30)


def battery(rng: np.random.Generator) -> nf.MDP:
    """A battery that leaks more or less."""
    return nf.MDP(Battery(leak=float(rng.uniform(0.005, 0.05))).mdp().transitions, 0, 24)


def sparse(rng: np.random.Generator, n_states: int = 2000) -> nf.MDP:
    """Five random successors of each of 10,000 moves."""
    rows = 5 * n_states
    weights = rng.dirichlet(np.ones(5), size=rows).reshape(-1)
    columns = rng.integers(0, n_states, size=5 * rows)
    kernel = csr_array((weights, columns, np.arange(0, 5 * rows + 1, 5)), shape=(rows, n_states))
    return nf.MDP(kernel, 0, 20)


def losses_of(mdp: nf.MDP, rounds: int, rng: np.random.Generator) -> Any:
    """Random losses [T, H, S, A] that overlap in memory: no two rounds are alike, and all fit."""
    size = int(np.prod(mdp.shape))
    step = min(size, 4096)
    pool = rng.random(step * rounds + size)
    _, states, actions = mdp.shape
    strides = (step, states * actions, actions, 1)
    return np.lib.stride_tricks.as_strided(pool, (rounds, *mdp.shape), [8 * one for one in strides])


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def measured(name: str, make: Callable[[np.random.Generator], nf.MDP], detail: str) -> dict[str, Any]:
    rng = np.random.default_rng(12)
    problems = [make(rng) for _ in range(PROBLEMS)]
    losses = losses_of(problems[0], ROUNDS, rng)
    in_runs = np.repeat(np.arange(PROBLEMS), -(-ROUNDS // PROBLEMS))[:ROUNDS]
    at_random = rng.integers(PROBLEMS, size=RANDOM_ROUNDS)

    def priced(some: nf.MDP | Sequence[nf.MDP], rounds: int, **moving: Any) -> Callable[[], object]:
        return lambda: nf.price_stream(some, losses[:rounds], detail=detail, **moving)

    priced(problems, 20, dynamics_of_round=at_random[:20])()  # compiles what is not compiled yet
    one = seconds(priced(problems[0], ROUNDS)) / ROUNDS
    runs = seconds(priced(problems, ROUNDS, dynamics_of_round=in_runs)) / ROUNDS
    mixed = seconds(priced(problems, RANDOM_ROUNDS, dynamics_of_round=at_random)) / RANDOM_ROUNDS
    return {
        "problem": name,
        "shape": list(problems[0].shape),
        "detail": detail,
        "one_problem_us_a_round": round(1e6 * one, 2),
        "twelve_in_runs_us_a_round": round(1e6 * runs, 2),
        "twelve_in_runs_ratio": round(runs / one, 3),
        "twelve_at_random_us_a_round": round(1e6 * mixed, 1),
        "twelve_at_random_ratio": round(mixed / one, 1),
    }


def all_different() -> dict[str, Any]:
    """Sparse problems, each of one round: what a round takes beside reading its transitions once."""
    rng = np.random.default_rng(13)
    problems = [sparse(rng) for _ in range(DIFFERENT)]
    losses = losses_of(problems[0], DIFFERENT, rng)
    of_round = np.arange(DIFFERENT)
    numbers = [one.transitions.csr(0) for one in problems]

    def read() -> float:
        return sum(float(one.data.sum() + one.indices.sum()) for one in numbers)

    for detail in ("prices", "full"):  # compiles what is not compiled yet
        nf.price_stream(problems[:3], losses[:3], dynamics_of_round=of_round[:3], detail=detail)
    reading = seconds(read) / DIFFERENT
    taken = {
        detail: seconds(
            lambda detail=detail: nf.price_stream(
                problems, losses, dynamics_of_round=of_round, detail=detail
            ),
            1,
        )
        / DIFFERENT
        for detail in ("prices", "full")
    }
    one = seconds(lambda: nf.price_stream(problems[0], losses, detail="prices")) / DIFFERENT
    return {
        "problem": "sparse, all different",
        "shape": list(problems[0].shape),
        "reading_transitions_us": round(1e6 * reading, 1),
        "one_problem_us_a_round": round(1e6 * one, 1),
        **{f"{detail}_us_a_round": round(1e6 * part, 1) for detail, part in taken.items()},
    }


def table(document: dict[str, Any]) -> str:
    """The measured part of docs/how-to/moving.md."""
    heads = ["problem", "detail", "one problem", "twelve, in runs", "×", "twelve, at random", "×"]
    lines = [heads, ["---", "---", *["---:"] * 5]]
    for row in document["streams"]:
        name = f"{row['problem']} {row['shape']}"
        runs, mixed = (
            (row[f"twelve_{how}_us_a_round"], row[f"twelve_{how}_ratio"]) for how in ("in_runs", "at_random")
        )
        numbers = [f"{number:,}" for number in (row["one_problem_us_a_round"], *runs, *mixed)]
        lines.append([name, row["detail"], *numbers])
    last = document["all_different"]
    text = f"Microseconds a round; {document['rounds']:,} rounds in runs.\n\n"
    text += "".join(f"| {' | '.join(line)} |\n" for line in lines)
    ms = {name: f"{number / 1000:.3g} ms" for name, number in last.items() if "_us" in name}
    return text + (
        f"\nSparse problems {last['shape']} that are all different take {ms['prices_us_a_round']} a round "
        f"for prices alone and {ms['full_us_a_round']} in full, where one problem takes "
        f"{ms['one_problem_us_a_round']}; reading a problem's transitions once takes "
        f"{ms['reading_transitions_us']}. So they are *not* bound by reading them: each problem is laid out "
        f"for the sweeps, checked, and compared with the last one.\n"
    )


def main() -> None:
    rows = [
        measured(name, make, detail)
        for name, make in (("battery", battery), ("grid", grid))
        for detail in ("prices", "full")
    ]
    document = {"rounds": ROUNDS, "problems": PROBLEMS, "streams": rows, "all_different": all_different()}
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=2) + "\n")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + table(document) + END + rest.split(END)[1])
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
