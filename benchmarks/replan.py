"""When to re-plan a battery: every rule on two years of ERCOT prices.

    python benchmarks/replan.py

Writes replan.json beside itself and the measured part of docs/how-to/replan.md. Takes some minutes, most of
them for KSWIN.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from replan_tables import with_tables

from normalfan.battery import HUBS, Battery, ercot_prices
from normalfan.replan import (
    Accumulated,
    HoldingCosts,
    RegretCurve,
    Schedule,
    cheapest_schedule,
    holding_costs,
    regret_curve,
    replay,
)
from normalfan.replan.curve import Point

COST = 5000.0
PRICE_RULES = ("accumulated", "CUSUM")
DETECTORS = ("ADWIN", "Page-Hinkley", "KSWIN")
BUDGETS = (13, 26, 52, 104, 208)
WINDOWS = (1, 7, 28)
COSTS = (1000.0, 5000.0, 20000.0)
YEAR_BUDGET = 26
STORM = ("2021-02-12", "2021-02-20")
TITLE = "A battery, 728 days, plans for the last day, losses known before acting"


def battery_costs(hub: str, window: int) -> HoldingCosts:
    days = ercot_prices(hub)
    battery = Battery()
    return holding_costs(battery.mdp(), battery.losses(days.prices), window=window)


def stormy(costs: HoldingCosts, run: Schedule) -> int:
    """The part of a schedule's regret that fell in the nine days of storm Uri."""
    dates = ercot_prices().dates[costs.first_round :]
    return round(sum(run.regrets[t] for t, date in enumerate(dates) if STORM[0] <= date <= STORM[1]))


def entry(point: Point | None, costs: HoldingCosts) -> dict[str, Any] | None:
    if point is None:
        return None
    return {
        "family": point.family,
        "settings": point.settings,
        "replans": point.replans,
        "regret": round(point.regret),
        "in_the_storm": stormy(costs, replay(point.rule, costs)),
    }


def best_of(best: dict[str, Point], families: tuple[str, ...]) -> Point | None:
    return min((best[f] for f in families if f in best), key=lambda point: point.regret, default=None)


def case(hub: str, curve: RegretCurve) -> dict[str, Any]:
    """Every budget: what hindsight could do, the best of each kind of rule, and each family."""
    costs, rows = curve.costs, []
    for budget in BUDGETS:
        best = curve.best_within(budget)
        rows.append(
            {
                "replans_at_most": budget,
                "hindsight": round(float(curve.least_regrets[budget])),
                "hindsight_in_the_storm": stormy(costs, cheapest_schedule(costs, 0.0, most=budget)),
                "price_rule": entry(best_of(best, PRICE_RULES), costs),
                "single_day": entry(best.get("single day"), costs),
                "detector": entry(best_of(best, DETECTORS), costs),
                "periodic": entry(best.get("periodic"), costs),
                "families": {family: round(point.regret) for family, point in best.items()},
            }
        )
    every_fortnight = next(point for point in curve.points if point.settings == {"days": 14})
    plans = "last" if costs.window == 1 else f"mean:{costs.window}"
    print(hub, plans, costs.known, rows[2]["hindsight"], rows[2]["families"], flush=True)
    return {
        "hub": hub,
        "plans": plans,
        "known": costs.known,
        "every_14_days": entry(every_fortnight, costs),
        "budgets": rows,
    }


def out_of_sample(costs: HoldingCosts, dates: tuple[str, ...], tuned_on: str, used_on: str) -> dict[str, Any]:
    """Settings picked on one year, used on the other."""
    years = np.array([date[:4] for date in dates[costs.first_round :]])
    spans = {year: np.flatnonzero(years == year)[[0, -1]] + [0, 1] for year in (tuned_on, used_on)}
    before, after = costs.part(*spans[tuned_on]), costs.part(*spans[used_on])
    rows = []
    for family, best in regret_curve(before, COST).best_within(YEAR_BUDGET).items():
        run = replay(best.rule, after)
        hindsight = cheapest_schedule(after, 0.0, most=run.replans)
        rows.append(
            {
                "family": family,
                "settings": best.settings,
                "tuned": {"replans": best.replans, "regret": round(best.regret)},
                "used": {"replans": run.replans, "regret": round(run.regret)},
                "hindsight_at_used_replans": round(hindsight.regret),
            }
        )
    print(
        "out of sample", costs.known, tuned_on, used_on, [(r["family"], r["used"]) for r in rows], flush=True
    )
    return {"known": costs.known, "tuned_on": tuned_on, "used_on": used_on, "families": rows}


