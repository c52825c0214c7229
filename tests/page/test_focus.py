"""Where the focus is after what had it is gone: never nowhere, or whoever uses the keyboard begins anew."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from harness import toy
from page import gateway, rest, visiting

LISTS = {
    "name": "lists",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}},
}


@pytest.fixture
def url(tmp_path: Path) -> Generator[str]:
    """A gateway with two servers."""
    servers: dict[str, Any] = {"one": toy(name="one", raw_tools=[LISTS], tools=["add"]), "two": toy(name="two")}
    with gateway(tmp_path, servers) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        yield address


def test_the_focus_outlives_what_was_removed(context: BrowserContext, url: str) -> None:
    """A row that is taken out, and the notice that undoes it."""
    with visiting(context, url) as visit:
        page = visit.open("servers")
        heading = page.get_by_role("heading", level=1, name="Servers")
        button = page.get_by_role("button", name="More for two")
        button.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="Remove").press("Enter")
        expect(button).to_have_count(0)
        expect(heading).to_be_focused()
        page.get_by_role("button", name="Undo").press("Enter")
        expect(button).to_be_visible()
        expect(heading).to_be_focused()


def test_the_focus_leaves_a_button_that_can_no_longer_be_used(context: BrowserContext, url: str) -> None:
    """It goes to the first field beside it; whoever pressed somewhere else meanwhile keeps their place."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one")
        page.get_by_role("checkbox", name="Choose add", exact=True).check()
        page.get_by_role("button", name="Deny 1").press("Enter")
        expect(page.get_by_text("1 tool denied.")).to_be_visible()
        expect(page.get_by_label("Find")).to_be_focused()
        page.get_by_label("Find").blur()
        page.get_by_role("heading", level=1).click()
        page.get_by_role("button", name="Dismiss").click()
        expect(page.locator(".notice")).to_have_count(0)


def test_whoever_adds_to_a_form_goes_on_there(context: BrowserContext, url: str) -> None:
    """In the new item of a list, and in the new member of an object."""
    with visiting(context, url) as visit:
        page = visit.open("tools/one__lists")
        page.get_by_role("button", name="Add words").click()
        page.get_by_role("button", name="Add an item to words").click()
        expect(page.get_by_label("Item 2", exact=True)).to_be_focused()
        page = visit.open("tools/one__echo")
        page.get_by_label("Another member").fill("fresh")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_label("fresh JSON")).to_be_focused()
