"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan.simulation.runs import MirrorSetting, simulate_hedge, simulate_mirror_descent
from normalfan.simulation.simplex import simulate_euclidean_mirror_descent, simulate_optimistic_hedge
from normalfan.simulation.tree import simulate_tree_mirror_descent

__all__ = [
    "MirrorSetting",
    "simulate_euclidean_mirror_descent",
    "simulate_hedge",
    "simulate_mirror_descent",
    "simulate_optimistic_hedge",
    "simulate_tree_mirror_descent",
]
