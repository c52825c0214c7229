"""The frame of the page: its screens, the way in, live changes, and a gateway that goes and comes back."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from harness import serving, toy, write_config
from page import DESKTOP, PHONE, Visit, gateway, pegboard, rest, visiting

SCREENS = [
    "",
    "servers",
    "tools",
    "calls",
    "calls?tab=numbers",
    "memory",
    "chats",
    "tasks",
    "clients",
    "sign-ins",
    "access",
]

# Clicks are held as long as a test wants, and for how long they would be is noted.
_HOLDING = """
window.held = [];
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, time) {
  const held = animate.call(this, frames, 1e7);
  window.held.push({ time, end: () => held.finish() });
  return held;
};
"""
_END = "held.splice(0).map((each) => { each.end(); return each.time; })"
_FOCUS = "new Promise((done) => { dispatchEvent(new Event('focus')); %s; setTimeout(done, 100); })"
_COMINGS = ("0", _FOCUS % "", "document.dispatchEvent(new Event('visibilitychange'))")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with a server that works and one that does not."""
    servers = {"one": toy(name="one"), "broken": {"command": "/nonexistent/program"}}
    folder = tmp_path_factory.mktemp("frame")
    (folder / "openspec/changes").mkdir(parents=True)
    with gateway(folder, servers, workspace=str(folder)) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        yield address


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_every_screen_is_accessible(context: BrowserContext, url: str, scheme: Any, size: Any) -> None:
    """Each has a heading, a title of its own, no finding of axe-core, and fits the window."""
    with visiting(context, url) as visit:
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        visit.page.set_viewport_size(size)
        titles = set[str]()
        for screen in SCREENS:
            visit.open(screen)
            expect(visit.page.get_by_text("Reading …")).to_have_count(0)
            assert visit.page.locator("h1").count() == 1
            titles.add(visit.page.title())
            visit.check_accessible()
        assert len(titles) == len(SCREENS) - 1


def test_the_keyboard_reaches_everything(context: BrowserContext, url: str) -> None:
    """The first stop skips the navigation; a link of it moves the focus to the new screen's heading."""
    with visiting(context, url) as visit:
        page = visit.open()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        page.get_by_role("link", name="Servers", exact=True).first.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_focused()


def test_a_phone_has_a_menu(context: BrowserContext, url: str) -> None:
    """It opens by a button, which says whether it is open, and closes when a screen was chosen."""
    with visiting(context, url) as visit:
        visit.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})  # pyright: ignore[reportArgumentType]
        page = visit.open()
        menu = page.get_by_role("button", name="Menu")
        expect(menu).to_have_attribute("aria-expanded", "false")
        menu.click()
        expect(menu).to_have_attribute("aria-expanded", "true")
        page.get_by_role("navigation", name="Screens").get_by_role("link", name="Tools").click()
        expect(page.get_by_role("heading", level=1, name="Tools")).to_be_visible()
        expect(menu).to_have_attribute("aria-expanded", "false")


def test_an_address_that_is_none_says_so(context: BrowserContext, url: str) -> None:
    """A link to a screen that there is not ends at a heading, and the rest of the page works."""
    with visiting(context, url) as visit:
        page = visit.open("nowhere")
        expect(page.get_by_text("There is no such screen.")).to_be_visible()
        page.get_by_role("link", name="Calls", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="Calls")).to_be_visible()


def test_two_tabs_see_the_same(context: BrowserContext, tmp_path: Path) -> None:
    """What one does, and what happens to the config file, both see at once."""
    with gateway(tmp_path, {"one": toy(name="one")}) as address, visiting(context, address) as first:
        with visiting(context, address) as second:
            first.open()
            second.open()
            config = tmp_path / "pegboard.json"
            text = json.loads(config.read_text("utf-8"))
            text["mcpServers"]["mistaken"] = {"comand": "x"}
            config.write_text(json.dumps(text), "utf-8")
            for visit in (first, second):
                expect(visit.page.get_by_role("link", name="mistaken")).to_be_visible()


