"""The report as a file: it says what was found, asks for nothing, is inert, small and the same twice."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from plotly.offline import get_plotlyjs
from problems import random_stream
from sentences import check_refusal

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.pricing.summary import summarise
from normalfan.problem.mdp import Labels
from normalfan.report import write_ranges, write_report

ARMS = nf.MDP(np.array([[0, 0]]), 0, horizon=1)


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
    assert "The costliest round is 2021-02-16, at $193,470" in page.text
    assert "rest at" in page.text
    assert "≠" in page.text
    assert "03:00, 75 MWh: charge 25 MW → discharge 25 MW" in page.text  # as in the terminal


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
        written(tmp_path / name, *random_stream(5))
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
    mdp, losses = random_stream(seed)
    for rounds in (losses, losses[:1], np.repeat(losses[:1], 3, axis=0)):
        found = written(tmp_path / "page.html", mdp, rounds)
        assert "nan" not in re.findall(r"[a-z]+", found.text)
        assert found.data()["time"]
    assert "No round has a price" in found.text


def test_a_run_is_split_into_price_and_selection(tmp_path: Path) -> None:
    mdp, losses = random_stream(3)
    split = nf.decompose(nf.run(mdp, nf.learners.FaceTracker(mdp), losses))
    found = written(tmp_path / "page.html", mdp, losses, decomposition=split)
    time = found.data()["time"]
    assert isinstance(time, dict)
    sums = {name: series["y"][-1] for name, series in time["cumulative"].items()}
    assert sums["regret"] == pytest.approx(split.first_regret + sums["price"] + sums["selection"], abs=1e-5)
    assert "of selection error" in found.text


def test_control_characters_in_labels_are_inert(tmp_path: Path) -> None:
    names = nf.Labels(steps=("\x00dawn",), states=("\u202ehome",), actions=("\x1b[2Jstay", "go\x9b"))
    arms = nf.MDP(np.array([[0, 0]]), 0, 1, labels=names)
    rounds = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]]).reshape(3, 1, 1, 2)
    losses = nf.ArrayLosses(rounds, round_names=["one", "two\x07", "three\u2028"])
    found = written(tmp_path / "page.html", arms, losses, note="two\nlines\x08")
    texts = found.text + json.dumps(found.data(), ensure_ascii=False)
    assert texts.replace("\n", "").replace("\u2060", "").isprintable()
    for shown in (r"\x00dawn", r"\u202ehome", r"\x1b[2Jstay", r"go\x9b", r"two\x07", r"two lines\x08"):
        assert shown in found.text
    assert found.data()["time"]["names"] == ["one", r"two\x07", r"three\u2028"]  # type: ignore[index]


def test_every_round_is_carried_at_full_precision(
    storm: tuple[nf.MDP, nf.FactoredLosses], page: Elements
) -> None:
    frame = nf.price_stream(*storm).to_frame()
    rounds = page.data()["rounds"]
    assert isinstance(rounds, dict)
    assert rounds["names"] == frame["round"].to_list()
    for name, column in rounds["columns"].items():
        assert column == frame[name].to_list()


def test_a_page_of_very_many_rounds_says_that_it_does_not_carry_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normalfan.report.content.MOST_CARRIED", 5)
    mdp, losses = random_stream(3)
    for rounds, carried in ((losses[:5], True), (losses, False)):
        found = written(tmp_path / "page.html", mdp, rounds)
        assert (found.data()["rounds"] is not None) is carried
        assert any(attrs.get("id") == "download" for _, attrs in found.found) is carried
        assert ("The page carries at most 5 rounds" in found.text) is not carried


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ("number", "0", "1")),
        (("one", "two"), ("number", "0", "1")),
        (("2021-02-14", "2021-02-15"), ("date", "2021-02-14", "2021-02-15")),
        (("2021-02-14", "2021-02-14 07:30:15"), ("datetime-local", "2021-02-14T00:00", "2021-02-14T07:30")),
    ],
)
def test_rounds_are_chosen_as_they_are_named(
    names: tuple[str, str] | None, expected: tuple[str, ...], tmp_path: Path
) -> None:
    losses = nf.ArrayLosses(np.array([[0.0, 1], [1, 0]]).reshape(2, 1, 1, 2), round_names=names)
    found = written(tmp_path / "page.html", ARMS, losses)
    for end in ("from", "to"):
        (given,) = (attrs for _, attrs in found.found if attrs.get("id") == end)
        assert (given["type"], given["min"], given["max"]) == expected


def test_a_minus_sign_stays_with_its_number(page: Elements) -> None:
    assert "the expected loss adds up to −\u2060$" in page.text


def test_near_ties_are_named(tmp_path: Path) -> None:
    losses = np.array([[0.0, 1e-13], [1.0, 0.0]]).reshape(2, 1, 1, 2) + 1
    found = written(tmp_path / "page.html", ARMS, losses)
    time = found.data()["time"]
    assert isinstance(time, dict)
    assert time["ambiguous"] == {"at": [1], "y": [0.0], "low": [0.0], "high": [1.0]}
    words = "Marked: 1 round with a near-tie, each with the interval in which its exact price lies."
    assert words in found.text
    assert "the exact total lies between 0 and 1." in found.text


def test_the_caption_says_how_many_near_ties_are_drawn(tmp_path: Path) -> None:
    losses = np.tile([[0.0, 1e-13], [1.0, 0.0]], (501, 1)).reshape(-1, 1, 1, 2) + 1
    found = written(tmp_path / "page.html", ARMS, losses)
    time = found.data()["time"]
    assert isinstance(time, dict)
    assert len(time["ambiguous"]["at"]) == 500
    assert "501 rounds with a near-tie (the first 500 are drawn)" in found.text


def test_equal_variations_share_a_rank_on_the_whole_page(tmp_path: Path) -> None:
    losses = np.array([[0, 1.0], [1, 0.0], [0, 1.0], [1, 0.0]]).reshape(4, 1, 1, 2)
    found = written(tmp_path / "page.html", ARMS, losses)
    assert "The 3 costliest rounds rank 1, 1, 1 by loss variation (L1)" in found.text
    numbers = [attrs["data-key"] for tag, attrs in found.found if tag == "td" and "data-key" in attrs]
    assert numbers[4::5] == ["1", "1", "1"]


def test_a_summary_at_hand_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = np.array([[0, 1.0], [1, 0.0], [0, 1.0]]).reshape(3, 1, 1, 2)
    motion = nf.price_stream(ARMS, losses)
    summary = summarise(ARMS, losses, motion, costliest=1)
    monkeypatch.delattr("normalfan.report.page.summarise")  # no second one is made
    found = written(tmp_path / "page.html", ARMS, losses, summary=summary)
    assert "It ranks 1 by loss variation" in found.text
    for options in ({"norm": "l2", "summary": summary}, {"summary": replace(summary, rounds=7)}):
        with pytest.raises(nf.InputError, match="summary is of"):
            written(tmp_path / "page.html", ARMS, losses, **options)


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


def test_a_page_of_ranges_is_inert_and_the_same_twice(tmp_path: Path) -> None:
    named = [
        nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]], feature_names=names)
        for names in (("a", "b"), ("a" + HOSTILE, HOSTILE))
    ]
    pages = []
    for losses in (*named, named[1]):
        found, reach = nf.ranging(ARMS, losses), nf.radius(ARMS, losses)
        write_ranges(tmp_path / "ranges.html", found, reach, title="Arms", unit="$")
        pages.append((tmp_path / "ranges.html").read_text().replace(get_plotlyjs(), ""))
    assert pages[1] == pages[2]
    plain, hostile = Elements(pages[0]), Elements(pages[1])
    assert [tag for tag, _ in plain.found] == [tag for tag, _ in hostile.found]
    assert HOSTILE in hostile.text
    assert "All 2 features may be wrong by ±25.4 % at once" in plain.text  # 3 + 0.76 = 5 − 1.27 + 0.03
    assert "above: 0, 0: 0 → 1" in plain.text
