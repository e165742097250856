"""What a report holds: plans, maps, pictures and outlines, each against its definition."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.battery.ercot import ercot_prices
from normalfan.battery.model import Battery
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.problem.labels import Labels
from normalfan.report.attribution_map import (
    MOST_STATES,
    MOST_STEPS,
    SHARE,
    fold,
    most_expensive,
    read_costliest,
)
from normalfan.report.charts import are_dates, outline, thin_rounds
from normalfan.report.fan import COLOURS, Plane, draw_fan
from normalfan.report.table import plan_change, rows_of


def test_the_map_of_what_is_paid_adds_up_to_the_engine_s_split_by_step() -> None:
    priced = 0
    for seed in range(60):
        mdp, losses = random_stream(seed)
        motion = nf.price_stream(mdp, losses)
        found = read_costliest(mdp, losses, motion, DEFAULT_TIES)
        costliest = most_expensive(motion.prices, share=SHARE, at_most=500)
        assert found.attributed == len(costliest)
        assert found.attribution.sum(axis=1) == pytest.approx(
            motion.by_step[costliest].sum(axis=0), abs=1e-12
        )
        assert found.attributed_price >= SHARE * motion.total
        assert list(found.changes) == costliest
        priced += len(costliest)
    assert priced > 60


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


def test_the_costliest_rounds_are_the_fewest_that_carry_the_share() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        prices = rng.integers(0, 5, size=rng.integers(1, 9)).astype(float)
        chosen = most_expensive(prices, share=0.8, at_most=100)
        carried = prices[chosen].sum()
        assert carried >= 0.8 * prices.sum()
        assert not chosen or carried - prices[chosen].min() < 0.8 * prices.sum()
        assert (np.diff(prices[chosen]) <= 0).all()
    assert most_expensive(np.ones(9), share=1.0, at_most=4) == [0, 1, 2, 3]


def test_an_outline_keeps_every_bin_s_extremes_and_is_short() -> None:
    column = np.random.default_rng(3).normal(size=100_000)
    column[77_777], column[5] = 99.0, -99.0
    kept = outline(column, most=5000)
    assert len(kept) <= 5000
    assert {77_777, 5} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    edges = np.linspace(0, 100_000, 2501).astype(int)
    for start, end in pairwise(edges):
        here = column[kept[(kept >= start) & (kept < end)]]
        assert (here.min(), here.max()) == (column[start:end].min(), column[start:end].max())
    assert outline(column[:5000]).tolist() == list(range(5000))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("2021-02-14", "2021-02-15"), True),
        (("2021-02-14 23:00", "2021-02-15 00:00"), True),
        (("2021-02-15", "2021-02-14"), False),
        (("2021-02-14", "monday"), False),
        (None, False),
    ],
)
def test_dates_are_told_from_other_names(names: tuple[str, ...] | None, expected: bool) -> None:
    assert are_dates(names) is expected


def test_a_large_map_is_folded_without_losing_steps() -> None:
    paid = np.random.default_rng(1).random((1000, 100)) * np.arange(100)
    folded = fold(paid, paid.sum(axis=1), Labels())
    assert folded.paid.shape == (MOST_STATES, MOST_STEPS)
    assert folded.states == tuple(map(str, range(40, 100)))
    assert folded.states_left_out == 40
    assert folded.by_step.sum() == pytest.approx(paid.sum())
    assert folded.paid.sum() == pytest.approx(paid[:, 40:].sum())
    assert folded.shown == pytest.approx(paid[:, 40:].sum() / paid.sum())
    assert folded.steps[0] == "0 – 3"
    assert folded.steps[-1].endswith("999")
    small = fold(paid[:3, :2], paid[:3].sum(axis=1), Labels(states=("a", "b")))
    assert (small.steps, small.states, small.states_left_out) == (("0", "1", "2"), ("a", "b"), 0)
    np.testing.assert_array_equal(small.paid, paid[:3, :2].T)


def test_thin_rounds_are_the_twentieth_with_the_smallest_gaps() -> None:
    gaps = np.random.default_rng(2).permutation(np.r_[np.arange(1.0, 101.0), np.inf, np.inf])
    assert sorted(gaps[thin_rounds(gaps)]) == [1, 2, 3, 4, 5]
    assert not thin_rounds(np.array([np.inf, np.inf])).any()


def test_a_picture_of_the_fan_is_that_of_its_points() -> None:
    rng = np.random.default_rng(9)
    crowded = 0
    for seed in range(12):
        mdp, losses = random_stream(seed)
        plane = Plane(*losses[:3])
        xs, ys = np.linspace(-1, 1, 5), np.linspace(-0.5, 2, 4)
        inside, outside = plane.origin + 2 * plane.right - plane.up, rng.normal(size=mdp.shape)
        fan = draw_fan(mdp, plane, xs, ys, [inside, outside])
        home = nf.optimal_face(mdp, plane.origin)
        faces = {}
        for (j, y), (i, x) in product(enumerate(ys), enumerate(xs)):
            loss = plane.origin + x * plane.right + y * plane.up
            assert fan.prices[j, i] == pytest.approx(nf.price(home, loss).price, abs=1e-12)
            faces.setdefault(int(fan.labels[j, i]), set()).add(nf.optimal_face(mdp, loss).mask.tobytes())
        assert all(len(masks) == 1 for masks in faces.values())
        assert len({next(iter(masks)) for masks in faces.values()}) == fan.n_faces == len(faces)
        differing = (fan.labels[:, 1:] != fan.labels[:, :-1]).sum() + (
            fan.labels[1:] != fan.labels[:-1]
        ).sum()
        assert len(fan.walls()) == differing
        crowded += fan.n_faces > 3
        if not plane.is_flat:
            assert fan.path[0] == pytest.approx([2, -1])
            assert fan.in_plane[0]
            away = outside - plane.origin - fan.path[1, 0] * plane.right - fan.path[1, 1] * plane.up
            assert [(away * plane.right).sum(), (away * plane.up).sum()] == pytest.approx([0, 0], abs=1e-9)
            assert fan.in_plane[1] == np.allclose(away, 0)
    assert crowded > 3


def test_neighbours_on_the_map_have_different_colours() -> None:
    battery = Battery()
    mdp = battery.mdp()
    days = next(battery.losses(ercot_prices().prices[30:60]).blocks(mdp.shape, 30))
    grid = np.linspace(-0.5, 1.5, 15)
    fan = draw_fan(mdp, Plane(days[15], days[16] - days[15], days[17] - days[16]), grid, grid)
    colours = fan.colours[fan.labels]
    for one, other in ((np.s_[:, 1:], np.s_[:, :-1]), (np.s_[1:], np.s_[:-1])):
        assert ((fan.labels[one] == fan.labels[other]) == (colours[one] == colours[other])).all()
    assert fan.n_faces > 2 * len(COLOURS)
    (left, bottom), (right, top) = fan.walls().min(axis=(0, 1)), fan.walls().max(axis=(0, 1))
    step = grid[1] - grid[0]
    assert min(left, bottom) >= grid[0] - step / 2 - 1e-12
    assert max(right, top) <= grid[-1] + step / 2 + 1e-12


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
