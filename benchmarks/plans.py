"""Rules judged on a year that they were not tuned on, and libraries of plans: the battery on ERCOT's prices.

    python benchmarks/plans.py

Writes holdout.json and library.json beside itself, and the parts of docs/how-to/replan.md that show them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from normalfan.battery import Battery, ercot_prices
from normalfan.replan import HoldingCosts, holding_costs, plan_library, recommend
from normalfan.replan.curve import settings_of

COMMAND = "python benchmarks/plans.py"
FIRST_JUDGED = "2022-01-01"
COSTS = (100.0, 1000.0, 5000.0, 20000.0, 50000.0, 100000.0, 500000.0)
MOST_PLANS = 20
FAMILIES = (
    "never",
    "periodic",
    "accumulated, set by the cost",
    "accumulated",
    "single day",
    "CUSUM",
)
HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "how-to" / "replan.md"


def judged(costs: HoldingCosts, cost: float) -> dict[str, Any]:
    advice = recommend(costs, cost, holdout=FIRST_JUDGED, unit="$")
    return {
        "known": costs.known,
        "cost": cost,
        "sentence": advice.sentence,
        "chosen": advice.chosen.family,
        "cheaper_where_judged": [one.family for one in advice.beaten_by],
        "rules": {
            one.family: {
                "settings": settings_of(one.rule),
                "total_2021": round(one.tuned_total),
                "replans": one.run.replans,
                "total_2022": round(one.run.total(cost)),
            }
            for one in advice.judged
        },
    }


def holdout_tables(document: dict[str, Any]) -> str:
    """For each cost every family's total in the second year, the chosen one in bold."""
    tables = ""
    for known in ("before", "after"):
        tables += f"\nLosses known {known} acting:\n\n"
        tables += "| a re-plan costs | " + " | ".join(FAMILIES) + " | better than the chosen one |\n"
        tables += "|---:|" + "---:|" * len(FAMILIES) + "---|\n"
        for case in (case for case in document["cases"] if case["known"] == known):
            cells = [f"{case['rules'][family]['total_2022']:,}" for family in FAMILIES]
            chosen = FAMILIES.index(case["chosen"])
            cells[chosen] = f"**{cells[chosen]}**"
            better = "; ".join(case["cheaper_where_judged"]) or "–"
            tables += f"| {case['cost']:,.0f} | {' | '.join(cells)} | {better} |\n"
    return tables


def library_table(document: dict[str, Any]) -> str:
    table = "\n| plans | cost, $ | share kept | lower bound, $ | gap |\n|---:|---:|---:|---:|---:|\n"
    for row in document["libraries"]:
        gap = 1 - row["lower_bound"] / row["cost"]
        table += (
            f"| {row['plans']} | {row['cost']:,} | {row['kept']:.1%} | {row['lower_bound']:,} | {gap:.2%} |\n"
        )
    return table


def with_part(page: str, name: str, text: str) -> str:
    """The page with what lies between two marks replaced."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, rest = page.split(begin)
    return head + begin + text + end + rest.split(end)[1]


def main() -> None:
    battery, days = Battery(), ercot_prices()
    mdp, losses = battery.mdp(), battery.losses(days.prices, round_names=days.dates)
    before = holding_costs(mdp, losses)
    cases = [judged(costs, cost) for costs in (before, before.learned_after()) for cost in COSTS]
    about = f"{COMMAND}: settings chosen on 2021, judged on 2022; totals in $, re-plans included"
    holdout = {"command": COMMAND, "about": about, "cases": cases}
    found = plan_library(mdp, losses, MOST_PLANS)
    rows = [
        {
            "plans": k,
            "rounds": [days.dates[day] for day in choice.days],
            "cost": round(choice.cost),
            "kept": round(found.kept(k), 5),
            "lower_bound": int(choice.lower_bound),
        }
        for k, choice in enumerate(found.choices, 1)
    ]
    first = {"cost": round(found.first_plan_cost), "kept": round(found.kept(None), 5)}
    library = {"command": COMMAND, "sentence": found.sentence, "first_plan": first, "libraries": rows}
    page = PAGE.read_text()
    for name, document, text in (
        ("holdout", holdout, holdout_tables(holdout)),
        ("library", library, library_table(library)),
    ):
        (HERE / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
        page = with_part(page, name, text)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
