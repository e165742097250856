"""The report as a reader meets it: in a browser, with a mouse, a keyboard and a phone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import normalfan as nf
from normalfan.battery.ercot import ercot_prices
from normalfan.battery.model import Battery
from normalfan.report import write_report

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DAYS = slice(0, 120)

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        missing = "no chromium was found on the path, but these tests look at a page in it: install one."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    market, battery = ercot_prices(), Battery()
    mdp = battery.mdp()
    losses = battery.losses(market.prices[DAYS], round_names=market.dates[DAYS])
    path = tmp_path_factory.mktemp("browser") / "report.html"
    write_report(path, mdp, losses, nf.price_stream(mdp, losses), title="A battery", unit="$")
    return path


class Visit:
    """A page that is open, with everything it complained about or asked for."""

    def __init__(self, browser: Browser, path: Path, *, width: int = 1200, scheme: str = "light") -> None:
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#chart-fan .heatmaplayer image")

    def range_of(self, chart: str, axis: str) -> list[object]:
        ends: list[object] = self.page.evaluate(
            "([chart, axis]) => document.getElementById(chart)._fullLayout[axis].range", [chart, axis]
        )
        return ends

    def overflow(self) -> int:
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width

    def shown_rounds(self) -> list[str]:
        return self.page.locator("#rounds-table > tbody:visible > tr:first-child > th").all_inner_texts()


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Iterator[Visit]:
    visited = Visit(browser, report)
    yield visited
    visited.page.close()


@pytest.fixture
def visit(opened: Visit, report: Path) -> Iterator[Visit]:
    """One page for all tests: loading it is most of the time. Nothing may complain, nothing be asked for."""
    yield opened
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]


def test_the_keyboard_reaches_everything(visit: Visit) -> None:
    visit.page.keyboard.press("Tab")
    skip = visit.page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    box = skip.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    reached = set()
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        reached.add(visit.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        outlined = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outlined != "none"
    assert {"theme", "filter", "Zoom in", "Log scale", "Price", "Show"} <= reached


def test_hovering_shows_the_price(visit: Visit) -> None:
    plot = visit.page.locator("#chart-time .nsewdrag[data-subplot='xy']")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    at = visit.page.evaluate(
        "() => { const l = document.getElementById('chart-time')._fullLayout;"
        " return [l.xaxis.d2p('2021-02-16'), l.yaxis.d2p(193470)]; }"
    )
    visit.page.mouse.move(box["x"] + at[0] + 1, box["y"] + at[1] + 1)
    tooltip = visit.page.locator("#chart-time .hoverlayer .hovertext")
    tooltip.wait_for()
    assert tooltip.text_content() == "2021-02-16price $193,470"


def test_hovering_over_the_fan_shows_the_price(visit: Visit) -> None:
    plot = visit.page.locator("#chart-fan .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    visit.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.2 * box["height"])
    tooltip = visit.page.locator("#chart-fan .hoverlayer .hovertext")
    tooltip.wait_for()
    assert re.fullmatch(r"face \d+price \$[\d,.]+", tooltip.text_content() or "")


def test_zooming_one_time_chart_zooms_all(visit: Visit) -> None:
    before = visit.range_of("chart-time", "xaxis")
    plot = visit.page.locator("#chart-time .nsewdrag[data-subplot='xy']")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    visit.page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=4)
    visit.page.mouse.up()
    visit.page.wait_for_function(
        "before => document.getElementById('chart-margins')._fullLayout.xaxis.range[0] !== before",
        arg=before[0],
    )
    zoomed = visit.range_of("chart-time", "xaxis")
    assert zoomed != before
    for chart in ("chart-time", "chart-cumulative", "chart-margins"):
        for axis in ("xaxis", "xaxis2"):
            assert [str(end)[:13] for end in visit.range_of(chart, axis)] == [str(end)[:13] for end in zoomed]
    visit.page.get_by_role("button", name="All", exact=True).click()
    visit.page.wait_for_function(
        "before => document.getElementById('chart-time')._fullLayout.xaxis2.range[0] === before",
        arg=before[0],
    )


def test_zooming_by_keyboard_rescales_what_is_seen(visit: Visit) -> None:
    highest = visit.range_of("chart-time", "yaxis")[1]
    button = visit.page.get_by_role("button", name="Zoom in")
    button.focus()
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Enter")
    visit.page.get_by_role("button", name="Later").press("Enter")
    visit.page.wait_for_function(
        "highest => document.getElementById('chart-time')._fullLayout.yaxis.range[1] < highest / 2",
        arg=highest,
    )
    visit.page.get_by_role("button", name="All", exact=True).press("Enter")
    visit.page.wait_for_function(
        "highest => document.getElementById('chart-time')._fullLayout.yaxis.range[1] === highest", arg=highest
    )


def test_the_filter_keeps_the_rounds_that_match(visit: Visit) -> None:
    every = visit.shown_rounds()
    assert len(every) == 50
    visit.page.get_by_label("Filter").fill("2021-02-1")
    kept = visit.shown_rounds()
    assert kept == [name for name in every if name.startswith("2021-02-1")]
    assert visit.page.locator("#matches").inner_text() == f"{len(kept)} of {len(every)} rounds"
    visit.page.get_by_label("Filter").fill("")
    assert visit.shown_rounds() == every


def test_columns_sort_and_plans_unfold_by_keyboard(visit: Visit) -> None:
    by_price = visit.shown_rounds()
    heading = visit.page.locator("#rounds-table > thead th:nth-child(1) button")
    heading.press("Enter")
    assert visit.shown_rounds() == sorted(by_price)
    heading.press("Enter")
    assert visit.shown_rounds() == sorted(by_price, reverse=True)
    rank = visit.page.get_by_role("button", name="Rank by variation")
    rank.press("Enter")
    rank.press("Enter")
    ranks = visit.page.locator("#rounds-table > tbody > tr:first-child > td:nth-child(6)").all_inner_texts()
    assert [int(text.replace(",", "")) for text in ranks] == sorted(int(t.replace(",", "")) for t in ranks)
    show = visit.page.get_by_role("button", name="Plans of 2021-02-16")
    show.press("Enter")
    plan = visit.page.locator(f"#{show.get_attribute('aria-controls')}")
    assert plan.is_visible()
    assert show.get_attribute("aria-expanded") == "true"
    assert plan.locator("tbody tr").count() == 24
    show.press("Enter")
    assert plan.is_hidden()


def test_dark_and_light(visit: Visit, browser: Browser, report: Path) -> None:
    def background() -> str:
        colour: str = visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return colour

    light = background()
    toggle = visit.page.get_by_role("button", name="Dark")
    toggle.click()
    assert background() != light
    assert toggle.get_attribute("aria-pressed") == "true"
    colour = "document.getElementById('chart-time')._fullLayout.font.color"
    dark_ink = visit.page.evaluate(colour)
    toggle.click()
    assert background() == light
    assert visit.page.evaluate(colour) != dark_ink
    preferring = Visit(browser, report, scheme="dark")
    assert preferring.page.evaluate(colour) == dark_ink
    preferring.page.close()


def test_paper_is_light_and_narrow(visit: Visit) -> None:
    def width_and_theme() -> tuple[float, str]:
        width = visit.page.evaluate("document.getElementById('chart-time')._fullLayout.width")
        return width, visit.page.evaluate("document.documentElement.dataset.theme")

    visit.page.get_by_role("button", name="Dark").click()
    before = width_and_theme()
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert width_and_theme() == (680, "light")
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    visit.page.wait_for_function(
        "width => document.getElementById('chart-time')._fullLayout.width === width", arg=before[0]
    )
    assert width_and_theme() == before
    assert before[1] == "dark"


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, report: Path) -> None:
    phone = Visit(browser, report, width=375)
    assert phone.overflow() <= 0
    phone.page.get_by_role("button", name="Plans of 2021-02-16").click()
    assert phone.overflow() <= 0
    assert phone.complaints == []
    phone.page.close()


def test_labels_stay_text(browser: Browser, tmp_path: Path) -> None:
    import numpy as np

    from normalfan.problem.labels import Labels

    hostile = "<img src=x onerror=\"document.title='broken'\"><b>bold</b>"
    labels = Labels(steps=(hostile,), states=(hostile,), actions=("a" + hostile, hostile))
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1, labels=labels)
    rounds = np.array([[0.0, 1.0], [1.0, 0.0], [0.3, 0.0]]).reshape(3, 1, 1, 2)
    losses = nf.ArrayLosses(rounds, round_names=(hostile + "1", hostile + "2", hostile + "3"))
    path = tmp_path / "hostile.html"
    write_report(path, mdp, losses, nf.price_stream(mdp, losses), title=hostile, unit=hostile)
    visited = Visit(browser, path)
    assert visited.page.title() == hostile
    assert visited.page.locator("img").count() == 0
    axis = visited.page.locator(
        "#chart-attribution .yaxislayer-above text, #chart-attribution .y2tick text"
    ).all_text_contents()
    assert hostile in axis
    assert visited.complaints == []
    assert visited.requests == [path.as_uri()]
    visited.page.close()
