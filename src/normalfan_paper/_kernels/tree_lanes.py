"""Mirror descent on a binary tree of which only the optimal paths are stored.

In round t a step along the path b_t is free and every other step costs γ. At a node off the path both actions
cost the same and lead to the same, so no learner driven by Q ever prefers one: such nodes stay uniform and
are worth γ times the steps left. On the path, with r steps left counting this one and V' the value of the
next node,

    gap = Q(wrong) − Q(right) = γ r − V',       V = V' + P(wrong) · gap,

and the mirror step adds η·gap to the log-odds of the right action. A round costs H such steps whatever the
size of the tree. Nodes get a number when a path first visits them; the runs are the lanes.
"""

from __future__ import annotations

import numpy as np

from normalfan._kernels.buffers import aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import LANES, absolute, at_most, broadcast, fma, select, zero_lanes
from normalfan._kernels.memory import item, load, store
from normalfan_paper._kernels.exponential import weight
from normalfan_paper._kernels.hedge_lanes import whole_lanes


@inner
def _descend(paths, start, children, used, nodes):
    """The numbers of the nodes on a path; returns how many numbers are in use."""
    node = 0
    nodes[0] = 0
    for h in range(len(nodes) - 1):
        branch = 2 * node + paths[start + h]
        if children[branch] == 0:  # the root is nobody's child
            children[branch] = used
            used += 1
        node = children[branch]
        nodes[h + 1] = node
    return used


@inlined
def _wrong(lead):
    """1 / (1 + exp(lead)), without overflow."""
    zero = zero_lanes()
    one = broadcast(1.0)
    w = weight(zero - absolute(lead))
    return select(at_most(zero, lead), w, one) / (one + w)


@kernel
def tree_kernel(paths, gamma, etas, children, nodes, odds, paid):
    """``paths`` [T*H] of 0 and 1, ``odds`` [node, runs] of action 1; fills paid [T*runs]."""
    zero = zero_lanes()
    steps, width = len(nodes), len(etas)
    used = 1
    for t in range(len(paid) // width):
        used = _descend(paths, t * steps, children, used, nodes)
        for first in range(0, width, LANES):
            eta = load(etas, first)
            value = zero
            for h in range(steps - 1, -1, -1):
                towards = broadcast(2.0 * item(paths, t * steps + h) - 1.0)
                place = np.int64(item(nodes, h)) * width + first
                lead = load(odds, place) * towards
                gap = broadcast(gamma * (steps - h)) - value
                value = fma(_wrong(lead), gap, value)
                store(odds, place, fma(eta, gap, lead) * towards)
            store(paid, t * width + first, value)


def run_tree(paths: np.ndarray, gamma: float, etas: np.ndarray) -> np.ndarray:
    """What each run pays in each round, [runs, T], on optimal paths [T, H]."""
    rounds, steps = paths.shape
    padded = whole_lanes(etas)
    paid = np.empty(rounds * len(padded))
    most = _most_nodes(paths)
    tree_kernel(
        frozen(paths, np.uint8), float(gamma), padded,
        np.zeros(2 * most, np.int32), np.zeros(steps, np.int32), aligned_zeros(most * len(padded)), paid,
    )  # fmt: skip
    return paid.reshape(rounds, -1)[:, : len(etas)].T


def _most_nodes(paths: np.ndarray) -> int:
    """A bound on the number of nodes on all paths: a new one only where the path moves."""
    moved = 1 + int((paths[1:] != paths[:-1]).any(axis=1).sum())
    return moved * paths.shape[1]
