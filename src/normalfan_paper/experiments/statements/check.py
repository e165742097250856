"""Verdicts on the statements, computed from the findings.

readings of it disagree                                      depends on the design
as written (or by every reading) it never fails              holds
it fails as written, never under the stated assumption       holds under a stated assumption
anything else                                                false as written
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.experiments.statements.claims import CLAIMS, Claim
from normalfan_paper.experiments.statements.finding import Role

if TYPE_CHECKING:
    import polars


def check(frame: polars.DataFrame) -> Sequence[LedgerRow]:
    """One row for every claim of which the frame has findings."""
    found = set(frame["claim"])
    return [_judge(claim, frame.filter(frame["claim"] == claim.id)) for claim in CLAIMS if claim.id in found]


@dataclass(frozen=True, slots=True)
class _Trials:
    """How often a claim was tried in one role, and failed; and which quantities never failed."""

    tried: int
    failed: int
    good: tuple[str, ...]
    bad: tuple[str, ...]


def _trials(findings: polars.DataFrame, role: Role) -> _Trials:
    part = findings.filter(findings["role"] == str(role))
    names = part["quantity"].unique(maintain_order=True).to_list()
    bad = set(part.filter(~part["holds"])["quantity"])
    return _Trials(
        tried=len(part),
        failed=len(part) - int(part["holds"].sum()),
        good=tuple(name for name in names if name not in bad),
        bad=tuple(name for name in names if name in bad),
    )


def _judge(claim: Claim, findings: polars.DataFrame) -> LedgerRow:
    as_written = _trials(findings, Role.WRITTEN)
    assuming = _trials(findings, Role.ASSUMING)
    readings = _trials(findings, Role.READING)
    if readings.good and readings.bad:
        verdict = Verdict.DEPENDS
        because = f"It holds by {_quoted(readings.good)} and fails by {_quoted(readings.bad)}."
    elif not as_written.failed and not readings.failed:
        verdict = Verdict.HOLDS
        because = f"It did not fail in {_trials_in_words(as_written.tried + readings.tried)}."
    elif assuming.tried and not assuming.failed:
        verdict = Verdict.ASSUMES
        because = (
            f"It needs {claim.assumption}: then it did not fail in "
            f"{_trials_in_words(assuming.tried)}; as written it failed in {as_written.failed} of "
            f"{_trials_in_words(as_written.tried)}."
        )
    else:
        verdict = Verdict.FALSE
        failed, tried = as_written.failed + readings.failed, as_written.tried + readings.tried
        because = f"{_capital(claim.failure)}: it failed in {failed} of {_trials_in_words(tried)}."
    numbers = _numbers(findings)
    for suffix, trials in (("", as_written), ("_assuming", assuming)):
        numbers[f"tried{suffix}"] = float(trials.tried)
        numbers[f"failed{suffix}"] = float(trials.failed)
        numbers[f"held{suffix}"] = float(trials.tried - trials.failed)
    measured = _capital(claim.measured.format_map(numbers)) + "."
    row = f"statements/{claim.id}"
    says = claim.says.format_map(numbers)
    return LedgerRow(row, says, measured, verdict, because, numbers, beyond=claim.beyond)


def _numbers(findings: polars.DataFrame) -> dict[str, float]:
    """Reported numbers by name, the largest of every judged quantity, and the number of instances."""
    told = findings.filter(findings["role"] == str(Role.REPORTED))
    judged = findings.filter(findings["role"] != str(Role.REPORTED))
    numbers = dict(zip(told["quantity"], told["value"], strict=True))
    for (name,), part in judged.group_by("quantity", maintain_order=True):
        key = str(name).replace(" ", "_")
        numbers[f"worst_{key}"] = float(part["value"].max())  # type: ignore[arg-type]
        numbers[f"least_{key}"] = float(part["value"].min())  # type: ignore[arg-type]
    return numbers | {"instances": float(findings["instance"].n_unique())}


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"«{name}»" for name in names)


def _capital(sentence: str) -> str:
    first = sentence[:1]
    return (first.upper() if first.isascii() else first) + sentence[1:]  # a formula keeps its letters


def _trials_in_words(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