def readings(costs: HoldingCosts) -> dict[str, Any]:
    """How much more one plan costs than the best policy of its face."""
    battery = Battery()
    losses = battery.losses(ercot_prices().prices)
    faces = holding_costs(battery.mdp(), losses, reading="face").costs
    later = np.triu_indices(len(faces))
    gap = (costs.costs - faces)[later]
    return {
        "pairs": len(gap),
        "share_that_differ": float(np.mean(gap > 1e-6)),
        "largest_difference": float(gap.max()),
        "mean_difference": float(gap.mean()),
        "mean_plan_price": float(costs.costs[later].mean()),
        "most_that_a_face_costs_more": float(max(0.0, -gap.min())),
    }


def promises(costs: HoldingCosts) -> dict[str, Any]:
    """The ratio that ageing plans would bound by 2, and how far plans are from ageing."""
    newer_is_worse = np.diff(costs.costs, axis=0) > 1e-9
    ratios = []
    for cost in COSTS:
        best, run = cheapest_schedule(costs, cost), replay(Accumulated(cost), costs)
        ratios.append(
            {
                "cost": cost,
                "cheapest": {"replans": best.replans, "regret": round(best.regret)},
                "accumulated": {"replans": run.replans, "regret": round(run.regret)},
                "ratio": round(run.total(cost) / best.total(cost), 3),
            }
        )
    comparable = np.isfinite(np.diff(costs.costs, axis=0))
    return {
        "share_of_days_on_which_the_newer_of_two_plans_is_worse": round(
            float(newer_is_worse[comparable].mean()), 3
        ),
        "accumulated_at_the_cost": ratios,
    }


def by_allowance(curve: RegretCurve) -> dict[str, int]:
    """What a CUSUM can do at 52 re-plans with its allowance fixed: as many tries as the other rules have."""
    best = dict[str, float]()
    for point in curve.points:
        if point.family == "CUSUM" and point.replans <= 52:
            allowance = f"{point.settings['allowance']:,.0f}"
            best[allowance] = min(point.regret, best.get(allowance, point.regret))
    return {allowance: round(regret) for allowance, regret in best.items()}


def main() -> None:
    dates = ercot_prices().dates
    began = time.perf_counter()
    last = battery_costs("HB_HUBAVG", 1)
    seconds = time.perf_counter() - began
    curve = regret_curve(last, COST)
    cases, samples = [], []
    for window in WINDOWS:
        costs = last if window == 1 else battery_costs("HB_HUBAVG", window)
        before = curve if window == 1 else regret_curve(costs, COST)
        cases += [case("HB_HUBAVG", before), case("HB_HUBAVG", regret_curve(costs.learned_after(), COST))]
    cases += [case(hub, regret_curve(battery_costs(hub, 1), COST)) for hub in HUBS if hub != "HB_HUBAVG"]
    for costs in (last, last.learned_after()):
        samples += [out_of_sample(costs, dates, *years) for years in (("2021", "2022"), ("2022", "2021"))]
    document = {
        "command": "python benchmarks/replan.py",
        "unit": "$ over all days, re-planning itself not counted",
        "settings_tried": Counter(point.family for point in curve.points),
        "seconds_for_728x728_holding_costs": round(seconds, 2),
        "plan_against_face": readings(last),
        "promises": promises(last),
        "cusum_at_52_by_allowance": by_allowance(curve),
        "cases": cases,
        "out_of_sample": samples,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    page = Path(__file__).parents[1] / "docs" / "how-to" / "replan.md"
    page.write_text(with_tables(page.read_text(), document))
    curve.plot(title=TITLE, unit="$").savefig(page.with_suffix(".png"), dpi=160)


if __name__ == "__main__":
    main()
