"""The overview at the page: what needs somebody first, how much there is, what happens; and the way in where there is
nothing yet."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from harness import serving, toy, write_config
from page import PHONE, gateway, rest, visiting

GONE = {"command": "/nonexistent/program"}
# As many servers in trouble are named; of the others it is said how many there are.
NAMED = 20
REFRESH = """fetch("/api/servers/gone/refresh", {method: "POST", headers: {"content-type": "application/json"}})"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the config is."""
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Generator[str]:
    """A gateway with a server that works, one that cannot be started, one with a mistake, and one that is off."""
    servers = {
        "one": toy(name="one", tools=["add"]),
        "gone": GONE,
        "mistaken": {"comand": "x"},
        "off": {**toy(name="off"), "enabled": False},
    }
    with gateway(folder, servers) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        yield address


def call(url: str, tool: str) -> None:
    """A call by a program of this machine."""
    rest(f"{url}/api/tools/{tool}/call", "POST", {"arguments": {}})


def attention(page: Page) -> Locator:
    """What needs somebody."""
    return page.get_by_role("region", name="Needs attention")


def card(page: Page, title: str) -> Locator:
    """A figure, which leads to its screen."""
    return page.get_by_role("link").filter(has=page.get_by_role("heading", name=title, exact=True))


def test_what_needs_somebody_comes_first(context: BrowserContext, url: str, folder: Path) -> None:
    """Each with its state, its reason and the way to what helps; what was mended is gone without a reload, and a config
    file that cannot be taken over is said with its place."""
    with visiting(context, url) as visit:
        page = visit.open()
        mistaken = attention(page).locator(".attention").filter(has_text="mistaken")
        expect(mistaken).to_contain_text("invalid")
        expect(mistaken).to_contain_text("is not a key")
        expect(attention(page)).not_to_contain_text("off")
        assert page.get_by_role("heading", level=2).first.inner_text() == "Needs attention"
        mistaken.get_by_role("link", name="See its config").click()
        expect(page.get_by_role("heading", level=1, name="mistaken")).to_be_visible()
        page.go_back()
        config = folder / "pegboard.json"
        data = json.loads(config.read_text("utf-8"))
        del data["mcpServers"]["mistaken"]
        config.write_text(json.dumps(data), "utf-8")
        expect(mistaken).to_have_count(0)
        config.write_text('{"mcpServers": {', "utf-8")
        expect(attention(page)).to_contain_text("The config file was not taken over")
        expect(attention(page)).to_contain_text(re.compile(r"pegboard\.json:\d+:\d+|line \d+"))
        config.write_text(json.dumps(data), "utf-8")
        expect(page.get_by_text("The config file was not taken over")).to_have_count(0)


def test_a_server_that_fails_leads_to_its_log(context: BrowserContext, url: str) -> None:
    """It is named as soon as somebody tried it."""
    with visiting(context, url) as visit:
        page = visit.open()
        gone = attention(page).locator(".attention").filter(has=page.get_by_role("link", name="gone", exact=True))
        page.evaluate(REFRESH)
        expect(gone).to_contain_text("unreachable")
        expect(gone).to_contain_text("there is no program at")
        visit.complaints.clear()  # The browser says by itself that an answer was 503.
        gone.get_by_role("link", name="See its log").click()
        expect(page.get_by_role("link", name="Log", exact=True)).to_have_attribute("aria-current", "page")


def test_figures_lead_to_their_screens_and_follow(context: BrowserContext, url: str) -> None:
    """Servers that are ready, tools, what a client's first prompt has of them, and calls with their errors."""
    with visiting(context, url) as visit:
        page = visit.open()
        expect(card(page, "Servers")).to_contain_text("2 of 3 ready")
        expect(card(page, "Tools")).to_contain_text(re.compile(r"\d+"))
        expect(card(page, "A client's first prompt")).to_contain_text(re.compile(r"\d+ % less than every tool"))
        expect(card(page, "Calls of the last day").locator(".figure")).to_have_text("0")
        call(url, "one__add")
        call(url, "one__add")
        expect(card(page, "Calls of the last day").locator(".figure")).to_have_text("2")
        expect(page.get_by_role("img", name="Calls over the last day")).to_be_visible()
        latest = page.get_by_role("table", name="Latest calls").get_by_role("row")
        expect(latest).to_have_count(3)
        expect(latest.nth(1)).to_contain_text("one__add")
        for title, place in (
            ("Servers", "servers"),
            ("Calls of the last day", "calls?tab=numbers"),
            ("Tools", "tools"),
        ):
            assert card(page, title).get_attribute("href") == f"#/{place}"
        card(page, "Calls of the last day").click()
        expect(page.get_by_role("heading", level=1, name="Calls")).to_be_visible()


