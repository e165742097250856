"""When is a new plan worth its cost? Holding costs, the cheapest schedule, rules that do not see ahead."""

from normalfan.replan.costs import HoldingCosts, holding_costs
from normalfan.replan.curve import Point, best_within, run_sweeps, sweeps
from normalfan.replan.detectors import Drift
from normalfan.replan.drawing import draw_curve
from normalfan.replan.rules import Accumulated, Cusum, Periodic, Rule, SingleDay, replay
from normalfan.replan.schedule import (
    Schedule,
    cheapest_schedule,
    least_regrets,
    schedule_of,
    schedule_within,
)
from normalfan.replan.study import Study, study

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
