"""What a check finds: one line of the statements' table.

A claim is tried in one of three *roles*:

    written    as the paper states it, on an instance that meets the conditions it names;
    assuming   the same, on an instance that meets our stated assumption as well;
    reading    by one of several readings, where the paper's words allow more than one.

Each such line says whether the claim held. A fourth role, `reported`, carries a number and no judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars


class Role(StrEnum):
    WRITTEN = "written"
    ASSUMING = "assuming"
    READING = "reading"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Finding:
    """One trial of a claim, or one number that belongs to it."""

    claim: str  # "thm-decomp"
    role: Role
    quantity: str  # what `value` is
    value: float
    holds: bool | None = None  # None for a reported number
    instance: int = 0


def written(claim: str, quantity: str, value: float, holds: bool, instance: int = 0) -> Finding:
    return Finding(claim, Role.WRITTEN, quantity, float(value), bool(holds), instance)


def assuming(claim: str, quantity: str, value: float, holds: bool, instance: int = 0) -> Finding:
    return Finding(claim, Role.ASSUMING, quantity, float(value), bool(holds), instance)


def reading(claim: str, quantity: str, value: float, holds: bool, instance: int = 0) -> Finding:
    return Finding(claim, Role.READING, quantity, float(value), bool(holds), instance)


def reported(claim: str, quantity: str, value: float, instance: int = 0) -> Finding:
    return Finding(claim, Role.REPORTED, quantity, float(value), None, instance)


def to_frame(findings: Iterable[Finding]) -> polars.DataFrame:
    """The findings as a table with one schema, however many there are."""
    import polars

    rows = [(f.claim, str(f.role), f.quantity, f.value, f.holds, f.instance) for f in findings]
    schema = {
        "claim": polars.String,
        "role": polars.String,
        "quantity": polars.String,
        "value": polars.Float64,
        "holds": polars.Boolean,
        "instance": polars.Int64,
    }
    return polars.DataFrame(rows, schema=schema, orient="row")
