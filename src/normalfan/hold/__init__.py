"""When is a new plan worth its cost? Holding costs, the cheapest schedule, rules that do not see ahead."""

from normalfan.hold.costs import HoldingCosts, holding_costs
from normalfan.hold.curve import Point, best_within, run_sweeps, sweeps
from normalfan.hold.detectors import Drift
from normalfan.hold.drawing import draw_curve
from normalfan.hold.rules import Accumulated, Cusum, Periodic, Rule, SingleDay, replay
from normalfan.hold.schedule import (
    Schedule,
    cheapest_schedule,
    least_regrets,
    schedule_of,
    schedule_within,
)
from normalfan.hold.study import Study, study

__all__ = [
    "Accumulated",
    "Cusum",
    "Drift",
    "HoldingCosts",
    "Periodic",
    "Point",
    "Rule",
    "Schedule",
    "SingleDay",
    "Study",
    "best_within",
    "cheapest_schedule",
    "draw_curve",
    "holding_costs",
    "least_regrets",
    "replay",
    "run_sweeps",
    "schedule_of",
    "schedule_within",
    "study",
    "sweeps",
]
