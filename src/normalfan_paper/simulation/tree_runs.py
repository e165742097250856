"""Mirror descent on a lazy tree, many step sizes at once.

The learner is `MirrorDescent` on the explicit tree (constant step size, no floor). It is driven by Q^π, and
off the optimal path both actions have the same Q: only nodes that were ever on an optimal path leave the
uniform policy, and a round costs H visits whatever the number of leaves.

    >>> tree = LazyTree(0.5, np.array([[0, 0], [0, 0], [1, 0]]))
    >>> simulate_tree_mirror_descent(tree, etas=[1.0]).round(3)
    array([[0.625, 0.449, 0.87 ]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normalfan.problem.arrays import FloatArray
from normalfan_paper.environments.lazy_tree import LazyTree
from normalfan_paper.simulation.streams import checked_payments, in_parts, step_sizes


def simulate_tree_mirror_descent(tree: LazyTree, etas: Sequence[float], *, threads: int = 1) -> FloatArray:
    """What mirror descent pays with each of the step sizes, which is also its regret: [n_runs, T]."""
    from normalfan._kernels.buffers import LANES
    from normalfan_paper._kernels.tree_lanes import run_tree

    steps = step_sizes(etas)
    parts = in_parts(lambda part: run_tree(tree.paths, tree.gamma, steps[part]), len(steps), LANES, threads)
    return checked_payments(np.concatenate(parts))
