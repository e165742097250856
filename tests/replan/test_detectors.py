"""Drift detectors as rules: they are those of river."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import check_refusal

from normalfan import replan
from normalfan.replan.detectors import detector_families


def test_detectors_are_those_of_river() -> None:
    from river import drift

    rng = np.random.default_rng(6)
    prices = np.concatenate([rng.random(60), 5 + rng.random(60)])
    rule = replan.Drift("PageHinkley", (("threshold", 2.0), ("min_instances", 5)))
    decide, plain = rule.decide(), drift.PageHinkley(threshold=2.0, min_instances=5)
    expected = []
    for price in prices:
        plain.update(price)
        expected.append(plain.drift_detected)
    assert [decide(price) for price in prices] == expected
    assert any(expected)


def test_every_setting_is_accepted_by_river() -> None:
    for family, rules in detector_families(2.0).items():
        assert len(set(rules)) == len(rules)
        for rule in rules:
            assert rule.decide()(1.0) in (True, False)
            assert "settings" not in replan.Point(family, rule, 0, 0.0).settings


def test_a_missing_river_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normalfan.errors.find_spec", lambda _: None)
    check_refusal(lambda: replan.Drift("ADWIN", ()).decide(), "normalfan[compare]")
