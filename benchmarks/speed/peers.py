"""The same two backups a round, done by others.

Each peer is a function from a workload to a `Peer`: a callable that prices some rounds, and how many. It
answers None where it does not apply or is not installed. All of them run on one thread in float64.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.speed.workloads import Workload
from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Peer:
    run: Callable[[], Any]
    rounds: int


def ours(workload: Workload) -> Peer:
    """Prices, values, crossings and face dimensions: `price_stream(…, detail="prices")`."""
    return _ours(workload, detail="prices", threads=1)


def ours_two_threads(workload: Workload) -> Peer:
    return _ours(workload, detail="prices", threads=2)


def ours_full(workload: Workload) -> Peer:
    """Everything `price_stream` gives by default: attribution, margins, variation, near-ties."""
    return _ours(workload, detail="full", threads=1)


def ours_full_two_threads(workload: Workload) -> Peer:
    return _ours(workload, detail="full", threads=2)


def _ours(workload: Workload, **options: Any) -> Peer:
    def run() -> FloatArray:
        return price_stream(workload.mdp, workload.losses, **options).prices

    return Peer(run, len(workload.losses))


def quantecon(workload: Workload) -> Peer | None:
    """QuantEcon's `backward_induction`, for the optimal and for the restricted backup of each round.

    It takes one reward for all steps, so it is called step by step. It returns one optimal action per
    state, so the old face is taken to be a vertex, which it is here: the prices agree with ours.
    """
    problem = _quantecon_problem(workload)
    if problem is None:
        return None
    from quantecon.markov.ddp import backward_induction

    mdp = workload.mdp
    rounds = {"dense": 6, "grid": 30, "sparse": 2, "arms": 500}[workload.name]

    def back(rewards: Iterator[FloatArray], plan: IntArray) -> float:
        values = np.zeros(mdp.n_states)
        for h, reward in zip(range(mdp.horizon - 1, -1, -1), rewards, strict=True):
            problem.R = reward.reshape(-1)
            found, chosen = backward_induction(problem, 1, values)
            values, plan[h] = found[0], chosen[0]
        return -float(mdp.initial @ values)

    def run() -> FloatArray:
        before, plan, unused = np.empty((3, mdp.horizon, mdp.n_states), dtype=int)
        back((-loss for loss in workload.losses[0, ::-1]), before)
        prices = np.empty(rounds)
        for t, loss in enumerate(workload.losses[1 : rounds + 1]):
            best = back((-step for step in loss[::-1]), plan)
            kept = (np.arange(mdp.n_actions) == old[:, None] for old in before[::-1])
            held = (np.where(k, -step, -np.inf) for k, step in zip(kept, loss[::-1], strict=True))
            prices[t] = back(held, unused) - best
            before, plan = plan, before
        return prices

    return Peer(run, rounds)


def quantecon_backups(workload: Workload) -> Peer | None:
    """The least that QuantEcon could need: two of its backward inductions on a reward that is given."""
    problem = _quantecon_problem(workload)
    if problem is None:
        return None
    from quantecon.markov.ddp import backward_induction

    problem.R = -workload.losses[0, 0].reshape(-1)

    def run() -> None:
        for _ in range(2):
            backward_induction(problem, workload.mdp.horizon)

    return Peer(run, 1)


def _quantecon_problem(workload: Workload) -> Any:
    if not importlib.util.find_spec("quantecon"):
        return None
    from quantecon.markov.ddp import DiscreteDP
    from scipy.sparse import csr_matrix

    mdp = workload.mdp
    states = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    actions = np.tile(np.arange(mdp.n_actions), mdp.n_states)
    kernel = mdp.transitions.csr(0)
    transitions = kernel.toarray() if workload.name == "dense" else csr_matrix(kernel)
    nearly_one = 1.0 - 1e-15  # a discount of exactly 1 is refused
    return DiscreteDP(np.zeros(len(states)), transitions, nearly_one, states, actions)


def numpy_batched(workload: Workload) -> Peer | None:
    """All rounds of a chunk at once in NumPy, through `expect`."""
    mdp, rounds = workload.mdp, {"dense": 64, "grid": 256, "sparse": 4, "arms": 20_000}
    losses = workload.losses[: rounds[workload.name]]

    def run() -> FloatArray:
        # [rounds, S] as columns [S, rounds]: one product for all of them.
        values = np.zeros((mdp.n_states, len(losses)))
        held = np.zeros_like(values)
        for h in range(mdp.horizon - 1, -1, -1):
            q = np.moveaxis(losses[:, h], 0, -1) + mdp.transitions.expect(h, values)
            values = q.min(axis=1)
            advantages = q - values[:, None]
            tied = advantages <= 1e-12
            ahead = advantages + mdp.transitions.expect(h, held)
            old = np.concatenate([np.ones_like(tied[..., :1]), tied[..., :-1]], axis=-1)
            held = np.where(old, ahead, np.inf).min(axis=1)
        prices: FloatArray = mdp.initial @ held
        return prices

    return Peer(run, len(losses))


def numpy_arms(workload: Workload) -> Peer | None:
    """The bandit written directly: rows of losses, no dynamics."""
    if workload.name != "arms":
        return None
    losses = workload.losses.reshape(len(workload.losses), -1)[:20_000]

    def run() -> FloatArray:
        advantages = losses - losses.min(axis=1, keepdims=True)
        tied = advantages <= 1e-12
        prices: FloatArray = np.where(tied[:-1], advantages[1:], np.inf).min(axis=1)
        return prices

    return Peer(run, len(losses))


def jaxdp_vmapped(workload: Workload) -> Peer | None:
    """Jaxdp's transition operator, vmapped over rounds and compiled, on one thread."""
    if workload.name != "dense" or not importlib.util.find_spec("jaxdp"):
        return None
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax
    import jax.numpy as jnp
    import jaxdp.mdp
    from jaxdp.operator import TransOp

    jax.config.update("jax_enable_x64", True)
    mdp = workload.mdp
    kernel = mdp.transitions.csr(0).toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    problem = jaxdp.mdp.MDP(
        transition=jnp.asarray(np.transpose(kernel, (1, 2, 0))),
        reward=jnp.zeros((mdp.n_actions, mdp.n_states, mdp.n_states)),
        initial=jnp.asarray(mdp.initial),
        terminal=jnp.zeros(mdp.n_states),
    )
    expect = jax.vmap(lambda values: TransOp.sa(problem, values))  # [T, S] -> [T, A, S]
    rounds = 128
    losses = jnp.asarray(np.transpose(workload.losses[:rounds], (1, 0, 3, 2)))  # [H, T, A, S]

    def prices(losses: Any) -> Any:
        def step(carry: Any, loss: Any) -> Any:
            values, held = carry
            q = loss + expect(values)
            best = q.min(axis=1)
            advantages = q - best[:, None]
            tied = advantages <= 1e-12
            old = jnp.concatenate([jnp.ones_like(tied[:1]), tied[:-1]])
            ahead = jnp.where(old, advantages + expect(held), jnp.inf).min(axis=1)
            return (best, ahead), None

        start = jnp.zeros((rounds, mdp.n_states))
        (_, held), _ = jax.lax.scan(step, (start, start), losses[::-1])
        return held @ problem.initial

    compiled = jax.jit(prices)
    return Peer(lambda: compiled(losses).block_until_ready(), rounds)


def highs(workload: Workload) -> Peer | None:
    """The definition itself: two linear programs over the polytope, by HiGHS."""
    if workload.name not in ("grid", "arms"):
        return None
    from normalfan_paper.linear_program import lp_price

    mdp, losses = workload.mdp, workload.losses
    return Peer(lambda: lp_price(mdp, losses[0], losses[1]), 1)
