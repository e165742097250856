"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan_paper.simulation.combined_runs import CombinedRun, simulate_combination
from normalfan_paper.simulation.hedge_runs import simulate_hedge
from normalfan_paper.simulation.mirror_runs import (
    MirrorRecord,
    MirrorSetting,
    record_mirror_descent,
    simulate_mirror_descent,
    simulate_noisy_mirror_descent,
)
from normalfan_paper.simulation.prefix_runs import PrefixRun, simulate_prefix_tracker
from normalfan_paper.simulation.simplex_runs import (
    simulate_euclidean_mirror_descent,
    simulate_optimistic_hedge,
)
from normalfan_paper.simulation.tree_runs import simulate_tree_mirror_descent
from normalfan_paper.simulation.trust_runs import TrustSetting, simulate_trust_region

__all__ = [
    "CombinedRun",
    "MirrorRecord",
    "MirrorSetting",
    "PrefixRun",
    "TrustSetting",
    "record_mirror_descent",
    "simulate_combination",
    "simulate_euclidean_mirror_descent",
    "simulate_hedge",
    "simulate_mirror_descent",
    "simulate_noisy_mirror_descent",
    "simulate_optimistic_hedge",
    "simulate_prefix_tracker",
    "simulate_tree_mirror_descent",
    "simulate_trust_region",
]
