"""The problems of the benchmark.

Four are priced, one for each kind of transitions and a bandit; two are sweeps of a learner over step sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan_paper.environments.gridworlds import gridworld


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    name: str
    description: str
    mdp: MDP
    losses: FloatArray  # [T, H, S, A]; what is priced is larger than the caches
    etas: tuple[float, ...] = ()  # of a sweep: one run each


def dense(rng: np.random.Generator) -> Workload:
    kernel = rng.dirichlet(np.ones(200), size=(200, 8))
    return _workload("dense", "S=200, A=8, H=30", MDP(kernel, 0, horizon=30), 990, rng)


def grid(rng: np.random.Generator) -> Workload:
    return _workload("grid", "15×15, A=5, H=30, corner start", gridworld(15, 30), 4096, rng)


def sparse(rng: np.random.Generator) -> Workload:
    from scipy.sparse import csr_array

    n_states, n_actions, successors = 20_000, 5, 5
    n_rows = n_states * n_actions
    weights = rng.dirichlet(np.ones(successors), size=n_rows).reshape(-1)
    columns = rng.integers(0, n_states, size=n_rows * successors)
    starts = np.arange(0, n_rows * successors + 1, successors)
    kernel = csr_array((weights, columns, starts), shape=(n_rows, n_states))
    every_state = np.full(n_states, 1.0 / n_states)
    mdp = MDP(kernel, every_state, horizon=30)
    return _workload("sparse", "S=20,000, A=5, 5 random successors, H=30", mdp, 55, rng)


def arms(rng: np.random.Generator) -> Workload:
    bandit = MDP(np.zeros((1, 128), dtype=int), 0, horizon=1)
    return _workload("arms", "one state, K=128", bandit, 200_000, rng)


def hedge(rng: np.random.Generator) -> Workload:
    bandit = MDP(np.zeros((1, 128), dtype=int), 0, horizon=1)
    return _workload("hedge", "Hedge, K=128, 64 step sizes; a round of a run", bandit, 2000, rng, 64)


def mirror(rng: np.random.Generator) -> Workload:
    description = "mirror descent, 15×15, A=5, H=30, 16 step sizes; a round of a run"
    return _workload("mirror", description, gridworld(15, 30), 60, rng, 16)


WORKLOADS: dict[str, Callable[[np.random.Generator], Workload]] = {
    "dense": dense,
    "grid": grid,
    "sparse": sparse,
    "arms": arms,
    "hedge": hedge,
    "mirror": mirror,
}


def _workload(
    name: str, description: str, mdp: MDP, rounds: int, rng: np.random.Generator, n_runs: int = 0
) -> Workload:
    etas = tuple(np.geomspace(0.04, 1.0, n_runs).tolist())
    return Workload(name, description, mdp, rng.random((rounds, *mdp.shape)), etas)
