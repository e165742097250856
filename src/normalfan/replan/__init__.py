"""When is a new plan worth its cost? Holding costs, the cheapest schedule, rules that do not see ahead."""

from normalfan.replan.costs import HoldingCosts, holding_costs
from normalfan.replan.curve import Point, RegretCurve, regret_curve
from normalfan.replan.detectors import Drift
from normalfan.replan.rules import Accumulated, Cusum, Periodic, Rule, SingleDay, replay
from normalfan.replan.schedule import (
    Schedule,
    cheapest_schedule,
    least_regrets,
    schedule_of,
    schedule_within,
)

__all__ = [
    "Accumulated",
    "Cusum",
    "Drift",
    "HoldingCosts",
    "Periodic",
    "Point",
    "RegretCurve",
    "Rule",
    "Schedule",
    "SingleDay",
    "cheapest_schedule",
    "holding_costs",
    "least_regrets",
    "regret_curve",
    "replay",
    "schedule_of",
    "schedule_within",
]
