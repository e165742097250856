"""The old and the new plan of a round, each against its definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.battery.model import Battery
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.report.attribution_map import read_costliest
from normalfan.report.table import plan_change, rows_of


def test_the_old_plan_pays_the_price_and_the_new_one_departs_least() -> None:
    moved = 0
    for seed in range(80):
        mdp, losses = random_stream(seed)
        for old, new in pairwise(losses):
            crossing = nf.price(nf.optimal_face(mdp, old), new)
            change = plan_change(mdp, crossing, new)
            visits = nf.occupancy(mdp, crossing.policy)
            assert (visits * new).sum() - crossing.value == pytest.approx(crossing.price, abs=1e-9)
            assert sum(step.paid for step in change.steps) == pytest.approx(crossing.price, abs=1e-12)
            face = nf.optimal_face(mdp, new)
            if np.prod(face.mask.sum(axis=2)[face.reached], dtype=float) > 500:
                continue
            least = min((v * (crossing.policy != 1)).sum() for v in face.vertices(limit=500))
            _, kept = face.minimise(np.where(crossing.policy == 1, 0.0, 1.0))
            assert (nf.occupancy(mdp, kept) * (crossing.policy != 1)).sum() == pytest.approx(least, abs=1e-9)
            likely = nf.occupancy(mdp, kept).sum(axis=2)
            for h, step in enumerate(change.steps):
                assert step.new.probability == pytest.approx(likely[h].max())
                assert face.mask[h, step.new.state, step.new.action]
            moved += any(step.differs for step in change.steps)
            if crossing.price == 0 and nf.optimal_face(mdp, old) == face:
                assert least == pytest.approx(0, abs=1e-12)
    assert moved > 30


def test_an_empty_battery_rests_by_whatever_name() -> None:
    battery = Battery(100.0, 50.0, 5, leak=0.0)
    mdp = battery.mdp()
    days = np.array(
        [np.r_[np.full(12, 20.0), np.full(12, 80.0)], np.r_[np.full(12, 80.0), np.full(12, 20.0)]]
    )
    motion = nf.price_stream(mdp, battery.losses(days))
    found = read_costliest(mdp, battery.losses(days), motion, DEFAULT_TIES)
    (row,) = rows_of(motion, motion.variation(), found.changes, "$")
    assert {line.new.text for line in row.plan} == {"rest at 0 MWh"}
    assert {line.old.text for line in row.plan if not line.differs} <= {"rest at 0 MWh", "rest at 100 MWh"}
    trades = [line.old.text.split()[0] for line in row.plan if line.differs]
    assert set(trades) == {"charge", "discharge"}
    assert trades == sorted(trades)  # first it buys, then it sells
