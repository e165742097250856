"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan_paper.simulation.hedge import simulate_hedge
from normalfan_paper.simulation.mirror import (
    MirrorRecord,
    MirrorSetting,
    record_mirror_descent,
    simulate_mirror_descent,
)
from normalfan_paper.simulation.prefixes import PrefixRun, simulate_prefix_tracker
from normalfan_paper.simulation.simplex import simulate_euclidean_mirror_descent, simulate_optimistic_hedge
from normalfan_paper.simulation.tree import simulate_tree_mirror_descent
from normalfan_paper.simulation.trust import TrustSetting, simulate_trust_region

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
