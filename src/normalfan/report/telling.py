"""A priced stream in words: as paragraphs for a page, or line by line for a terminal."""

from __future__ import annotations

from normalfan.pricing.summary import NEGLIGIBLE, DearRound, Summary
from normalfan.text import amount, counted, percent

NOTHING_YET = "One round has no plan before it: there is nothing to price yet."


def summary_paragraphs(summary: Summary, measure: str, unit: str) -> list[str]:
    """The stream in a few sentences; `measure`: the name of the norm of the variation."""
    if summary.rounds < 2:
        return [NOTHING_YET]
    paragraphs = [_how_often(summary, unit)]
    if summary.dearest:
        first, *others = summary.dearest
        text = f"The dearest round is {_dear(first, unit)}."
        if others:
            listed = ", ".join(f"{one.name} ({amount(one.price, unit)})" for one in others)
            text += f" Then come {listed}."
        paragraphs += [text, _what_variation_said(summary, measure)]
    return paragraphs + _near_ties(summary, unit)


def summary_lines(summary: Summary, measure: str, unit: str) -> list[str]:
    """The same with a line for each of the dearest rounds."""
    if summary.rounds < 2:
        return [NOTHING_YET]
    lines = [_how_often(summary, unit)]
    if summary.dearest:
        lines.append("The most expensive rounds:")
        lines += [f"  {_dear(one, unit)}" for one in summary.dearest]
        lines.append(_what_variation_said(summary, measure))
    return lines + _near_ties(summary, unit)


def _how_often(summary: Summary, unit: str) -> str:
    return (
        f"Keeping the plan of the round before was free in {summary.free:,} of "
        f"{counted(summary.rounds - 1, 'round')}, negligible (below {percent(NEGLIGIBLE)} of the round's "
        f"value) in {summary.negligible:,} and priced in {summary.priced:,}. It cost "
        f"{amount(summary.total, unit)} in all; the best plans come to {amount(summary.value, unit)}."
    )


def _dear(one: DearRound, unit: str) -> str:
    return (
        f"{one.name}, {amount(one.price, unit)}: of it, {amount(one.paid, unit)} is paid at step {one.step} "
        f"in state {one.state}, where the old plan takes {one.action} and the new one {one.instead}"
    )


def _what_variation_said(summary: Summary, measure: str) -> str:
    ranks = ", ".join(f"{one.variation_rank:,}" for one in summary.dearest)
    text = (
        f"By loss variation ({measure}) {'these rounds rank' if len(summary.dearest) > 1 else 'it ranks'} "
        f"{ranks}; {percent(summary.free_variation)} of the variation fell on free rounds."
    )
    if summary.rank_correlation is not None:
        text += f" Its rank correlation with the price is {summary.rank_correlation:.2f}."
    return text


def _near_ties(summary: Summary, unit: str) -> list[str]:
    if not summary.ambiguous:
        return []
    low, high = amount(summary.total_lowest, unit), amount(summary.total_highest, unit)
    rounds = counted(summary.ambiguous, "round")
    return [f"{rounds} may hang on a near-tie: either way, the total lies between {low} and {high}."]
