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
from normalfan_paper.environments.tree import LazyTree
from normalfan_paper.simulation.streams import check_step_size, checked_payments, in_parts


def simulate_tree_mirror_descent(tree: LazyTree, etas: Sequence[float], *, threads: int = 1) -> FloatArray:
    """What mirror descent pays with each of the step sizes, which is also its regret: [n_runs, T]."""
    from normalfan_paper._kernels.hedge import LANES
    from normalfan_paper._kernels.tree import simulate_tree

    steps = np.array([check_step_size(f"etas[{i}]", eta) for i, eta in enumerate(etas)])
    parts = in_parts(
        lambda part: simulate_tree(tree.paths, tree.gamma, steps[part]), len(steps), LANES, threads
    )
    return checked_payments(np.concatenate(parts))
