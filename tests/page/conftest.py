"""What every test of the page has: one browser for each module, and a context of its own."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from browser import browser
from page import DESKTOP

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# While it is there, no other test of this process can run an event loop: it ends with its module.
@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """Its absence is a failure, not a reason to skip."""
    path = browser()
    assert path is not None, "no browser: run `.venv/bin/python tests/browser/install.py`"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def context(chromium: Browser) -> Generator[BrowserContext]:
    """A browser that knows nothing yet."""
    made = chromium.new_context(viewport={"width": DESKTOP["width"], "height": DESKTOP["height"]})
    yield made
    made.close()
