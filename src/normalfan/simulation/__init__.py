"""Many runs of one learner at once, for sweeps over its settings and seeds."""

from normalfan.simulation.runs import MirrorSetting, simulate_hedge, simulate_mirror_descent

__all__ = ["MirrorSetting", "simulate_hedge", "simulate_mirror_descent"]
