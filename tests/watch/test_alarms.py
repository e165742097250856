"""Alarm rules: what is raised, and what is not a rule."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from sentences import check_refusal
from watching import ARMS

import normalfan as nf
from normalfan.watch import AlarmRule


@pytest.fixture(scope="module")
def step() -> nf.PricedRound:
    return nf.Monitor(ARMS).update([[[-200.0, 1.0]]])


@pytest.mark.parametrize(
    ("rule", "numbers", "raised"),
    [
        ("price>2", {"price": 2.0}, False),
        ("price>=2", {"price": 2.0}, True),
        ("price > 1%", {"price": 2.0}, False),
        ("price>0.9%", {"price": 2.0}, True),
        ("value<-1e2", {}, True),
        ("value<=-200.", {}, True),
        ("price>.5E+1", {"price": 5.0}, False),
        ("margin<1e-3", {"margin": 1e-4}, True),
        ("margin<1e-3", {"margin": math.inf}, False),
        ("variation_l1>=0", {}, True),
        ("dimension>0", {}, False),
        ("crossed", {"crossed": True}, True),
        ("crossed", {"crossed": False}, False),
        (" ambiguous ", {"ambiguous": True}, True),
    ],
)
def test_alarm_rules(rule: str, numbers: dict[str, Any], raised: bool, step: nf.PricedRound) -> None:
    assert AlarmRule.parse(rule).raised_by(replace(step, **numbers), 0.0, 0.0) is raised
    assert str(AlarmRule.parse(rule)) == str(AlarmRule.parse(str(AlarmRule.parse(rule))))


@pytest.mark.parametrize(
    "rule",
    [
        *("", "price", "price>", ">5", "price=5", "price>x", "price>nan", "price>inf", "total<5", "total>1%"),
        *("crossed>1", "cost>5", "price>1%%", "price>1 2", "PRICE>1", "price>>1", "margin<1%", "price>1e999"),
    ],
)
def test_rules_that_are_not_understood(rule: str) -> None:
    check_refusal(lambda: AlarmRule.parse(rule), repr(rule))
