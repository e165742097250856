"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan.simulation.mirror import (
    MirrorRecord,
    MirrorSetting,
    record_mirror_descent,
    simulate_mirror_descent,
)
from normalfan.simulation.runs import simulate_hedge
from normalfan.simulation.trust import TrustSetting, simulate_trust_region

__all__ = [
    "MirrorRecord",
    "MirrorSetting",
    "TrustSetting",
    "record_mirror_descent",
    "simulate_hedge",
    "simulate_mirror_descent",
    "simulate_trust_region",
]
