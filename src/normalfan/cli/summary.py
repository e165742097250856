"""A priced stream in words, for the commands that price one."""

from __future__ import annotations

from normalfan.pricing.summary import NEGLIGIBLE, DearRound, Summary


def tell(summary: Summary, unit: str = "") -> list[str]:
    """What happened, line by line; `unit`: of the losses, put before the numbers ("$")."""
    moves = summary.rounds - 1
    if moves < 1:
        return ["One round has no plan before it: there is nothing to price yet."]
    return [
        _how_often(summary, moves),
        _how_much(summary, unit),
        *_dearest(summary, moves, unit),
        *_near_ties(summary, unit),
    ]


def _how_often(summary: Summary, moves: int) -> str:
    return (
        f"{summary.rounds:,} rounds. Keeping the plan of the round before was free in {summary.free:,} of "
        f"{moves:,}, negligible (below {NEGLIGIBLE:.0%} of the round's value) in {summary.negligible:,} and "
        f"priced in {summary.priced:,}."
    )


def _how_much(summary: Summary, unit: str) -> str:
    total, value = _amount(summary.total, unit), _amount(summary.value, unit)
    return f"It cost {total} in all; the best plans come to {value}."


def _dearest(summary: Summary, moves: int, unit: str) -> list[str]:
    if not summary.dearest:
        return []
    return [
        "The most expensive rounds:",
        *(f"  {_dear(one, moves, unit)}" for one in summary.dearest),
        _what_variation_said(summary),
    ]


def _dear(one: DearRound, moves: int, unit: str) -> str:
    return (
        f"{one.name}: {_amount(one.price, unit)}, of which {_amount(one.paid, unit)} at step {one.step} in "
        f"state {one.state}, where the old plan takes {one.action} and the new one {one.instead} "
        f"(number {one.variation_rank:,} of {moves:,} by loss variation)"
    )


def _what_variation_said(summary: Summary) -> str:
    count, correlation = len(summary.dearest), summary.rank_correlation
    ranked = "" if correlation is None else f", and its rank correlation with the price is {correlation:.2f}"
    return (
        f"Loss variation has {summary.shared} of these {count} among its own first {count}; "
        f"{summary.free_variation:.0%} of it fell on free rounds{ranked}."
    )


def _near_ties(summary: Summary, unit: str) -> list[str]:
    if not summary.ambiguous:
        return []
    lowest, highest = _amount(summary.total_lowest, unit), _amount(summary.total_highest, unit)
    rounds = "1 round hangs" if summary.ambiguous == 1 else f"{summary.ambiguous:,} rounds hang"
    return [
        f"{rounds} on a near-tie: read one way or the other, the total lies between {lowest} and {highest}."
    ]


def _amount(number: float, unit: str) -> str:
    size = f"{abs(number):,.0f}" if abs(number) >= 1000 else f"{abs(number):.4g}"
    return f"{'−' if number < 0 else ''}{unit}{size}"
