"""The report as a reader meets it: in a browser, with a mouse, a keyboard and a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars
import pytest
from browsing import launched
from playwright.sync_api import Browser, Page

import normalfan as nf
from normalfan.battery import Battery, ercot_prices
from normalfan.report import write_ranges, write_regret_curve, write_report
from normalfan.text import amount

DAYS = slice(0, 120)

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def battery() -> tuple[nf.MDP, nf.FactoredLosses, nf.PricedMotion]:
    market, battery = ercot_prices(), Battery()
    mdp, losses = battery.mdp(), battery.losses(market.prices[DAYS], round_names=market.dates[DAYS])
    return mdp, losses, nf.price_stream(mdp, losses)


@pytest.fixture(scope="module")
def motion(battery: tuple[nf.MDP, nf.FactoredLosses, nf.PricedMotion]) -> nf.PricedMotion:
    return battery[2]


@pytest.fixture(scope="module")
def report(
    battery: tuple[nf.MDP, nf.FactoredLosses, nf.PricedMotion], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("browser") / "report.html"
    write_report(path, *battery, title="A battery", unit="$")
    return path


def small_page(path: Path, names: list[str] | None, rounds: int = 6) -> None:
    """Two arms that take turns at being free: every round but the first costs its number."""
    turns = np.zeros((rounds, 1, 1, 2))
    turns[np.arange(rounds), 0, 0, np.arange(rounds) % 2] = np.arange(rounds) + 1.0
    losses = nf.ArrayLosses(turns, round_names=names)
    arms = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
    write_report(path, arms, losses, nf.price_stream(arms, losses), title="Two arms")


class Tab:
    """A tab of the browser, for one page after the other: it compiles the charts' program once."""

    def __init__(self, browser: Browser) -> None:
        self.page: Page = browser.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    """For all pages but the one of `visit`."""
    return Tab(browser)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages are written, one over the other: the browser keeps the code of an address."""
    return tmp_path_factory.mktemp("browser") / "page.html"


class Visit:
    """A page that is open, with everything it complained about or asked for."""

    def __init__(
        self,
        tab: Tab,
        path: Path,
        *,
        width: int = 1200,
        scheme: str = "light",
        ready: str = "#chart-fan .heatmaplayer image",
    ) -> None:
        self.page = tab.page
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        self.complaints, self.requests = tab.complaints, tab.requests
        self.complaints.clear()
        self.requests.clear()
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(ready)

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

    def choose(self, first: str, last: str) -> None:
        self.page.locator("#from").fill(first)
        self.page.locator("#to").fill(last)

    def sums(self) -> str:
        return self.page.locator("#shown").inner_text().replace("\u2060", "")

    def periods(self) -> list[list[str]]:
        rows = self.page.locator("#periods > tbody > tr").all()
        return [row.locator("th, td").all_inner_texts() for row in rows]

    def downloaded(self) -> str:
        with self.page.expect_download() as started:
            self.page.get_by_role("button", name="Download every round").press("Enter")
        assert started.value.suggested_filename == "rounds.csv"
        return Path(started.value.path()).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Visit:
    return Visit(Tab(browser), report)


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
    for _ in range(50):
        visit.page.keyboard.press("Tab")
        reached.add(visit.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        outlined = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outlined != "none"
    assert {"theme", "from", "to", "download", "By week", "filter", "Zoom in", "Log scale", "Show"} <= reached


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
    assert re.fullmatch(r"plan \d+price \$[\d,.]+", tooltip.text_content() or "")


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
        "before => document.getElementById('chart-cumulative')._fullLayout.xaxis.range[0] !== before",
        arg=before[0],
    )
    zoomed = visit.range_of("chart-time", "xaxis")
    assert zoomed != before
    for chart in ("chart-time", "chart-cumulative"):
        for axis in ("xaxis", "xaxis2"):
            assert [str(end)[:13] for end in visit.range_of(chart, axis)] == [str(end)[:13] for end in zoomed]
    visit.page.get_by_role("button", name="All rounds").click()
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
    visit.page.get_by_role("button", name="All rounds").press("Enter")
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


def test_chosen_dates_are_what_is_shown_and_summed(visit: Visit, motion: nf.PricedMotion) -> None:
    every, months = visit.shown_rounds(), visit.periods()
    days = list(motion.round_names or ())
    assert visit.sums().startswith(f"All 120 rounds: the price adds up to ${motion.total:,.0f}, ")
    visit.choose("2021-02-10", "2021-03-05")
    inside = [t for t, day in enumerate(days) if "2021-02-10" <= day <= "2021-03-05"]
    part, best = motion.prices[inside].sum(), motion.values[inside].sum()
    assert visit.sums() == (
        f"{len(inside)} of 120 rounds: the price adds up to ${part:,.0f} "
        f"({100 * part / motion.total:.0f} % of all), the expected loss of the best plans to −${-best:,.0f}."
    )
    assert visit.shown_rounds() == [day for day in every if "2021-02-10" <= day <= "2021-03-05"]
    for chart in ("chart-time", "chart-cumulative"):
        low, high = (str(end)[:10] for end in visit.range_of(chart, "xaxis2"))
        assert (low, high) == ("2021-02-09", "2021-03-05")
    assert [row[:2] for row in visit.periods()] == [["2021-02", "19"], ["2021-03", "5"]]
    visit.page.get_by_role("button", name="All rounds").press("Enter")
    assert (visit.shown_rounds(), visit.periods()) == (every, months)
    assert visit.page.locator("#from").input_value() == ""


def test_dates_without_a_round_change_nothing(visit: Visit) -> None:
    every, whole = visit.shown_rounds(), visit.range_of("chart-time", "xaxis2")
    visit.page.locator("#from").fill("2031-01-01")
    assert visit.sums() == "No round lies there: the charts and the table are as before."
    assert visit.page.locator("#from").get_attribute("aria-invalid") == "true"
    assert (visit.shown_rounds(), visit.range_of("chart-time", "xaxis2")) == (every, whole)
    visit.page.locator("#from").fill("")
    assert visit.page.locator("#from").get_attribute("aria-invalid") != "true"


def test_zooming_a_chart_fills_in_the_dates(visit: Visit) -> None:
    visit.page.get_by_role("button", name="Zoom in").press("Enter")
    first, last = (visit.page.locator(name).input_value() for name in ("#from", "#to"))
    assert (first, last) == ("2021-01-31", "2021-04-01")
    assert visit.sums().startswith("60 of 120 rounds")  # one day in March is missing
    visit.page.get_by_role("button", name="All rounds").press("Enter")


def test_months_and_weeks_add_up(visit: Visit, motion: nf.PricedMotion) -> None:
    days = [date.fromisoformat(day) for day in motion.round_names or ()]
    starts = {
        "By month": lambda day: f"{day:%Y-%m}",
        "By week": lambda day: str(day - timedelta(day.weekday())),
    }
    for button, start in starts.items():
        visit.page.get_by_role("button", name=button).press("Enter")
        sums: dict[str, list[float]] = {}
        for day, price in zip(days, motion.prices.tolist(), strict=True):
            sums.setdefault(start(day), []).append(price)
        shown = {key: (int(count), price) for key, count, price, _ in visit.periods()}
        assert shown == {key: (len(paid), amount(sum(paid), "$")) for key, paid in sums.items()}
    visit.page.get_by_role("button", name="By month").press("Enter")


def test_the_download_has_every_round_to_the_last_bit(visit: Visit, motion: nf.PricedMotion) -> None:
    visit.choose("2021-02-10", "2021-03-05")  # it is every round whatever is shown
    text = visit.downloaded()
    visit.choose("", "")
    frame = polars.read_csv(text.encode())
    assert frame.equals(motion.to_frame().select(frame.columns))
    assert frame.columns == ["round", "price", "value", "variation_l1", "crossed", "ambiguous",
                             "lowest_price", "highest_price"]  # fmt: skip


def test_a_spreadsheet_runs_nothing_of_a_download(tab: Tab, place: Path) -> None:
    names = ["=1+1", "+2", "-3", "@x", 'a "b", c', "plain"]
    small_page(place, names)
    visited = Visit(tab, place)
    written = ["'=1+1", "'+2", "'-3", "'@x", '"a ""b"", c"', "plain"]
    lines = visited.downloaded().splitlines()
    assert lines[0] == "round,price,value,variation_l1,crossed,ambiguous,lowest_price,highest_price"
    assert [line.rsplit(",", 2)[0] for line in lines[1:]] == [
        f"{name},{t + 1 if t else 0},0,{2 * t + 1 if t else 0},{str(t > 0).lower()},false"
        for t, name in enumerate(written)
    ]
    assert visited.complaints == []


def test_rounds_without_dates_are_chosen_by_number(tab: Tab, place: Path) -> None:
    small_page(place, None)
    visited = Visit(tab, place)
    visited.choose("2", "3")
    assert visited.sums() == (
        "2 of 6 rounds: the price adds up to 7 (35 % of all), the expected loss of the best plans to 0."
    )
    assert visited.shown_rounds() == ["3", "2"]
    assert visited.range_of("chart-time", "xaxis2") == [1.5, 3.5]
    assert visited.page.locator("#periods").count() == 0


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_hours_are_chosen_as_written_wherever_the_reader_is(tab: Tab, place: Path, zone: str) -> None:
    hours = [f"2021-02-28 {h}:00" for h in range(21, 24)] + [f"2021-03-01 0{h}:00" for h in range(3)]
    small_page(place, hours)
    clock = tab.page.context.new_cdp_session(tab.page)
    clock.send("Emulation.setTimezoneOverride", {"timezoneId": zone})
    visited = Visit(tab, place)
    assert tab.page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone") == zone
    assert [row[:3] for row in visited.periods()] == [["2021-02", "3", "5"], ["2021-03", "3", "15"]]
    visited.choose("2021-02-28T23:00", "2021-03-01T00:00")
    assert visited.sums().startswith("2 of 6 rounds: the price adds up to 7 ")
    assert visited.range_of("chart-time", "xaxis2") == ["2021-02-28 22:30:00", "2021-03-01 00:30:00"]
    visited.page.get_by_role("button", name="Log scale").click()  # draws again, the choice stays
    assert visited.sums().startswith("2 of 6 rounds")
    assert visited.page.locator("#from").input_value() == "2021-02-28T23:00"
    clock.detach()


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


def test_dark_and_light(visit: Visit, tab: Tab, report: Path) -> None:
    def background() -> str:
        colour: str = visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return colour

    light = background()
    toggle = visit.page.get_by_role("button", name="Dark")
    toggle.click()
    assert background() != light
    bar = "getComputedStyle(document.querySelector('#periods .bar')).backgroundImage"
    dark_bar = visit.page.evaluate(bar)
    assert toggle.get_attribute("aria-pressed") == "true"
    colour = "document.getElementById('chart-time')._fullLayout.font.color"
    dark_ink = visit.page.evaluate(colour)
    toggle.click()
    assert background() == light
    assert visit.page.evaluate(bar) != dark_bar
    assert visit.page.evaluate(colour) != dark_ink
    preferring = Visit(tab, report, scheme="dark")
    assert preferring.page.evaluate(colour) == dark_ink


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


def test_a_phone_needs_no_sideways_scrolling(tab: Tab, report: Path) -> None:
    phone = Visit(tab, report, width=375)
    assert phone.overflow() <= 0
    phone.page.get_by_role("button", name="Plans of 2021-02-16").click()
    phone.choose("2021-02-10", "2021-03-05")
    assert phone.sums().startswith("24 of 120 rounds")
    assert phone.overflow() <= 0
    assert phone.complaints == []


def test_labels_stay_text(tab: Tab, place: Path) -> None:
    from normalfan.problem.mdp import Labels

    hostile = "<img src=x onerror=\"document.title='broken'\"><b>bold</b>"
    labels = Labels(steps=(hostile,), states=(hostile,), actions=("a" + hostile, hostile))
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1, labels=labels)
    rounds = np.array([[0.0, 1.0], [1.0, 0.0], [0.3, 0.0]]).reshape(3, 1, 1, 2)
    losses = nf.ArrayLosses(rounds, round_names=(hostile + "1", hostile + "2", hostile + "3"))
    write_report(place, mdp, losses, nf.price_stream(mdp, losses), title=hostile, unit=hostile)
    visited = Visit(tab, place)
    assert visited.page.title() == hostile
    assert visited.page.locator("img").count() == 0
    axis = visited.page.locator(
        "#chart-attribution .yaxislayer-above text, #chart-attribution .y2tick text"
    ).all_text_contents()
    assert hostile in axis
    assert visited.complaints == []
    assert visited.requests == [place.as_uri()]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_of_replan_is_like_the_report(tab: Tab, place: Path, width: int, scheme: str) -> None:
    battery = Battery()
    costs = nf.replan.holding_costs(battery.mdp(), battery.losses(ercot_prices().prices[DAYS]))
    curve = nf.replan.regret_curve(costs, 5000.0, detectors=False)
    write_regret_curve(place, curve, title="When to re-plan", unit="$", sentences=["Never."])
    visited = Visit(tab, place, width=width, scheme=scheme, ready="#chart-regret .legend")
    assert visited.complaints == []
    assert visited.requests == [place.as_uri()]
    assert visited.overflow() == 0
    assert visited.page.locator(".legend").count() == 1
    assert visited.page.locator(".legend .traces").count() == 7
    assert visited.page.evaluate("document.documentElement.dataset.theme") == scheme
    title = visited.page.locator("#chart-regret .xtitle").bounding_box()
    legend = visited.page.locator("#chart-regret .legend").bounding_box()
    assert title is not None
    assert legend is not None
    assert title["y"] + title["height"] <= legend["y"]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_of_ranges(
    tab: Tab, battery: tuple[nf.MDP, nf.FactoredLosses], place: Path, width: int, scheme: str
) -> None:
    mdp, losses, *_ = battery
    found, reach = nf.ranging(mdp, losses), nf.radius(mdp, losses)
    write_ranges(place, found, reach, title="How wrong?", unit="$")
    visited = Visit(tab, place, width=width, scheme=scheme, ready="#chart-ranges .legend")
    assert visited.complaints == []
    assert visited.requests == [place.as_uri()]
    assert visited.overflow() == 0
    assert visited.page.evaluate("document.documentElement.dataset.theme") == scheme
    assert visited.page.locator("#ranges-table > tbody > tr").count() == 25
    assert visited.page.locator("#chart-ranges .bars .point").count() == 50  # optimal, and within tolerance
    assert visited.page.locator("#chart-ranges .ytick text").count() == 25
    bar = visited.page.locator("#chart-ranges .bars .point").first.bounding_box()
    assert bar is not None
    visited.page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    tooltip = visited.page.locator("#chart-ranges .hoverlayer .hovertext").first
    tooltip.wait_for()
    assert re.match(r"price \d\d:00, now [\d.]+optimal .*within tolerance ", tooltip.text_content() or "")


def test_a_report_of_factored_losses_has_ranges_where_others_have_margins(
    visit: Visit, tab: Tab, place: Path
) -> None:
    assert visit.page.locator("#chart-margins").count() == 0
    assert visit.page.locator("#ranges-table > tbody > tr").count() == 10
    assert visit.page.locator("#chart-ranges .bars .point").count() == 50
    small_page(place, None)
    other = Visit(tab, place)
    assert other.page.locator("#chart-margins .main-svg").count() > 0
    assert other.page.locator("#chart-ranges").count() == 0
    assert other.complaints == []
