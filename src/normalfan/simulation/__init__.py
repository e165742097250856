"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan.simulation.hedge import simulate_hedge
from normalfan.simulation.mirror import (
    MirrorRecord,
    MirrorSetting,
    record_mirror_descent,
    simulate_mirror_descent,
)
from normalfan.simulation.prefixes import PrefixRun, simulate_prefix_tracker
from normalfan.simulation.simplex import simulate_euclidean_mirror_descent, simulate_optimistic_hedge
from normalfan.simulation.tree import simulate_tree_mirror_descent
from normalfan.simulation.trust import TrustSetting, simulate_trust_region

__all__ = [
    "MirrorRecord",
    "MirrorSetting",
    "PrefixRun",
    "TrustSetting",
    "record_mirror_descent",
    "simulate_euclidean_mirror_descent",
    "simulate_hedge",
    "simulate_mirror_descent",
    "simulate_optimistic_hedge",
    "simulate_prefix_tracker",
    "simulate_tree_mirror_descent",
    "simulate_trust_region",
]
