"""Tools at the page: found as models find them, listed by what they cost, denied, and put on boards."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from harness import toy
from page import PHONE, Visit, gateway, pegboard, rest, visiting

HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "Überlänge" * 30 + "工具" * 200
RAIN = {"name": "rain", "description": "Tells how much rain falls tomorrow.", "inputSchema": {"type": "object"}}
LONG = {**RAIN, "name": "long", "description": "word " * 2000}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the config is."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def url(folder: Path) -> Generator[str]:
    """A gateway with tools of two servers, and one that is switched off."""
    hostile = {**RAIN, "name": "odd", "title": HOSTILE, "description": HOSTILE * 20}
    servers = {
        "weather": toy({"unicode": "allow"}, name="weather", raw_tools=[RAIN, LONG, hostile]),
        "other": toy(name="other"),
        "off": toy(name="off"),
    }
    with gateway(folder, servers) as address:
        for name in servers:
            rest(f"{address}/api/servers/{name}/refresh", "POST", {})
        rest(f"{address}/api/servers/off/disable", "POST", {})
        yield address


def row(page: Page, name: str) -> Locator:
    """A tool's row."""
    return page.locator("tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))


def choose(page: Page, name: str, words: str) -> None:
    """An entry of a tool's menu."""
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("menuitem", name=words, exact=True).click()


def entry(folder: Path) -> dict[str, Any]:
    """What the config file says of the server."""
    return json.loads((folder / "pegboard.json").read_text("utf-8"))["mcpServers"]["weather"]


def test_why_a_tool_is_not_there_is_said(context: BrowserContext, tmp_path: Path) -> None:
    """To admins, and with what brings it back; to others in the same words as of a tool that there is not."""
    servers = {
        "one": toy({"tools": {"deny": ["add"]}}, name="one", tools=["add"]),
        "off": {**toy(name="off"), "enabled": False},
    }
    with gateway(tmp_path, servers, auth={"required": True}) as address, visiting(context, address) as visit:
        config = tmp_path / "pegboard.json"
        page = visit.page
        for name, options in (("weak", ()), ("strong", ("--admin",))):
            said = pegboard(config, "token", "add", name, *options)
            token = next(word for word in said.split() if word.startswith("pgb_"))
            page.context.clear_cookies()
            page.goto(f"{address}/#/tools/one__echo")
            page.reload()
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
            visit.open("tools/one__nothing")
            expect(page.get_by_role("alert")).to_have_text("There is no tool one__nothing.")
            visit.open("tools/one__add")
            if name == "weak":
                expect(page.get_by_role("alert")).to_have_text("There is no tool one__add.")
        expect(page.get_by_text("Denied in the config of one")).to_be_visible()
        visit.check_accessible()
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
        visit.open("tools/off__echo")
        expect(page.get_by_text("Disabled: off")).to_be_visible()
        page.get_by_role("button", name="Enable").click()
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that answers were 401, 404 and 503.


def test_words_find_what_a_model_would_find(context: BrowserContext, url: str) -> None:
    """The same order and scores as `tool_find`, what was matched is marked, and the address keeps the words."""
    hits = rest(f"{url}/api/tools/search?q=how+much+rain&limit=50")["tools"]
    with visiting(context, url) as visit:
        page = visit.open("tools")
        page.get_by_label("Find").fill("how much rain")
        expect(page.locator("tbody tr")).to_have_count(len(hits))
        first = page.locator("tbody tr").first
        assert hits[0]["name"] == "weather__rain"
        expect(first).to_contain_text("weather__rain")
        expect(first).to_contain_text(f"{hits[0]['score']:.2f}")
        assert "rain" in first.locator("mark").all_inner_texts()
        expect(page.get_by_label("Order")).to_contain_text("best first")
        page.reload()
        expect(page.get_by_label("Find")).to_have_value("how much rain")
        expect(row(page, "weather__rain")).to_be_visible()
        page.get_by_label("Server").select_option("other")
        expect(row(page, "weather__rain")).to_have_count(0)
        visit.check_accessible()


def test_the_list_is_filtered_and_ordered(context: BrowserContext, url: str) -> None:
    """By server, by status and by what a tool costs, those of servers before Pegboard's own; how many there are and
    what they cost together stands above. A status is said where a tool cannot be used."""
    with visiting(context, url) as visit:
        page = visit.open("tools")
        expect(page.locator("tbody tr").first).to_contain_text("off__")
        expect(page.locator("tbody tr").last).to_contain_text("Pegboard")
        expect(row(page, "weather__rain")).not_to_contain_text("available")
        page = visit.open("tools?order=tokens")
        expect(page.locator("tbody tr").first).to_contain_text("weather__odd")
        page.get_by_label("Server").select_option("weather")
        known = rest(f"{url}/api/tools?server=weather")
        said = f"{known['total']} tools, {known['tokens']:,} tokens"
        expect(page.get_by_text(said)).to_be_visible()
        page.get_by_label("Server").select_option("")
        page.get_by_label("Status").select_option("disabled")
        expect(row(page, "off__echo")).to_contain_text("server off is disabled")
        expect(row(page, "weather__rain")).to_have_count(0)
        page.get_by_label("Server").select_option("weather")
        expect(page.get_by_text("No tool fits.")).to_be_visible()
        assert "status=disabled" in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_whatever_a_server_writes_stays_text(context: BrowserContext, url: str, scheme: Any) -> None:
    """Markup, other directions and ten thousand letters neither run nor break the layout of a phone."""
    with visiting(context, url) as visit:
        visit.page.emulate_media(color_scheme=scheme)
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        page = visit.open("tools?server=weather")
        expect(row(page, "weather__odd")).to_contain_text("<img src=x")
        assert page.locator("main img").count() == 0
        visit.check_accessible()
        page = visit.open("tools/weather__odd")
        expect(page.get_by_role("button", name=re.compile("Show all"))).to_be_visible()
        visit.check_accessible()


def test_a_tool_is_denied_and_allowed_again(context: BrowserContext, url: str, folder: Path) -> None:
    """It is written to its server's entry by the name that it has there; undo puts the list back."""
    with visiting(context, url) as visit:
        page = visit.open("tools?server=weather")
        choose(page, "weather__rain", "Deny")
        expect(row(page, "weather__rain")).to_have_count(0)
        assert entry(folder)["tools"]["deny"] == ["rain"]
        page.get_by_role("button", name="Undo").click()
        expect(row(page, "weather__rain")).to_be_visible()
        assert "deny" not in entry(folder).get("tools", {})


def test_a_menu_fits_a_phone(context: BrowserContext, url: str) -> None:
    """Wherever its button is, what it offers is within the window."""
    with visiting(context, url) as visit:
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        for screen in ("tools?server=weather", "tools/weather__rain"):
            page = visit.open(screen)
            page.get_by_role("button", name="More for weather__rain").click()
            expect(page.get_by_role("menuitem", name="Deny")).to_be_in_viewport(ratio=1)
            visit.check_fits()
            page.keyboard.press("Escape")
            # The bar of a phone stands over what is scrolled below it.
            page.evaluate("scrollTo(0, 0)")
            visit.check_accessible()


def test_a_tool_is_put_on_boards(context: BrowserContext, url: str) -> None:
    """On those that there are and on a new one, and taken off; whoever uses the board has it or not."""
    rest(f"{url}/api/boards/desk", "PATCH", {"load": ["other__echo"]})
    with visiting(context, url) as visit:
        page = visit.open("tools/weather__rain")
        choose(page, "weather__rain", "Boards")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Load on desk").click()
        expect(dialog.get_by_role("button", name="Unload from desk")).to_be_visible()
        assert rest(f"{url}/api/boards/desk")["tools"] == ["other__echo", "weather__rain"]
        dialog.get_by_label("Another board").fill("bench")
        dialog.get_by_role("button", name="Load on it").click()
        expect(dialog.get_by_role("button", name="Unload from bench")).to_be_visible()
        visit.check_accessible()
        dialog.get_by_role("button", name="Unload from desk").click()
        expect(dialog.get_by_role("button", name="Load on desk")).to_be_visible()
        assert rest(f"{url}/api/boards/desk")["tools"] == ["other__echo"]
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("button", name="More for weather__rain")).to_be_focused()


