"""Hostile, long and many: what others write stays text and in its place, and no screen draws everything."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from harness import toy
from page import DESKTOP, PHONE, Visit, gateway, rest, visiting
from servers.toy import Settings
from servers.toy_http import http_toy

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script></td></table>\"'><a href=javascript:alert(3)>x</a>"
TURNED = "\u202eturned\u2066 around\u2069 \u200bunseen"
GERMAN = "Donaudampfschifffahrtsgesellschaftskapitänsmützenüberzugsverordnung" * 3
CHINESE = "工具" * 400
ARABIC = "مرحبا بالعالم " * 20
LONG = "x" * 10_000
EVIL = f"{MARKUP} {TURNED} {GERMAN} {CHINESE} {ARABIC}"
TEXTS = {"markup": MARKUP, "turned": TURNED, "german": GERMAN, "chinese": CHINESE, "arabic": ARABIC, "long": LONG}
SCHEMA = {"type": "object", "properties": {EVIL[:900]: {"type": "string", "description": EVIL}}}
PROGRAM = 'cat "$0" >&2; exec "$@"'
SCREENS = [
    "",
    "servers",
    "servers/evil",
    "servers/evil?tab=offers",
    "servers/evil?tab=config",
    "servers/noisy?tab=log",
    "servers/noisy?tab=config",
    "servers/evil?tab=calls",
    "servers/fails",
    "servers/fails?tab=log",
    "tools",
    "tools/evil__markup",
    "calls",
    "calls?tab=numbers",
    "calls?tool=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    "servers/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    "%3Cimg%20src%3Dx%3E/%2F/..%2F%00",
]
# What a screen draws of a list before somebody wants more.
MOST_ROWS = 200
TOOLS = 5000
SERVERS = 500


def tool(name: str, text: str) -> dict[str, Any]:
    """A tool that says this wherever it may say something."""
    annotations = {"title": text, "readOnlyHint": True}
    return {"name": name, "title": text, "description": text, "inputSchema": SCHEMA, "annotations": annotations}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with servers that write what breaks pages, wherever they may write, and a client that does so too."""
    folder = tmp_path_factory.mktemp("evil")
    (folder / "said.txt").write_text("\n".join([*TEXTS.values(), EVIL]), "utf-8")
    evil = Settings(
        name="evil",
        features=["tools", "resources", "prompts"],
        instructions=EVIL * 3,
        resource_uris=["javascript:alert(4)", f"https://example.com/{GERMAN}"],
        raw_tools=[*(tool(name, text) for name, text in TEXTS.items()), tool(MARKUP, EVIL), {"name": EVIL}],
        results={"markup": {"content": [{"type": "text", "text": EVIL}], "isError": True}},
    )
    start = toy(name="noisy")
    args = ["-c", PROGRAM, str(folder / "said.txt"), start["command"], *start["args"]]
    servers = {
        "noisy": {"command": "sh", "args": args, "env": {GERMAN[:100]: "x"}},
        "fails": toy(name="fails", list_fails=EVIL),
        GERMAN[:60]: toy(name="long"),
    }
    with (
        http_toy(evil) as listening,
        gateway(folder, {"evil": entry(listening.url), **servers}, audit={"arguments": "values"}) as url,
    ):
        for name in ("evil", "noisy", "fails"):
            with contextlib.suppress(urllib.error.HTTPError):
                rest(f"{url}/api/servers/{name}/refresh", "POST", {})
        call_as(url, MARKUP + TURNED)
        yield url


def entry(url: str) -> dict[str, Any]:
    """A server whose hostile letters are let through."""
    return {"url": url, "unicode": "allow"}


def call_as(url: str, client: str) -> None:
    """A call over MCP by a client of this name."""
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client, "version": EVIL}}
    _, session = ask_mcp(url, "initialize", info, "")
    answer, _ = ask_mcp(url, "tools/call", {"name": "evil__markup", "arguments": {EVIL[:900]: EVIL}}, session)
    assert "result" in answer


