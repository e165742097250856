"""The same sweep over step sizes in NumPy, run by run and all runs at once.

The peers are the learners' equations written directly, without the checks that the learner objects make in
every round: arrays allocated once, updated in place. What is compared is the time of a round of a run. All of
them run on one thread in float64.
"""

from __future__ import annotations

import numpy as np

from benchmarks.speed.peers import Peer
from benchmarks.speed.workloads import Workload
from normalfan.learners import Hedge, MirrorDescent
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.regret import run
from normalfan_paper.simulation import MirrorSetting, simulate_hedge, simulate_mirror_descent


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


def ours_one_run(workload: Workload) -> Peer:
    """The first run of the sweep, by a learner of its own and with the accounts of its regret."""
    mdp, losses, eta = workload.mdp, workload.losses, workload.etas[0]
    learner = Hedge if workload.name == "hedge" else MirrorDescent
    return Peer(lambda: run(mdp, learner(mdp, eta), losses).losses_paid, len(losses))


def numpy_one_run(workload: Workload) -> Peer:
    """The first run of the sweep; a sweep is a loop over such runs."""
    return _in_numpy(workload, np.array(workload.etas[0]), len(workload.losses))


def numpy_all_runs(workload: Workload) -> Peer:
    """All runs of the sweep, along an axis of every array, for some of the rounds."""
    return _in_numpy(workload, np.array(workload.etas), min(len(workload.losses), 200) // 4)


def _in_numpy(workload: Workload, etas: FloatArray, rounds: int) -> Peer:
    losses = workload.losses[:rounds]
    if workload.name == "hedge":
        return Peer(lambda: _hedge(losses[:, 0, 0], etas), rounds * etas.size)
    return Peer(lambda: _mirror_descent(workload.mdp, losses, etas), rounds * etas.size)


def _hedge(losses: FloatArray, etas: FloatArray) -> FloatArray:
    logs, weights, cost = np.zeros((3, *etas.shape, losses.shape[1]))
    eta = etas[..., None]
    paid = np.empty((len(losses), *etas.shape))
    for t, loss in enumerate(losses):
        np.exp(logs, out=weights)
        paid[t] = weights @ loss / weights.sum(axis=-1)
        np.multiply(eta, loss, out=cost)
        logs -= cost
        logs -= logs.max(axis=-1, keepdims=True)
    return paid.T


def _mirror_descent(mdp: MDP, losses: FloatArray, etas: FloatArray) -> FloatArray:
    """A loop over the steps, all states of a step at once."""
    logs, policy, q = np.zeros((3, *etas.shape, *mdp.shape))
    nexts = mdp.transitions.csr(0).indices.reshape(mdp.shape[1:])  # of a deterministic problem
    eta = etas[..., None, None, None]
    paid = np.empty((len(losses), *etas.shape))
    for t, loss in enumerate(losses):
        np.exp(logs, out=policy)
        policy /= policy.sum(axis=-1, keepdims=True)
        values = np.zeros((*etas.shape, mdp.n_states))
        for h in range(mdp.horizon - 1, -1, -1):
            here = q[..., h, :, :]
            np.add(loss[h], values[..., nexts], out=here)
            values = np.einsum("...a,...a->...", policy[..., h, :, :], here)
        paid[t] = values @ mdp.initial
        q *= eta
        logs -= q
        logs -= logs.max(axis=-1, keepdims=True)
    return paid.T