def test_many_tools_are_shown_in_parts(context: BrowserContext, tmp_path: Path) -> None:
    """The first hundred, and more when they are wanted; and it is said when clients are given more than some take."""
    names = [f"t{number}" for number in range(300)]
    with (
        gateway(tmp_path, {"many": toy(name="many", tools=names)}, expose="all") as address,
        visiting(context, address) as visit,
    ):
        rest(f"{address}/api/servers/many/refresh", "POST", {})
        page = visit.open("tools")
        expect(page.locator("tbody tr")).to_have_count(100)
        expect(page.get_by_text("Some take no more than 100")).to_be_visible()
        page.get_by_role("button", name="Show more").click()
        expect(page.locator("tbody tr")).to_have_count(200)


def test_the_weak_are_offered_what_they_may_do(context: BrowserContext, tmp_path: Path) -> None:
    """Whoever is no admin sees the tools that their rule allows, and no way to deny one."""
    with gateway(tmp_path, {"one": toy(name="one"), "hidden": toy(name="hidden")}, auth={"required": True}) as address:
        said = pegboard(tmp_path / "pegboard.json", "token", "add", "weak", "--server", "one")
        token = next(word for word in said.split() if word.startswith("pgb_"))
        visit = Visit(context.new_page(), address)
        page = visit.open("tools")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(row(page, "one__echo")).to_be_visible()
        expect(page.get_by_text("hidden")).to_have_count(0)
        page.get_by_role("button", name="More for one__echo").click()
        expect(page.get_by_role("menuitem")).to_have_text(["Boards"])
        page.close()