def ask_mcp(url: str, method: str, params: Any, session: str) -> tuple[str, str]:
    """One request as a client makes it; the answer as it came, and the session."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    headers |= {"mcp-session-id": session} if session else {}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/mcp", body, headers), timeout=30) as answer:
        return answer.read().decode(), answer.headers.get("mcp-session-id", "")


def check_harmless(page: Page) -> None:
    """No element came of a text, no link leads into the page itself, and nothing is wider than the window."""
    assert page.locator("img[src=x], script:not([src]), main [onerror], a[href^='javascript:' i]").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{wide} px wider than the window"


def test_what_others_write_stays_text(context: BrowserContext, evil: str) -> None:
    """At every screen, wide and narrow: markup is shown as it is written, a long word stays in its place."""
    with visiting(context, evil) as visit:
        page = visit.page
        page.on("dialog", lambda dialog: visit.complaints.append(f"a dialog: {dialog.message}"))
        for screen in SCREENS:
            page.set_viewport_size(DESKTOP)  # pyright: ignore[reportArgumentType]
            visit.open(screen)
            expect(page.get_by_text("Reading …")).to_have_count(0)
            check_harmless(page)
            page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
            check_harmless(page)
            visit.check_accessible()
            # What a browser says by itself of an answer of 404, where a screen's address names nothing.
            if "%3C" in screen:
                visit.complaints[:] = [each for each in visit.complaints if "404" not in each and "400" not in each]
            assert visit.complaints == [], screen


def test_hostile_texts_are_there_to_be_read(context: BrowserContext, evil: str) -> None:
    """What is harmless is not hidden: the words of a server are shown as they are, in their own direction."""
    with visiting(context, evil) as visit:
        page = visit.open("servers/evil")
        expect(page.get_by_role("table").get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="arabic", exact=True))
        expect(row).to_contain_text("مرحبا")
        page.get_by_text("on what it offers").click()
        expect(page.get_by_role("listitem").filter(has_text="<img src=x").first).to_be_visible()
        visit.open("servers/noisy?tab=log")
        expect(page.get_by_label("Log of noisy")).to_contain_text("<img src=x onerror=alert(1)>")
        visit.open("servers/evil?tab=offers")
        expect(page.get_by_text("javascript:alert(4)").first).to_be_visible()
        visit.open("calls")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="evil__markup")).first
        expect(row).to_contain_text("<img src=x")
        row.get_by_role("button", name="Details").click()
        expect(page.get_by_role("dialog")).to_contain_text("<img src=x onerror=alert(1)>")
        # In JSON nothing turns around what stands beside it.
        given = page.get_by_role("dialog").locator("pre").last
        expect(given).to_contain_text("\\u202eturned")
        assert "\u202e" not in given.inner_text()
        check_harmless(page)
        visit.check_accessible()


def test_an_error_of_a_server_stays_text(context: BrowserContext, evil: str) -> None:
    """Where it is said what went wrong: in the notice of an action, at the server, and on the overview."""
    with visiting(context, evil) as visit:
        page = visit.open("servers/fails")
        page.get_by_role("button", name="More for fails").click()
        page.get_by_role("menuitem", name="Refresh its tools").click()
        expect(page.locator(".notice.bad")).to_contain_text("<img src=x")
        check_harmless(page)
        page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        check_harmless(page)
        visit.check_accessible()
        # What a browser says by itself of an answer that is an error.
        visit.complaints[:] = [each for each in visit.complaints if "Failed to load resource" not in each]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with 5,000 tools of one server, and 500 servers that are off, wrong or away."""
    listed = [
        {"name": f"tool_{number}", "description": f"Does thing {number}. " * 20, "inputSchema": {"type": "object"}}
        for number in range(TOOLS)
    ]
    kinds: list[dict[str, Any]] = [
        {"command": "/nonexistent/program", "enabled": False},
        {"command": "/nonexistent/program"},
        {"comand": "x"},
        {"url": "http://127.0.0.1:9/mcp"},
    ]
    servers = {f"server_{number}": kinds[number % len(kinds)] for number in range(SERVERS)}
    with http_toy(Settings(name="big", raw_tools=listed)) as big:
        with gateway(tmp_path_factory.mktemp("many"), {"big": {"url": big.url}, **servers}) as url:
            rest(f"{url}/api/servers/big/refresh", "POST", {})
            yield url


def test_a_screen_of_thousands_draws_the_first(context: BrowserContext, many: str) -> None:
    """It is there, it fits a wide window and a narrow one, and has no more rows than anybody reads."""
    with visiting(context, many) as visit:
        for screen in ("", "servers", "servers/big", "tools", "calls", "calls?tab=numbers", "access"):
            visit.page.set_viewport_size(DESKTOP)  # pyright: ignore[reportArgumentType]
            page = visit.open(screen)
            expect(page.get_by_text("Reading …")).to_have_count(0)
            check_harmless(page)
            page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
            check_harmless(page)
            assert page.get_by_role("row").count() <= MOST_ROWS + 1, screen
            assert page.locator("main *").count() < 8000, screen


def test_all_of_them_are_within_reach(context: BrowserContext, many: str) -> None:
    """The last one is found by its name, the count is of all, and more rows come when somebody wants them."""
    with visiting(context, many) as visit:
        page = visit.open("servers/big")
        expect(page.get_by_role("row")).to_have_count(MOST_ROWS + 1)
        page.get_by_role("button", name="Show more").click()
        expect(page.get_by_role("row")).to_have_count(2 * MOST_ROWS + 1)
        page.get_by_label("Find").fill("tool_4999")
        expect(page.get_by_role("row")).to_have_count(2)
        visit.open("servers")
        expect(page.get_by_text("501 servers,")).to_be_visible()
        page.get_by_label("Find").fill("server_499")
        expect(page.get_by_role("row")).to_have_count(2)
        visit.open()
        expect(page.get_by_role("link", name="more servers")).to_be_visible()


def test_a_page_of_thousands_changes_live(chromium: Browser, many: str) -> None:
    """A server that is switched on among 500 is another a moment later, and stands where it stood in the window."""
    context = chromium.new_context(viewport={"width": DESKTOP["width"], "height": DESKTOP["height"]})
    visit = Visit(context.new_page(), many)
    page = visit.open("servers?q=server_4")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="server_44", exact=True))
    expect(row).to_contain_text("disabled")
    # Rows above it may grow meanwhile, as other servers turn out to be away: the browser scrolls by as much.
    top = row.evaluate("row => { row.scrollIntoView({ block: 'start' }); return row.getBoundingClientRect().top; }")
    rest(f"{many}/api/servers/server_44/enable", "POST", {})
    expect(row).not_to_contain_text("disabled")
    assert abs(row.evaluate("row => row.getBoundingClientRect().top") - top) <= 2
    assert visit.complaints == []
    context.close()
