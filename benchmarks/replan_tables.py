"""The measured part of docs/how-to/replan.md, made from replan.json."""

from __future__ import annotations

from typing import Any

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"

KINDS = {
    "price_rule": "price rule",
    "single_day": "single day",
    "detector": "detector",
    "periodic": "periodic",
}
BEST = ("hindsight", *(f"best {name}" for name in KINDS.values()))


def with_tables(page: str, document: dict[str, Any]) -> str:
    """The page with its measured part written again."""
    head, rest = page.split(BEGIN)
    return head + BEGIN + tables(document) + END + rest.split(END)[1]


def tables(document: dict[str, Any]) -> str:
    parts = [
        _budgets(document["cases"][0]),
        _at_52(document["cases"]),
        _storm(document["cases"]),
        _lost(document["cases"]),
        _allowances(document),
        _samples(document["out_of_sample"]),
        _promises(document["promises"]),
        _readings(document),
    ]
    return "\n".join(parts)


def _cell(entry: dict[str, Any] | None) -> str:
    return f"{entry['regret']:,} ({entry['replans']})" if entry else "–"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    rule = "|".join(["---", *("---:" for _ in heads[1:])])
    return "\n".join(f"| {' | '.join(row)} |" if row else f"|{rule}|" for row in [heads, [], *rows]) + "\n"


def _budgets(case: dict[str, Any]) -> str:
    fortnight = case["every_14_days"]
    text = (
        "Regret in $ over 728 days at the average of the hubs, losses known before acting, plans for the "
        "last day; in brackets the re-plans used.\n\n"
    )
    rows = [
        [str(row["replans_at_most"]), f"{row['hindsight']:,}"]
        + [_cell(row[kind]) for kind in KINDS]
        + [f"{row['families']['accumulated']:,}"]
        for row in case["budgets"]
    ]
    at_52 = _row_at_52(case)
    rule, detector = at_52["price_rule"], at_52["detector"]
    words = ", ".join(f"{name} {value:,.0f}" for name, value in rule["settings"].items())
    return (
        text
        + _table(["re-plans at most", *BEST, "accumulated alone"], rows)
        + f"\nAt 52 the best price rule is the {rule['family']} ({words}), the best detector "
        f"{detector['family']}. The best period with at most 52 re-plans happens to be "
        f"{at_52['periodic']['settings']['days']} days; "
        f"every 14 days is {fortnight['replans']} re-plans and {fortnight['regret']:,}.\n"
    )


def _row_at_52(case: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in case["budgets"] if row["replans_at_most"] == 52)
    return found


def _name(case: dict[str, Any]) -> str:
    return f"{case['hub']}, plans {case['plans']}, known {case['known']}"


def _at_52(cases: list[dict[str, Any]]) -> str:
    rows = []
    for case in cases:
        row = _row_at_52(case)
        rows.append([_name(case), f"{row['hindsight']:,}"] + [_cell(row[kind]) for kind in KINDS])
    text = "Other hubs, other plans, and losses known only after acting:\n\n"
    return text + _table(["at most 52 re-plans", *BEST], rows)


def _storm(cases: list[dict[str, Any]]) -> str:
    rows = []
    for case in cases:
        row = _row_at_52(case)
        paid = [row["hindsight_in_the_storm"], *(row[kind]["in_the_storm"] for kind in KINDS)]
        rows.append([_name(case), *(f"{regret:,}" for regret in paid)])
    text = "Of this regret, what fell in the nine days of storm Uri (12 to 20 February 2021):\n\n"
    return text + _table(["at most 52 re-plans", *BEST], rows)


def _lost(cases: list[dict[str, Any]]) -> str:
    rows, compared = [], 0
    for case in cases:
        for row in case["budgets"]:
            compared += 1
            entries = {kind: row[kind] for kind in KINDS if row[kind]}
            best = min(entries, key=lambda kind: entries[kind]["regret"])
            if best != "price_rule" and entries[best]["regret"] < entries["price_rule"]["regret"]:
                winner = f"{entries[best]['family']} {_cell(entries[best])}"
                rows.append([_name(case), str(row["replans_at_most"]), _cell(entries["price_rule"]), winner])
    heads = ["case", "re-plans at most", "best price rule", "better"]
    text = f"Of {compared} cases and budgets the price rules are not the best in {len(rows)}:\n\n"
    return text + _table(heads, rows)


def _allowances(document: dict[str, Any]) -> str:
    best = document["cusum_at_52_by_allowance"]
    tried = ", ".join(f"{family} {count}" for family, count in document["settings_tried"].items())
    listed = "; ".join(f"{allowance}: {regret:,}" for allowance, regret in best.items())
    return (
        f"Settings tried: {tried}. The CUSUM has two settings and so more tries than most; with its "
        f"allowance fixed it has as many thresholds as the accumulated rule, and its regret at 52 is, by "
        f"allowance in $ a day, {listed}.\n"
    )


def _samples(samples: list[dict[str, Any]]) -> str:
    rows = []
    for sample in samples:
        for row in sample["families"]:
            used, least = row["used"], row["hindsight_at_used_replans"]
            rows.append(
                [
                    f"{sample['tuned_on']} → {sample['used_on']}, known {sample['known']}",
                    row["family"],
                    f"{row['tuned']['regret']:,} ({row['tuned']['replans']})",
                    f"{used['regret']:,} ({used['replans']})",
                    f"{used['regret'] / least:.2f}",
                ]
            )
    heads = ["years", "rule", "regret where tuned", "where used", "÷ hindsight with as many"]
    text = (
        "Out of sample: each rule gets the setting that was best with at most 26 re-plans in one year, and "
        "keeps it in the other. The number of re-plans is then what it is, so the last column compares with "
        "hindsight at that number.\n\n"
    )
    return text + _table(heads, rows)


def _promises(promises: dict[str, Any]) -> str:
    share = promises["share_of_days_on_which_the_newer_of_two_plans_is_worse"]
    rows = [
        [f"{row['cost']:,.0f}", _cell(row["cheapest"]), _cell(row["accumulated"]), f"{row['ratio']:.2f}"]
        for row in promises["accumulated_at_the_cost"]
    ]
    heads = ["cost of a re-plan", "cheapest in hindsight", "accumulated, set by the cost", "ratio of totals"]
    return (
        f"The rule that needs no tuning, the accumulated price against the cost itself. Its factor of 2 is "
        f"promised only where plans age, and here the newer of two consecutive plans is the worse one on "
        f"{share:.0%} of later days; measured:\n\n"
    ) + _table(heads, rows)


def _readings(document: dict[str, Any]) -> str:
    gap = document["plan_against_face"]
    return (
        f"Plan or face: of {gap['pairs']:,} pairs of a plan and a day, {gap['share_that_differ']:.1%} cost "
        f"more by the plan than by its face, at most {gap['largest_difference']:,.0f} more, on average "
        f"{gap['mean_difference']:.2f} (of {gap['mean_plan_price']:,.0f}). The 728 × 728 holding costs by "
        f"exposures took {document['seconds_for_728x728_holding_costs']:.1f} s in that run.\n"
    )
