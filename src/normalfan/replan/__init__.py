"""When is a new plan worth its cost? Holding costs, the cheapest schedule, rules that do not see ahead."""

from normalfan.replan.costs import HoldingCosts, holding_costs
from normalfan.replan.curve import RegretCurve, regret_curve
from normalfan.replan.library import PlanLibrary, plan_library
from normalfan.replan.recommend import Recommendation, recommend
from normalfan.replan.rules import Accumulated, Cusum, Drift, Periodic, Rule, SingleDay, replay
from normalfan.replan.schedule import Schedule, cheapest_schedule, least_regrets

__all__ = [
    "Accumulated",
    "Cusum",
    "Drift",
    "HoldingCosts",
    "Periodic",
    "PlanLibrary",
    "Recommendation",
    "RegretCurve",
    "Rule",
    "Schedule",
    "SingleDay",
    "cheapest_schedule",
    "holding_costs",
    "least_regrets",
    "plan_library",
    "recommend",
    "regret_curve",
    "replay",
]
