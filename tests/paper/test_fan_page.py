"""The page to play with, in a browser: what it says is what the engine says, by mouse, touch and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import launched
from playwright.sync_api import Browser, Page

import normalfan as nf
from normalfan.geometry.cone import cone_margin
from normalfan_paper.fan_page import to_fan_page
from normalfan_paper.plane import example

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("fan") / "fan.html"
    path.write_text(to_fan_page(), encoding="utf-8")
    return path.as_uri()


def opened(browser: Browser, address: str, **options: Any) -> Page:
    """The page, which must raise no error and ask the network for nothing."""
    page = browser.new_context(**options).new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.on("request", lambda request: None if request.url == address else pytest.fail(request.url))
    page.goto(address)
    return page


def results(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("window.fan.results()")
    return found


def check_against_the_engine(page: Page, share: float = 0.0) -> None:
    """Faces, price by step, margin and selection error of where the losses are now."""
    mdp, plane = example()
    state = page.evaluate("window.fan.state")
    before, after = (np.tensordot(state[name], plane.along, axes=1) for name in ("before", "after"))
    found = results(page)
    old, new = nf.optimal_face(mdp, before), nf.optimal_face(mdp, after)
    assert len(found["held"]) == len(list(old.vertices()))
    assert len(found["best"]) == len(list(new.vertices()))
    crossing = nf.price(old, after)
    assert found["price"] == pytest.approx(crossing.price, abs=1e-8)
    assert sum(found["byLayer"]) == pytest.approx(crossing.price, abs=1e-8)
    if old.is_vertex:
        assert found["byLayer"] == pytest.approx(crossing.by_step.tolist(), abs=1e-8)
    margin = cone_margin(mdp, after).value
    assert (found["margin"] or np.inf) == pytest.approx(margin, abs=1e-8)
    assert found["meets"] == old.meets(new)
    losses = [float((vertex * after).sum()) for vertex in _in_order(old)]
    played = (1 - share) * losses[0] + share * losses[-1]
    assert found["selection"] == pytest.approx(played - min(losses), abs=1e-8)
    assert float(page.locator("#price").inner_text()) == pytest.approx(crossing.price, abs=1e-3)


def _in_order(face: nf.Face) -> list[np.ndarray]:
    """The vertices by their action strings, as the page lists them."""
    return sorted(face.vertices(), key=lambda v: v.sum(axis=1).argmax(axis=1).tolist())


PLACES = [
    ((0.9, -0.9), (-0.25, -0.8)),
    ((0.5, 0.9), (0.9, 0.4)),
    ((-1.5, 0.3), (1.2, -1.0)),
    ((0, 0), (1, 1)),
]


@pytest.mark.parametrize(("before", "after"), PLACES)
def test_it_says_what_the_engine_says(
    browser: Browser, address: str, before: tuple[float, float], after: tuple[float, float]
) -> None:
    page = opened(browser, address)
    page.evaluate("([b, a]) => { fan.move('before', b); fan.move('after', a); }", [before, after])
    check_against_the_engine(page)


def test_a_loss_beside_a_wall_snaps_and_leaves_a_choice(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    _, plane = example()
    ray = plane.rays[2] / np.linalg.norm(plane.rays[2])
    aside = 1.2 * ray + 0.04 * np.array([-ray[1], ray[0]])
    page.evaluate("b => fan.move('before', b)", aside.tolist())
    assert len(results(page)["held"]) == 2
    slider = page.locator("#point")
    assert slider.is_enabled()
    check_against_the_engine(page)
    slider.focus()
    page.keyboard.press("End")
    check_against_the_engine(page, share=1.0)
    page.evaluate("fan.move('before', [0.9, -0.9])")
    assert slider.is_disabled()


def test_it_is_dragged_by_mouse(browser: Browser, address: str) -> None:
    page = opened(browser, address, viewport={"width": 1100, "height": 900})
    said = page.locator("#said").inner_text()
    box = page.locator("#handle-after").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 150, steps=5)
    page.mouse.up()
    assert page.locator("#said").inner_text() != said
    check_against_the_engine(page)
    still = page.evaluate("fan.state.after")
    page.mouse.move(x, y)  # let go, it stays
    assert page.evaluate("fan.state.after") == still


def test_it_is_moved_by_keys(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "handle-before"
    page.keyboard.press("Tab")
    start = page.evaluate("fan.state.after")
    page.keyboard.press("Shift+ArrowLeft")
    moved = page.evaluate("fan.state.after")
    assert moved[0] == pytest.approx(start[0] - 0.25)
    for _ in range(40):  # through walls, snapping or not, and not out of the picture
        page.keyboard.press("ArrowUp")
        check_against_the_engine(page)
    assert np.hypot(*page.evaluate("fan.state.after")) <= 2.0
    page.keyboard.press("Home")
    assert len(results(page)["best"]) == 8
    assert page.locator("#handle-after").get_attribute("aria-valuetext").startswith("000 or 001")  # type: ignore[union-attr]
    check_against_the_engine(page)


def test_it_fits_a_phone_and_follows_a_finger(browser: Browser, address: str) -> None:
    page = opened(browser, address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator("#handle-before").bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 40  # room for a finger
    client = page.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.evaluate("fan.state.before")
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x - 70, "y": y - 60}]),
        ("touchEnd", []),
    ):
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert page.evaluate("fan.state.before") != before
    check_against_the_engine(page)
