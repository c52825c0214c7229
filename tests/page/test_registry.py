"""Servers of the registry at the page: what each wants is asked as its publisher says, and stands in what is added."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from harness import toy
from mcp_registry.fixture_registry import registry_of
from mcp_registry.records import PACKAGE_ONLY
from page import gateway, visiting

SCREEN = "add?way=registry&q=weather&server=io.github.alice%2Fweather-mcp"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A gateway whose registry has one server, of whose name the config has another one."""
    with registry_of([PACKAGE_ONLY]) as registry:
        monkeypatch.setenv("PEGBOARD_REGISTRY", registry.url)
        with gateway(tmp_path, {"weather_mcp": toy(name="one")}) as address:
            yield address


def entry(folder: Path, name: str) -> Any:
    """What the config file says of a server."""
    return json.loads((folder / "pegboard.json").read_text("utf-8"))["mcpServers"][name]


def test_a_published_server_is_added_with_what_it_wants(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """Choices are chosen from, with their default; what is required is said to be missing before it is added; whatever
    was given is in the entry, at its place; and a name that is taken is told with another one. What a
    link may have proposed is asked about, with what it would run."""
    with visiting(context, url) as visit:
        page = visit.open(SCREEN)
        units = page.get_by_label("units (if you want)")
        expect(units).to_have_value("metric")
        assert units.locator("option").all_text_contents() == ["metric", "imperial"]
        expect(page.get_by_text("It wants WEATHER_KEY, place.")).to_be_visible()
        expect(page.get_by_role("button", name="Add all the same")).not_to_have_class("main")
        expect(page.get_by_text("There is a server weather_mcp already.")).to_be_visible()
        page.get_by_role("button", name="Call it weather_mcp_2").click()
        expect(page.get_by_label("Name")).to_have_value("weather_mcp_2")
        expect(page.get_by_text("already.")).to_have_count(0)
        units.select_option("imperial")
        page.get_by_label("place (required)").fill("Lisbon")
        page.get_by_label("WEATHER_KEY (required)").fill("tulip")
        page.get_by_label("WEATHER_CACHE (if you want)").fill("/tmp/weather")
        expect(page.locator("main pre")).to_contain_text("imperial Lisbon --stdio")
        expect(page.get_by_text("It wants")).to_have_count(0)
        expect(page.get_by_text("taken from the gateway's environment")).to_have_count(0)
        visit.check_accessible()
        page.get_by_role("button", name="Add").last.click()
        dialog = page.get_by_role("dialog", name="Add weather_mcp_2?")
        expect(dialog).to_contain_text(re.compile("A link led here. It will run: .*imperial Lisbon --stdio"))
        dialog.get_by_role("button", name="Cancel").click()
        assert "weather_mcp_2" not in (tmp_path / "pegboard.json").read_text("utf-8")
        page.get_by_role("button", name="Add").last.click()
        dialog.get_by_role("button", name="Add it").click()
        expect(page.get_by_role("heading", level=1, name="weather_mcp_2")).to_be_visible()
        added = entry(tmp_path, "weather_mcp_2")
        assert added["args"][-4:] == ["--units", "imperial", "Lisbon", "--stdio"]
        assert added["env"] == {"WEATHER_KEY": "tulip", "WEATHER_CACHE": "/tmp/weather"}
        visit.complaints.clear()  # There is no such program.


def test_what_was_chosen_here_is_added_at_once(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """Nobody else has proposed it."""
    with visiting(context, url) as visit:
        visit.open("add")
        page = visit.open(SCREEN)
        page.get_by_label("Name").fill("chosen")
        page.get_by_role("button", name="Add all the same").click()
        expect(page.get_by_role("heading", level=1, name="chosen")).to_be_visible()
        assert entry(tmp_path, "chosen")
        visit.complaints.clear()  # There is no such program.