def test_the_latest_calls_are_eight(context: BrowserContext, url: str) -> None:
    """The newest, whatever came before; the others are one step away."""
    with visiting(context, url) as visit:
        page = visit.open()
        expect(page.get_by_text("No calls yet. Connect a client, or try a tool.")).to_be_visible()
        visit.open("tools/one__add")
        expect(page.get_by_text("No calls yet.")).to_have_text("No calls yet.")
        page = visit.open()
        for _ in range(9):
            call(url, "one__add")
        call(url, "one__echo")
        latest = page.get_by_role("table", name="Latest calls").get_by_role("row")
        expect(latest.nth(1)).to_contain_text("one__echo")
        expect(latest).to_have_count(9)
        page.get_by_role("link", name="All calls").click()
        expect(page.get_by_role("heading", level=1, name="Calls")).to_be_visible()


def test_many_servers_in_trouble_are_counted(context: BrowserContext, tmp_path: Path) -> None:
    """The first are named, and of the others it is said how many there are, in a list that can be read."""
    servers = {f"wrong{number}": {"comand": "x"} for number in range(NAMED + 30)}
    with gateway(tmp_path, servers) as address, visiting(context, address) as visit:
        page = visit.open()
        expect(attention(page).locator(".attention")).to_have_count(NAMED)
        link = attention(page).get_by_role("link", name="30 more servers")
        link.click()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        expect(page.get_by_text("50 servers,")).to_be_visible()


def test_an_empty_gateway_is_the_way_in(context: BrowserContext, tmp_path: Path) -> None:
    """Servers that clients of this machine have are counted and named; each of the four ways leads somewhere, and once
    there is a server the overview is one."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor/mcp.json").write_text(
        json.dumps({"mcpServers": {"theirs": GONE, "others": {"command": "/x"}}}), "utf-8"
    )
    config = write_config(tmp_path / "pegboard.json", {}, toolsets=["memory"])
    with serving(config, HOME=str(home)) as (_, mcp):
        address = mcp.removesuffix("/mcp")
        with visiting(context, address) as visit:
            page = visit.open()
            start = page.get_by_role("region", name="Begin here")
            expect(start).to_contain_text("2 servers found in Cursor.")
            expect(start.get_by_role("link", name="Look at them")).to_have_attribute("href", "#/add?way=import")
            expect(page.get_by_role("region", name="Latest calls")).to_have_count(0)
            visit.check_accessible()
            visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
            visit.check_accessible()
            for name in ("Paste", "Search", "Look at them"):
                start.get_by_role("link", name=name, exact=True).click()
                expect(page.get_by_role("heading", level=1, name="Add a server")).to_be_visible()
                page.go_back()
            assert start.get_by_role("link", name="Choose a client").get_attribute("href") == "#/clients"
            write_config(config, {"one": toy(name="one")}, toolsets=["memory"])
            expect(start).to_have_count(0)
            latest = page.get_by_role("region", name="Latest calls")
            assert latest.get_by_role("link", name="try a tool").get_attribute("href") == "#/tools"
            # No client is connected yet.
            page.get_by_role("link", name="Choose a client").click()
            expect(page.get_by_role("heading", level=1, name="Clients")).to_be_visible()


def test_where_no_client_has_servers_pasting_is_offered_first(context: BrowserContext, tmp_path: Path) -> None:
    """Nothing is said to be found that is not."""
    (tmp_path / "home").mkdir()
    config = write_config(tmp_path / "pegboard.json", {})
    with serving(config, HOME=str(tmp_path / "home")) as (_, mcp):
        with visiting(context, mcp.removesuffix("/mcp")) as visit:
            page = visit.open()
            start = page.get_by_role("region", name="Begin here")
            expect(start.get_by_role("link", name="Look for servers")).to_be_visible()
            expect(start.locator("a.main")).to_have_text("Paste")


def test_the_address_for_clients_is_copied(context: BrowserContext, url: str) -> None:
    """It is the one at which the page itself was reached."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visiting(context, url) as visit:
        page = visit.open()
        section = page.get_by_role("region", name="Address for MCP clients")
        expect(section).to_contain_text(f"{url}/mcp")
        section.get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == f"{url}/mcp"


def test_a_gateway_that_is_open_says_so(context: BrowserContext, tmp_path: Path) -> None:
    """Whoever lets in everybody is told at each look."""
    config = write_config(tmp_path / "pegboard.json", {})
    with serving(config, options=("--host", "0.0.0.0", "--insecure")) as (_, mcp):
        address = mcp.removesuffix("/mcp").replace("0.0.0.0", "127.0.0.1")
        with visiting(context, address) as visit:
            page = visit.open()
            expect(attention(page)).to_contain_text("Everybody who reaches this gateway is let in, without a token.")
