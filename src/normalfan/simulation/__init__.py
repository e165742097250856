"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan.simulation.prefixes import PrefixRun, simulate_prefix_tracker
from normalfan.simulation.runs import MirrorSetting, simulate_hedge, simulate_mirror_descent
from normalfan.simulation.simplex import simulate_euclidean_mirror_descent, simulate_optimistic_hedge
from normalfan.simulation.tree import simulate_tree_mirror_descent

__all__ = [
    "MirrorSetting",
    "PrefixRun",
    "simulate_euclidean_mirror_descent",
    "simulate_hedge",
    "simulate_mirror_descent",
    "simulate_optimistic_hedge",
    "simulate_prefix_tracker",
    "simulate_tree_mirror_descent",
]
