"""The browser in which tests look at pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched() -> Iterator[Browser]:
    """Chromium, for a fixture to yield from; without it tests are skipped, but never in CI."""
    chromium = shutil.which("chromium")
    if chromium is None:
        missing = "no chromium was found on the path, but these tests look at a page in it: install one."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        surroundings = {**os.environ, "TZ": "UTC"}
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS, env=surroundings)
        yield browser
        browser.close()