def test_a_gateway_that_restarts_is_one_quiet_line(context: BrowserContext, tmp_path: Path) -> None:
    """What was there stays, one line says that nobody answers, and then everything is read anew."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy(name="one")}, toolsets=["memory"])
    with serving(config) as (process, mcp):
        address = mcp.removesuffix("/mcp")
        port = int(address.rsplit(":", 1)[1])
        visit = Visit(context.new_page(), address)
        page = visit.open()
        status = page.get_by_role("status").filter(has_text="Live")
        expect(status).to_be_visible()
        # What has never been read cannot stay.
        expect(page.get_by_text("Reading …")).to_have_count(0)
        process.kill()
        process.wait(20)
        expect(page.get_by_text("The gateway does not answer. Trying again …")).to_have_count(1)
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        assert page.locator(".notice").count() == 0
        assert page.locator(".problem").count() == 0
        # On a phone it is not in the menu alone.
        lost = page.get_by_text("The gateway does not answer. Trying again …")
        page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        expect(page.get_by_role("link", name="Servers", exact=True)).to_be_hidden()
        expect(lost).to_be_in_viewport()
        visit.check_accessible()
        page.get_by_role("button", name="Menu").click()
        expect(page.get_by_role("link", name="Servers", exact=True)).to_be_visible()
        expect(lost).to_be_visible()
        page.get_by_role("button", name="Menu").click()
        write_config(config, {"one": toy(name="one"), "mistaken": {"comand": "x"}}, toolsets=["memory"])
        with serving(config, port):
            expect(status).to_be_visible()
            expect(page.get_by_role("link", name="mistaken")).to_be_visible()
            # It takes no room while all is well.
            assert page.evaluate("document.querySelector('.bar').offsetHeight") < 60
        assert visit.strangers == []
        # The browser itself says that it could not connect; the page says nothing.
        assert [each for each in visit.complaints if "ERR_" not in each and "Failed to load" not in each] == []
        page.close()


def test_a_token_is_given_once(context: BrowserContext, tmp_path: Path) -> None:
    """Where the gateway asks who comes, the page asks for a token, keeps it where no script reads it, and shows what
    that token may see: no screen for admins, no server that its rule hides."""
    servers = {"one": toy(name="one"), "hidden": toy(name="hidden")}
    with gateway(tmp_path, servers, auth={"required": True}) as address:
        token = pegboard(tmp_path / "pegboard.json", "token", "add", "weak", "--server", "one")
        token = next(word for word in token.split() if word.startswith("pgb_"))
        visit = Visit(context.new_page(), address)
        page = visit.open()
        expect(page.get_by_role("heading", name="Sign in to Pegboard")).to_be_visible()
        visit.check_accessible()
        page.get_by_label("Token").fill("pgb_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert").filter(has_text="token")).to_be_visible()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        assert page.evaluate("document.cookie") == ""
        assert page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"
        [cookie] = context.cookies()
        assert cookie.get("httpOnly") is True
        assert cookie.get("sameSite") == "Strict"
        assert token not in str(cookie)
        places = page.get_by_role("navigation", name="Screens")
        expect(places.get_by_role("link", name="Access")).to_have_count(0)
        expect(places.get_by_role("link", name="Clients")).to_have_count(0)
        visit.open("servers")
        expect(page.get_by_role("link", name="one", exact=True)).to_be_visible()
        expect(page.get_by_text("hidden")).to_have_count(0)
        page.reload()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in to Pegboard")).to_be_visible()
        assert visit.strangers == []
        # What a browser says by itself of an answer of 401.
        assert [each for each in visit.complaints if "401" not in each] == []
        page.close()


def test_a_removed_token_ends_the_visit(context: BrowserContext, tmp_path: Path) -> None:
    """Whoever is not let in any more is asked for a token again, without a reload."""
    config = tmp_path / "pegboard.json"
    with gateway(tmp_path, {}, auth={"required": True}) as address:
        token = next(word for word in pegboard(config, "token", "add", "gone").split() if word.startswith("pgb_"))
        visit = Visit(context.new_page(), address)
        page = visit.open()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        pegboard(config, "token", "remove", "gone")
        expect(page.get_by_role("heading", name="Sign in to Pegboard")).to_be_visible()
        page.close()


def test_nobody_frames_the_page(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """A page of another site that puts it into a frame has an empty one."""
    page = context.new_page()
    page.goto("data:text/html,<title>other</title>")
    page.evaluate(
        "(to) => { const frame = document.createElement('iframe'); frame.src = to; document.body.append(frame); }", url
    )
    frame = page.frames[-1]
    frame.wait_for_load_state()
    # What the browser shows in place of what it was refused.
    assert frame.url.startswith("chrome-error:")
    assert frame.get_by_text("Pegboard").count() == 0
    page.close()


def test_no_javascript_is_no_blank_page(chromium: Any, url: str) -> None:
    """Without scripts it says where else the same is to be had."""
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    assert "pegboard --help" in page.inner_text("body")
    context.close()


def test_a_click_that_was_meant_for_another_page_does_nothing(context: BrowserContext, url: str) -> None:
    """When the page has come, or somebody comes back to it, pointers do nothing for a moment, whatever motion is wished
    for. Keys do."""
    with visiting(context, url) as visit:
        visit.page.emulate_media(reduced_motion="reduce")
        visit.page.add_init_script(_HOLDING)
        page = visit.open("servers")
        link = page.get_by_role("link", name="Add a server")
        box = link.bounding_box() or pytest.fail("it is not there")
        for coming in _COMINGS:
            page.evaluate(coming)
            page.mouse.click(box["x"] + 9, box["y"] + 9)
            assert page.evaluate("location.hash") == "#/servers"
            assert all(500 <= time <= 1500 for time in page.evaluate(_END) or [0])
        # A click that brings the window to the front means what is under it.
        page.evaluate(_FOCUS % "dispatchEvent(new Event('pointerdown'))")
        page.mouse.click(box["x"] + 9, box["y"] + 9)
        expect(page.get_by_role("heading", level=1, name="Add a server")).to_be_visible()
        page.go_back()
        page.evaluate(_COMINGS[1])
        link.press("Enter")
        expect(page.get_by_role("heading", level=1, name="Add a server")).to_be_visible()


def test_a_long_error_leaves_its_button_in_sight(context: BrowserContext, url: str) -> None:
    """On a phone it takes half of the screen at most, and scrolls."""
    refusal = json.dumps({"success": False, "error": {"message": "so it is said at length " * 200}})
    with visiting(context, url) as visit:
        visit.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        page = visit.open("servers")
        page.route("**/api/servers/one/refresh", lambda route: route.fulfill(status=502, body=refusal))
        page.get_by_role("button", name="More for one").click()
        page.get_by_role("menuitem", name="Refresh its tools").click()
        notice = page.get_by_role("alert").filter(has_text="at length")
        expect(notice).to_be_visible()
        box = notice.bounding_box() or pytest.fail("it is not there")
        assert box["height"] <= PHONE["height"] / 2
        button = page.get_by_role("button", name="Dismiss")
        expect(button).to_be_in_viewport(ratio=1)
        visit.check_accessible()
        notice.locator(".notice").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        expect(button).to_be_in_viewport(ratio=1)
        button.click()
        expect(notice).to_have_count(0)
        visit.complaints.clear()  # The browser says by itself that an answer was 502.
