"""The same sweep over step sizes, run by run in NumPy.

The peers are the learners' equations written directly, without the checks that the learner objects make in
every round: arrays allocated once, updated in place. They answer for one run, since a sweep is a loop over runs:
what is compared is the time of a round of a run. All of them run on one thread in float64.
"""

from __future__ import annotations

import numpy as np

from normalfan.bench.peers import Peer
from normalfan.bench.workloads import Workload
from normalfan.problem.arrays import FloatArray
from normalfan.problem.transitions import Deterministic
from normalfan.simulation import MirrorSetting, simulate_hedge, simulate_mirror_descent


def ours(workload: Workload) -> Peer:
    """All runs of the sweep together."""
    return _ours(workload, threads=1)


def ours_two_threads(workload: Workload) -> Peer:
    return _ours(workload, threads=2)


def _ours(workload: Workload, threads: int) -> Peer:
    mdp, losses, etas = workload.mdp, workload.losses, workload.etas

    def run() -> FloatArray:
        if workload.name == "hedge":
            return simulate_hedge(mdp, losses, etas, threads=threads)
        return simulate_mirror_descent(mdp, losses, [MirrorSetting(eta) for eta in etas], threads=threads)

    return Peer(run, len(losses) * len(etas))


def one_run_in_numpy(workload: Workload) -> Peer | None:
    """The first run of the sweep."""
    return _one_run_of_hedge(workload) if workload.name == "hedge" else _one_run_of_mirror_descent(workload)


def _one_run_of_hedge(workload: Workload) -> Peer:
    losses, eta = workload.losses[:, 0, 0], workload.etas[0]

    def run() -> FloatArray:
        logs, weights, cost = np.zeros((3, losses.shape[1]))
        paid = np.empty(len(losses))
        for t, loss in enumerate(losses):
            np.exp(logs, out=weights)
            paid[t] = weights @ loss / weights.sum()
            np.multiply(loss, eta, out=cost)
            logs -= cost
            logs -= logs.max()
        return paid

    return Peer(run, len(losses))


def _one_run_of_mirror_descent(workload: Workload) -> Peer | None:
    """A loop over the steps, all states of a step at once."""
    mdp, losses, eta = workload.mdp, workload.losses, workload.etas[0]
    if not isinstance(mdp.transitions, Deterministic):
        return None
    nexts = mdp.transitions.nexts[0]

    def run() -> FloatArray:
        logs, policy, q = np.zeros((3, *mdp.shape))
        paid = np.empty(len(losses))
        for t, loss in enumerate(losses):
            np.exp(logs, out=policy)
            policy /= policy.sum(axis=-1, keepdims=True)
            values = np.zeros(mdp.n_states)
            for h in range(mdp.horizon - 1, -1, -1):
                np.add(loss[h], values[nexts], out=q[h])
                values = np.einsum("sa,sa->s", policy[h], q[h])
            paid[t] = mdp.initial @ values
            q *= eta
            logs -= q
            logs -= logs.max(axis=-1, keepdims=True)
        return paid

    return Peer(run, len(losses))
