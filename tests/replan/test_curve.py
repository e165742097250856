"""The curve of regret against re-plans: what it picks, and how it is shown."""

from __future__ import annotations

import numpy as np
import pytest
from holding import random_costs
from sentences import check_refusal

from normalfan import replan
from normalfan.replan.curve import ALLOWANCES, THRESHOLDS, Point

COSTS = random_costs(np.random.default_rng(9), 60)


@pytest.fixture(scope="module")
def curve() -> replan.RegretCurve:
    return replan.regret_curve(COSTS, 3.0, detectors=False)


def test_settings_reach_from_many_re_plans_to_none(curve: replan.RegretCurve) -> None:
    tried = {"accumulated": THRESHOLDS, "CUSUM": len(ALLOWANCES) * THRESHOLDS, "single day": THRESHOLDS}
    for family, settings in (tried | {"periodic": 60}).items():
        counts = [point.replans for point in curve.points if point.family == family]
        assert len(counts) == settings
        assert min(counts) <= 1
        assert max(counts) >= 30


def test_every_point_is_a_run_of_its_rule(curve: replan.RegretCurve) -> None:
    for point in curve.points[::97]:
        run = replan.replay(point.rule, COSTS)
        assert (point.replans, point.regret) == (run.replans, run.regret)
        assert point.regret >= curve.least_regrets[point.replans] - 1e-9


def test_the_best_of_points_is_the_best_of_points() -> None:
    rng = np.random.default_rng(10)
    points = tuple(
        Point(family, replan.Periodic(k), int(rng.integers(0, 9)), float(rng.integers(0, 9)))
        for family in ("a", "b")
        for k in range(1, 30)
    )
    curve = replan.RegretCurve(COSTS, 1.5, {}, points, np.zeros(9))
    for budget in range(9):
        for family, best in curve.best_within(budget).items():
            own = [p.regret for p in points if p.family == family and p.replans <= budget]
            assert best.regret == min(own)
            reached = [p.regret for p in curve.envelope(family) if p.replans <= budget]
            assert reached[-1] == min(own)
    for family, best in curve.cheapest().items():
        assert best.total(1.5) == min(p.total(1.5) for p in points if p.family == family)
    many = tuple(p for p in points if p.replans > 2)
    assert replan.RegretCurve(COSTS, 1.5, {}, many, np.zeros(9)).best_within(2) == {}


def test_the_frame_has_every_schedule_day_by_day(curve: replan.RegretCurve) -> None:
    frame = curve.to_frame()
    assert len(frame) == 60
    for name, run in curve.schedules.items():
        assert np.flatnonzero(frame[f"{name}: re-plan"]).tolist() == list(run.days)
        assert frame[f"{name}: regret"].sum() == pytest.approx(run.regret)


def test_figures_show_the_lines_and_the_marks(curve: replan.RegretCurve) -> None:
    (axes,) = curve.plot(unit="$").axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    lines = ["best in hindsight", "accumulated", "CUSUM", "single day", "periodic"]
    assert names == [*lines, r"cheapest in hindsight, at cost \$3", r"accumulated, at cost \$3"]
    assert axes.get_title() == COSTS.description
    best = curve.schedules["cheapest in hindsight"]
    assert axes.get_lines()[-2].get_xydata().tolist() == [[best.replans, best.regret]]


def test_results_are_shown_in_a_few_lines(curve: replan.RegretCurve) -> None:
    every_day = curve.schedules["every day"]
    assert repr(every_day).startswith("Schedule: 59 re-plans on days 1, 2, 3, 4, 5, 6, 7, 8, …; regret")
    for result in (COSTS, curve, every_day):
        assert len(repr(result)) < 300
    assert "<td>cheapest in hindsight</td>" in curve._repr_html_()


def test_a_cost_must_be_an_amount() -> None:
    check_refusal(lambda: replan.regret_curve(COSTS, -1.0, detectors=False), "cost is -1.0")
