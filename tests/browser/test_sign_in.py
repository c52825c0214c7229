"""In a real browser: a sign-in to a server, from the address to the page where it ends."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from auth.provider import open_provider
from browser import browser
from forking import warm_start
from harness import serving, write_config
from login.protected import open_protected

LIMIT = 30_000


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """Its absence is a failure, not a reason to skip."""
    path = browser()
    assert path is not None, "no browser: run `.venv/bin/python tests/browser/install.py`"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


def ask(url: str, method: str = "GET", **headers: str) -> Any:
    body = b"{}" if method == "POST" else None
    request = urllib.request.Request(url, body, {"content-type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


def test_a_browser_signs_in(chromium: Browser, tmp_path: Path) -> None:
    """The address leads over the authorization server back to the gateway's page, which the guard lets a page of
    another site lead to; it shows its style and nothing of the answer, and coming back once more is refused."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        config = write_config(tmp_path / "pegboard.json", {"guarded": {"url": protected.url}})
        with serving(config) as (_, mcp):
            login = mcp.replace("/mcp", "/api/servers/guarded/login")
            begun = ask(login, "POST")
            page = chromium.new_page()
            complaints: list[str] = []
            page.on("console", lambda message: complaints.append(message.text))
            page.goto(begun["url"], timeout=LIMIT)
            page.wait_for_url("**/oauth/callback/*?*", timeout=LIMIT)
            assert page.inner_text("h1") == "Signed in to guarded"
            assert page.evaluate("getComputedStyle(document.body).maxWidth") == "672px"
            assert [each for each in complaints if "Content Security Policy" in each] == []
            assert ask(f"{login}/{begun['flow']}?wait=30")["state"] == "done"
            page.reload(timeout=LIMIT)
            assert page.inner_text("h1") == "Not signed in"
            page.close()


def test_a_link_asks_for_the_token_of_whom_it_is_for(chromium: Browser, tmp_path: Path) -> None:
    """The page of a connect link takes the token that it is for, says of another one that it is wrong, and leads the
    same browser to the end, under its own content security policy."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        entry = {"url": protected.url, "oauth": {"per": "user"}}
        config = write_config(tmp_path / "pegboard.json", {"guarded": entry})
        with serving(config) as (_, mcp):
            words = [*warm_start(), "token", "add", "alice", "--config", str(config)]
            token = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
            login = mcp.replace("/mcp", "/api/servers/guarded/login")
            begun = ask(login, "POST", authorization=f"Bearer {token}")
            page = chromium.new_page()
            page.goto(begun["connect"], timeout=LIMIT)
            page.fill("#token", "pgb_wrong")
            page.click("#go")
            page.get_by_text("That did not work").wait_for(timeout=LIMIT)
            page.fill("#token", token)
            page.press("#token", "Enter")
            page.wait_for_url("**/oauth/callback/*?*", timeout=LIMIT)
            assert page.inner_text("h1") == "Signed in to guarded"
            page.close()
