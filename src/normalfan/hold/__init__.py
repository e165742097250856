"""When is a new plan worth its cost? Holding costs, the cheapest schedule, rules that do not see ahead."""

from normalfan.hold.costs import HoldingCosts, holding_costs
from normalfan.hold.rules import Accumulated, Cusum, Periodic, Rule, SingleDay, replay
from normalfan.hold.schedule import (
    Schedule,
    cheapest_schedule,
    least_regrets,
    schedule_of,
    schedule_within,
)

__all__ = [
    "Accumulated",
    "Cusum",
    "HoldingCosts",
    "Periodic",
    "Rule",
    "Schedule",
    "SingleDay",
    "cheapest_schedule",
    "holding_costs",
    "least_regrets",
    "replay",
    "schedule_of",
    "schedule_within",
]
