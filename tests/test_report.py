"""What a report holds, against the definitions; and the file: whole, inert, small, the same twice."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

import normalfan as nf
from normalfan.environments.battery import Battery
from normalfan.environments.ercot import ercot_prices
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.problem.labels import Labels
from normalfan.report import write_report
from normalfan.report.charts import thin_rounds
from normalfan.report.fan import COLOURS, Plane, draw_fan
from normalfan.report.findings import SHARE, look_again, most_expensive
from normalfan.report.paid import MOST_STATES, MOST_STEPS, fold
from normalfan.report.plans import plan_change
from normalfan.report.series import are_dates, outline
from normalfan.report.table import rows_of
from problems import random_problem
from sentences import check_refusal

ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)


def a_stream(seed: int) -> tuple[nf.MDP, np.ndarray]:
    problem = random_problem(np.random.default_rng([seed, 51]), rounds=6)
    return problem.mdp(), problem.losses.astype(float)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of scripts and of the rest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem is None:
            self.text += data

    def data(self) -> dict[str, object]:
        (at,) = (i for i, (_, attrs) in enumerate(self._script_tags()) if attrs.get("id") == "data")
        document: dict[str, object] = json.loads(self.scripts[at])
        return document

    def _script_tags(self) -> list[tuple[str, dict[str, str | None]]]:
        return [element for element in self.found if element[0] == "script"]


def written(path: Path, mdp: nf.MDP, losses: object, **options: object) -> Elements:
    motion = nf.price_stream(mdp, losses)
    write_report(path, mdp, losses, motion, **{"title": "A report", **options})  # type: ignore[arg-type]
    return Elements(path.read_text().replace(get_plotlyjs(), ""))


@pytest.fixture(scope="module")
def storm() -> tuple[nf.MDP, nf.FactoredLosses]:
    market, battery = ercot_prices(), Battery()
    days = slice(30, 60)
    return battery.mdp(), battery.losses(market.prices[days], round_names=market.dates[days])


@pytest.fixture(scope="module")
def page(storm: tuple[nf.MDP, nf.FactoredLosses], tmp_path_factory: pytest.TempPathFactory) -> Elements:
    return written(tmp_path_factory.mktemp("report") / "report.html", *storm, unit="$", title="A battery")


# What is computed


def test_the_map_of_what_is_paid_adds_up_to_the_engine_s_split_by_step() -> None:
    priced = 0
    for seed in range(60):
        mdp, losses = a_stream(seed)
        motion = nf.price_stream(mdp, losses)
        found = look_again(mdp, losses, motion, DEFAULT_TIES)
        dearest = most_expensive(motion.prices, share=SHARE, at_most=500)
        assert found.attributed == len(dearest)
        assert found.attribution.sum(axis=1) == pytest.approx(motion.by_step[dearest].sum(axis=0), abs=1e-12)
        assert found.attributed_price >= SHARE * motion.total
        assert list(found.changes) == dearest
        priced += len(dearest)
    assert priced > 60


def test_the_old_plan_pays_the_price_and_the_new_one_departs_least() -> None:
    moved = 0
    for seed in range(80):
        mdp, losses = a_stream(seed)
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


def test_the_dearest_rounds_are_the_fewest_that_carry_the_share() -> None:
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
        mdp, losses = a_stream(seed)
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


def test_neighbours_on_the_map_have_different_colours(storm: tuple[nf.MDP, nf.FactoredLosses]) -> None:
    mdp, losses = storm
    days = next(losses.blocks(mdp.shape, 30))
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
    found = look_again(mdp, battery.losses(days), motion, DEFAULT_TIES)
    (row,) = rows_of(mdp, motion, motion.variation(), found.changes, None, "$")
    assert {line.new for line in row.plan} == {"rest at 0 MWh"}
    assert {line.old for line in row.plan if not line.differs} <= {"rest at 0 MWh", "rest at 100 MWh"}
    trades = [line.old.split()[0] for line in row.plan if line.differs]
    assert set(trades) == {"charge", "discharge"}
    assert trades == sorted(trades)  # first it buys, then it sells


# What is written


def test_the_page_says_what_the_motion_says(page: Elements, storm: tuple[nf.MDP, nf.FactoredLosses]) -> None:
    motion = nf.price_stream(*storm)
    data = page.data()
    time = data["time"]
    assert isinstance(time, dict)
    assert time["price"]["y"] == pytest.approx(motion.prices, rel=1e-5)
    assert time["variation"]["y"] == pytest.approx(motion.variation("l1"), rel=1e-5)
    assert time["cumulative"]["price"]["y"][-1] == pytest.approx(motion.total, rel=1e-5)
    assert time["names"] == list(storm[1].round_names or ())
    assert time["dates"] is True
    assert f"${motion.total:,.0f} in all" in page.text
    assert "The dearest round is 2021-02-16, $193,470" in page.text
    assert "rest at" in page.text
    assert "≠" in page.text


def test_the_page_asks_for_nothing(page: Elements) -> None:
    for tag, attributes in page.found:
        for name in ("src", "href", "action", "data", "poster"):
            target = attributes.get(name) or ""
            assert not target or target.startswith(("#", "data:")), (tag, target)
    (policy,) = (attrs["content"] for tag, attrs in page.found if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_every_chart_has_a_text_and_every_control_a_name(page: Elements) -> None:
    ids = {attrs["id"] for _, attrs in page.found if "id" in attrs}
    charts = [attrs for _, attrs in page.found if attrs.get("class") == "chart"]
    assert len(charts) == 5
    for chart in charts:
        assert chart["aria-label"]
        assert chart["aria-describedby"] in ids
    for _, attrs in page.found:
        for name in ("aria-controls", "aria-labelledby", "aria-describedby", "for"):
            assert attrs.get(name) is None or attrs[name] in ids
    assert len(ids) == sum("id" in attrs for _, attrs in page.found)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        written(tmp_path / name, *a_stream(5))
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'


def test_labels_and_titles_are_inert(tmp_path: Path) -> None:
    labels = Labels(steps=(HOSTILE,), states=(HOSTILE,), actions=(HOSTILE, "b" + HOSTILE))
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1, labels=labels)
    losses = nf.ArrayLosses(
        np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2), round_names=("a" + HOSTILE, HOSTILE)
    )
    plain = written(tmp_path / "plain.html", ARMS, losses.array)
    hostile = written(tmp_path / "page.html", mdp, losses, title=HOSTILE, note=HOSTILE, unit=HOSTILE)
    assert [tag for tag, _ in hostile.found] != []
    for tag in ("script", "img"):
        assert [t for t, _ in hostile.found].count(tag) == [t for t, _ in plain.found].count(tag)
    assert not any("onerror" in attrs for _, attrs in hostile.found)
    time = hostile.data()["time"]
    assert isinstance(time, dict)
    assert time["names"] == ["a" + HOSTILE, HOSTILE]
    assert HOSTILE in hostile.text


def test_a_long_stream_makes_a_small_page(tmp_path: Path) -> None:
    losses = np.random.default_rng(4).random((100_000, 1, 1, 2))
    names = [f"round number {t}" for t in range(100_000)]
    found = written(tmp_path / "long.html", ARMS, nf.ArrayLosses(losses, round_names=names))
    bare = written(tmp_path / "bare.html", ARMS, losses[:2])
    long, short = ((tmp_path / name).stat().st_size for name in ("long.html", "bare.html"))
    assert long - short < 2_000_000
    time = found.data()["time"]
    assert isinstance(time, dict)
    assert len(time["price"]["y"]) <= 5000
    assert max(time["price"]["y"]) == pytest.approx(nf.price_stream(ARMS, losses).prices.max(), rel=1e-5)
    assert "100,000 rounds are too many to draw" in found.text
    assert "too many to draw" not in bare.text


@pytest.mark.parametrize("seed", range(8))
def test_any_problem_has_a_page(seed: int, tmp_path: Path) -> None:
    mdp, losses = a_stream(seed)
    for rounds in (losses, losses[:1], np.repeat(losses[:1], 3, axis=0)):
        found = written(tmp_path / "page.html", mdp, rounds)
        assert "nan" not in re.findall(r"[a-z]+", found.text)
        assert found.data()["time"]
    assert "No round was priced" in found.text


def test_a_run_is_split_into_price_and_selection(tmp_path: Path) -> None:
    mdp, losses = a_stream(3)
    split = nf.decompose(nf.run(mdp, nf.learners.FaceTracker(mdp), losses))
    found = written(tmp_path / "page.html", mdp, losses, decomposition=split)
    time = found.data()["time"]
    assert isinstance(time, dict)
    sums = {name: series["y"][-1] for name, series in time["cumulative"].items()}
    assert sums["regret"] == pytest.approx(split.first_regret + sums["price"] + sums["selection"], abs=1e-5)
    assert "of selection error" in found.text


def test_near_ties_are_named(tmp_path: Path) -> None:
    losses = np.array([[0.0, 1e-13], [1.0, 0.0]]).reshape(2, 1, 1, 2) + 1
    found = written(tmp_path / "page.html", ARMS, losses)
    time = found.data()["time"]
    assert isinstance(time, dict)
    assert time["ambiguous"]["at"]
    assert "near-tie" in found.text


# What is refused


def refuse(path: Path, losses: object, **options: object) -> None:
    motion = nf.price_stream(ARMS, np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2), **options)  # type: ignore[arg-type]
    write_report(path, ARMS, losses, motion, title="")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (lambda path: refuse(path, np.zeros((3, 1, 1, 2))), "losses hold 3 rounds"),
        (lambda path: refuse(path, iter(np.zeros((2, 1, 1, 2)))), "IterableLosses"),
        (lambda path: refuse(path, np.zeros((2, 1, 1, 2)), detail="prices"), 'detail="prices"'),
    ],
)
def test_refusals_leave_no_file(wrong: Callable[[Path], None], where: str, tmp_path: Path) -> None:
    check_refusal(lambda: wrong(tmp_path / "page.html"), where)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_is_a_sentence(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    losses = np.array([[0.0, 1.0], [1.0, 0.0]]).reshape(2, 1, 1, 2)
    check_refusal(lambda: written(tmp_path / "page.html", ARMS, losses), f"{package} is not installed")
    assert not list(tmp_path.iterdir())
