"""Servers at the page: their states, everything that can be done with one, and the ways to add more."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from auth.provider import open_provider
from harness import toy
from login.protected import open_protected
from page import DESKTOP, PHONE, gateway, rest, visiting

SECRET = "tulip-tulip-tulip"
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "Überlänge" * 30 + "工具" * 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the config is."""
    return tmp_path


@pytest.fixture
def url(folder: Path) -> Generator[str]:
    """A gateway with a server that works, one that cannot start, one with a mistake, and one that is switched off."""
    servers = {
        "one": toy(
            {"env": {"API_KEY": SECRET, "PLACE": "${HOME}"}, "tools": {"deny": ["ech*"]}},
            name="one",
            tools=["add", "add_more"],
        ),
        "broken": {"command": "/nonexistent/program"},
        "mistaken": {"comand": "x"},
        "off": {**toy(name="off"), "enabled": False},
    }
    with gateway(folder, servers) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        yield address


def entries(folder: Path) -> dict[str, Any]:
    """What the config file has."""
    return json.loads((folder / "pegboard.json").read_text("utf-8"))["mcpServers"]


def row(page: Page, name: str) -> Any:
    """A server's row."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def choose(page: Page, name: str, words: str) -> None:
    """An entry of a server's menu."""
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("menuitem", name=words, exact=True).click()


def test_states_change_as_they_happen(context: BrowserContext, url: str) -> None:
    """Each has its word and its reason; a server that is asked and cannot start changes without a reload."""
    with visiting(context, url) as visit:
        page = visit.open("servers")
        expect(row(page, "one")).to_contain_text("ready")
        expect(row(page, "off")).to_contain_text("disabled")
        expect(row(page, "mistaken")).to_contain_text("is not a key")
        choose(page, "broken", "Refresh its tools")
        expect(row(page, "broken")).to_contain_text("there is no program at")
        expect(page.locator(".notice.bad")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that an answer was 503.
        page.get_by_label("Find").fill("on")
        expect(row(page, "broken")).to_have_count(0)
        expect(row(page, "one")).to_be_visible()
        assert "q=on" in page.url
        page.get_by_label("Find").fill("")
        page.get_by_label("State").select_option("disabled")
        expect(page.get_by_role("row")).to_have_count(2)


def test_a_server_is_switched_and_removed_and_comes_back(context: BrowserContext, url: str, folder: Path) -> None:
    """Everything is written to the config file, and a removal is undone byte for byte."""
    with visiting(context, url) as visit:
        page = visit.open("servers")
        choose(page, "off", "Enable")
        expect(row(page, "off")).to_contain_text("ready")
        choose(page, "off", "Disable")
        expect(row(page, "off")).to_contain_text("disabled")
        before = (folder / "pegboard.json").read_bytes()
        choose(page, "one", "Remove")
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert (folder / "pegboard.json").read_bytes() == before
        choose(page, "one", "Remove")
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(row(page, "one")).to_have_count(0)
        assert "one" not in entries(folder)
        page.get_by_role("button", name="Undo").click()
        expect(row(page, "one")).to_be_visible()
        assert (folder / "pegboard.json").read_bytes() == before
        choose(page, "one", "Restart")
        expect(page.get_by_text(re.compile(r"one has \d+ tools"))).to_be_visible()


def test_a_server_is_brought_back_at_its_address(context: BrowserContext, url: str, folder: Path) -> None:
    """Also when the notice is gone; once nothing is kept of it, the gateway says so."""
    before = (folder / "pegboard.json").read_bytes()
    with visiting(context, url) as visit:
        page = visit.open("servers/one")
        choose(page, "one", "Remove")
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_text("There is no server of this name now.")).to_be_visible()
        page.reload()
        visit.check_accessible()
        page.get_by_role("button", name="Bring it back").click()
        expect(page.get_by_role("button", name="More for one")).to_be_visible()
        assert (folder / "pegboard.json").read_bytes() == before
        page = visit.open("servers/never")
        page.get_by_role("button", name="Bring it back").click()
        expect(page.get_by_role("alert")).to_contain_text("it is kept for ten minutes")
        visit.complaints.clear()  # The browser says by itself that answers were 404.


def test_the_menu_is_used_by_keyboard(context: BrowserContext, url: str) -> None:
    """Arrows move in it, Escape closes it, and the focus is back at its button."""
    with visiting(context, url) as visit:
        page = visit.open("servers")
        button = page.get_by_role("button", name="More for one")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="Refresh its tools")).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("menuitem", name="Restart")).to_be_focused()
        page.keyboard.press("End")
        expect(page.get_by_role("menuitem", name="Remove")).to_be_focused()
        page.keyboard.press("Escape")
        expect(button).to_be_focused()
        expect(page.get_by_role("menu")).to_have_count(0)


def test_tools_are_denied_and_allowed_in_bulk(context: BrowserContext, url: str, folder: Path) -> None:
    """A pattern gives way to the single names that it meant; undo puts the list back."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one")
        denied = page.get_by_role("row").filter(has_text="denied")
        expect(denied.first).to_be_visible()
        known = denied.count()
        page.get_by_label("Find").fill("add")
        page.get_by_role("button", name=re.compile("Choose all")).click()
        page.get_by_role("button", name=re.compile(r"^Deny \d")).click()
        expect(page.get_by_text("2 tools denied.")).to_be_visible()
        expect(denied).to_have_count(2)
        assert "ech*" in entries(folder)["one"]["tools"]["deny"]
        assert len(entries(folder)["one"]["tools"]["deny"]) == 3
        page.get_by_role("button", name="Undo").click()
        page.get_by_label("Find").fill("")
        expect(denied).to_have_count(known)
        assert entries(folder)["one"]["tools"]["deny"] == ["ech*"]
        page.get_by_role("checkbox", name="Choose echo", exact=True).check()
        page.get_by_role("button", name=re.compile(r"^Allow \d")).click()
        expect(page.get_by_role("link", name="echo", exact=True)).to_be_visible()
        assert "ech*" not in entries(folder)["one"].get("tools", {}).get("deny", [])


def test_a_name_that_looks_like_a_pattern_means_itself(context: BrowserContext, tmp_path: Path) -> None:
    """Servers choose names. What is denied is denied, and nothing else; once it is allowed the list is as before."""
    names = ["wipe[all]", "wipea", "*", "safe?", "safer"]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    with gateway(tmp_path, {"odd": toy(name="odd", raw_tools=tools)}) as url, visiting(context, url) as visit:
        rest(f"{url}/api/servers/odd/refresh", "POST", {})
        page = visit.open("servers/odd")
        denied = page.get_by_role("row").filter(has_text="denied")
        for name, pattern in (("wipe[all]", "wipe[[]all]"), ("*", "[*]"), ("safe?", "safe[?]")):
            page.get_by_role("checkbox", name=f"Choose {name}", exact=True).check()
            page.get_by_role("button", name="Deny 1").click()
            expect(denied).to_have_count(1)
            expect(denied).to_contain_text(name)
            assert entries(tmp_path)["odd"]["tools"]["deny"] == [pattern]
            page.get_by_role("checkbox", name=f"Choose {name}", exact=True).check()
            page.get_by_role("button", name="Allow 1").click()
            expect(denied).to_have_count(0)
            assert "deny" not in entries(tmp_path)["odd"]["tools"]
            expect(page.get_by_text("single names")).to_have_count(0)


def test_undo_takes_back_what_was_done_and_no_more(context: BrowserContext, url: str, folder: Path) -> None:
    """What somebody else denied meanwhile stays; and what a pattern no longer means is said."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one")
        page.get_by_role("checkbox", name="Choose add", exact=True).check()
        page.get_by_role("button", name="Deny 1").click()
        expect(page.get_by_text("1 tool denied.")).to_be_visible()
        link = page.get_by_role("link", name="add", exact=True)
        expect(link).to_have_count(0)
        rest(f"{url}/api/servers/one", "PATCH", {"tools": {"deny": ["ech*", "add", "more_*"]}})
        page.get_by_role("button", name="Undo").click()
        expect(link).to_be_visible()
        assert entries(folder)["one"]["tools"]["deny"] == ["ech*", "more_*"]
        page.get_by_role("checkbox", name="Choose echo", exact=True).check()
        page.get_by_role("button", name="Allow 1").click()
        expect(page.get_by_text("1 tool allowed. In deny, single names stand for ech* now")).to_be_visible()
        expect(page.get_by_role("link", name="echo", exact=True)).to_be_visible()
        assert "ech*" not in entries(folder)["one"]["tools"]["deny"]
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("link", name="echo", exact=True)).to_have_count(0)
        assert sorted(entries(folder)["one"]["tools"]["deny"]) == ["ech*", "more_*"]


def test_what_is_taken_out_of_the_json_is_taken_out(context: BrowserContext, url: str, folder: Path) -> None:
    """Also within another object: nothing is saved by name alone. What was written for another entry than there is now
    is refused once."""
    digests: list[Any] = []

    def answer(route: Route) -> None:
        if route.request.method == "GET":
            given = route.fetch().json()
            route.fulfill(json={**given, "data": {**given["data"], "digest": "as it was"}})
            return
        digests.append(json.loads(route.request.post_data or "{}").get("digest"))
        if len(digests) > 1:
            route.continue_()
        else:
            route.fulfill(status=409, json={"success": False, "error": {"message": "another entry"}})

    with visiting(context, url) as visit:
        visit.page.route("**/api/servers/one", answer)
        page = visit.open("servers/one?tab=config")
        page.get_by_label("Everything else").fill('{"tools": {"allow": ["*"]}}')
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("another entry")).to_be_visible()
        assert entries(folder)["one"]["tools"] == {"deny": ["ech*"]}
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        assert entries(folder)["one"]["tools"] == {"allow": ["*"]}
        assert digests == ["as it was", None]
        visit.complaints.clear()  # The browser says by itself that an answer was 409.


def test_an_entry_is_changed_and_its_secrets_are_never_shown(context: BrowserContext, url: str, folder: Path) -> None:
    """Of a secret the page knows that it is set; another value, a new one and a removal go one way."""
    with visiting(context, url) as visit:
        bodies: list[str] = []
        visit.page.on(
            "response", lambda answer: bodies.append(answer.text()) if "/api/servers/one" in answer.url else None
        )
        page = visit.open("servers/one?tab=config")
        expect(page.get_by_label("API_KEY", exact=True)).to_have_attribute("placeholder", "set; type to replace it")
        expect(page.get_by_label("PLACE", exact=True)).to_have_attribute("placeholder", "${HOME}")
        page.get_by_label("PLACE", exact=True).fill("elsewhere")
        page.get_by_label("New name").fill("FRESH")
        page.get_by_role("button", name="Add to Environment").click()
        page.get_by_label("FRESH", exact=True).fill("new")
        page.get_by_label("Everything else").fill('{"timeout": 12, "tools": {"deny": ["ech*"]}')
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
        page.get_by_label("Everything else").fill('{"timeout": 12, "tools": {"deny": ["ech*"]}}')
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        assert entries(folder)["one"]["env"] == {"API_KEY": SECRET, "PLACE": "elsewhere", "FRESH": "new"}
        assert entries(folder)["one"]["timeout"] == 12
        expect(page.get_by_label("FRESH", exact=True)).to_have_attribute("placeholder", "set; type to replace it")
        page.get_by_role("button", name="Remove FRESH").click()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("FRESH", exact=True)).to_have_count(0)
        assert "FRESH" not in entries(folder)["one"]["env"]
        assert bodies
        assert SECRET not in "".join(bodies)


def test_half_typed_changes_are_not_lost(context: BrowserContext, url: str, folder: Path) -> None:
    """Whoever leaves is asked first; what the file says meanwhile comes into the other fields; and a server that was
    renamed there is said to be gone, with the way to the others."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one?tab=config")
        page.get_by_label("Arguments, one a line").fill("half typed")
        page.get_by_role("link", name="Log", exact=True).click()
        question = page.get_by_role("dialog")
        expect(question).to_contain_text("What you wrote here would be lost.")
        question.get_by_role("button", name="Cancel").click()
        config = folder / "pegboard.json"
        data = json.loads(config.read_text("utf-8"))
        data["mcpServers"]["one"]["timeout"] = 34
        config.write_text(json.dumps(data), "utf-8")
        expect(page.get_by_label("Everything else")).to_have_value(re.compile("34"))
        expect(page.get_by_label("Arguments, one a line")).to_have_value("half typed")
        data["mcpServers"]["two"] = data["mcpServers"].pop("one")
        config.write_text(json.dumps(data), "utf-8")
        expect(page.get_by_text("There is no server of this name now.")).to_be_visible()
        expect(page.get_by_role("button", name="Try again")).to_have_count(0)
        page.get_by_role("link", name="All servers").click()
        expect(row(page, "two")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that answers were 404.


def test_a_server_without_tools_says_what_to_do(context: BrowserContext, url: str) -> None:
    """One that fails has its reason, the next step and the ways to it; one that is off is switched on; and neither has
    controls for tools that are not there."""
    with visiting(context, url) as visit:
        page = visit.open("servers/broken")
        page.get_by_role("button", name="Refresh").click()
        trouble = page.locator(".attention").filter(has_text="no program at")
        expect(trouble).to_contain_text("Check its command and its environment.")
        expect(trouble).not_to_contain_text("earlier time")
        expect(page.get_by_role("button", name=re.compile("Choose all"))).to_have_count(0)
        expect(trouble.get_by_role("button", name="Try now")).to_be_visible()
        expect(page.locator(".notice.bad")).to_be_visible()
        trouble.get_by_role("link", name="See its log").click()
        expect(page.get_by_role("link", name="Log", exact=True)).to_have_attribute("aria-current", "page")
        trouble.get_by_role("link", name="Edit its config").click()
        expect(page.get_by_label("Command")).to_be_visible()
        expect(page.locator(".notice.bad")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that an answer was 503.
        visit.check_accessible()
        page.get_by_role("link", name="Servers", exact=True).click()
        expect(page.locator(".notice")).to_have_count(0)
        visit.open("servers/off")
        expect(page.get_by_text("Disabled. Enable it to use its tools.")).to_be_visible()
        page.get_by_role("button", name="Enable it").click()
        expect(page.get_by_text(re.compile(r"[1-9]\d* tools? of"))).to_be_visible()
        expect(page.locator("main p").first).to_contain_text(re.compile(r"ready · stdio · 20.* ms · last seen"))


def test_what_an_action_said_is_left_behind(context: BrowserContext, url: str) -> None:
    """Undo of one server's tools is not shown at another; an error goes when something succeeds."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one")
        page.get_by_role("checkbox", name="Choose add", exact=True).check()
        page.get_by_role("button", name="Deny 1").click()
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
        page.get_by_role("link", name="Servers", exact=True).click()
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
        choose(page, "broken", "Refresh its tools")
        expect(page.locator(".notice.bad")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that an answer was 503.
        choose(page, "off", "Enable")
        expect(page.locator(".notice.bad")).to_have_count(0)
        visit.open("servers/one")
        choose(page, "one", "Remove")
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_role("button", name="Bring it back")).to_be_visible()
        visit.complaints.clear()  # Its own address is 404 from then on.
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("button", name="More for one")).to_be_visible()


def test_what_a_server_writes_and_is_asked_is_shown(context: BrowserContext, url: str) -> None:
    """Its log has what happened to it, and its calls come as they end."""
    with visiting(context, url) as visit:
        page = visit.open("servers/one?tab=log")
        rest(f"{url}/api/servers/one/restart", "POST", {})
        expect(page.get_by_label("Log of one")).to_contain_text("restarted by hand")
        expect(page.get_by_label("Log of one")).to_contain_text(re.compile(r"\d+:\d\d:\d\d"))
        page.get_by_role("link", name="Calls", exact=True).last.click()
        rest(f"{url}/api/tools/one__add/call", "POST", {"arguments": {"a": 1, "b": 2}})
        expect(page.get_by_role("link", name="one__add")).to_be_visible()
        page.get_by_role("link", name="Prompts and resources").click()
        expect(page.get_by_role("heading", name=re.compile("Prompts"))).to_be_visible()
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()


def test_a_snippet_is_pasted(context: BrowserContext, url: str, folder: Path) -> None:
    """What would become of it is shown as it is typed, hostile texts as texts; then it is added and comes up."""
    with visiting(context, url) as visit:
        page = visit.open("add")
        box = page.get_by_label("A snippet of any client or README")
        box.fill(json.dumps({"mcpServers": {"bad": {"comand": HOSTILE}}}))
        expect(page.locator(".attention")).to_contain_text("bad")
        box.fill(
            json.dumps({"mcpServers": {"fresh": toy({"env": {"TOKEN": SECRET}}, name="fresh"), "one": toy(name="x")}})
        )
        expect(page.get_by_text("another name")).to_be_visible()
        assert SECRET not in page.inner_text("main")
        visit.check_accessible()
        assert "fresh" not in entries(folder)
        page.get_by_role("button", name="Add 2 servers").click()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        expect(row(page, "fresh")).to_be_visible()
        assert {"fresh", "one_2"} <= entries(folder).keys()


def test_a_form_and_an_import_add_servers(context: BrowserContext, url: str, folder: Path) -> None:
    """By hand, and from what the clients of this machine have."""
    with visiting(context, url) as visit:
        page = visit.open("add?way=form")
        page.get_by_role("textbox", name=re.compile("^Name")).fill("byhand")
        page.get_by_label("Command", exact=True).fill("/nonexistent/other")
        page.get_by_label(re.compile("Arguments")).fill("--first\n--second")
        page.get_by_label(re.compile("Environment")).fill("A=1\nB=${B}")
        expect(page.get_by_text("no such program")).to_be_visible()
        page.get_by_role("button", name="Add all the same").click()
        expect(page.get_by_role("heading", level=1, name="byhand")).to_be_visible()
        assert entries(folder)["byhand"]["args"] == ["--first", "--second"]
        assert entries(folder)["byhand"]["env"] == {"A": "1", "B": "${B}"}
        visit.complaints.clear()
        cursor = Path.home() / ".cursor"
        cursor.mkdir(parents=True, exist_ok=True)
        (cursor / "mcp.json").write_text(
            json.dumps(
                {"mcpServers": {"theirs": {"command": "x"}, "byhand": {"command": "y"}, "not_this": {"command": "z"}}}
            )
        )
        windsurf = Path.home() / ".codeium/windsurf"
        windsurf.mkdir(parents=True, exist_ok=True)
        (windsurf / "mcp_config.json").write_text(json.dumps({"mcpServers": {"theirs": {"command": "other"}}}))
        page = visit.open("add?way=import")
        visit.check_accessible()
        # The config has one of this name, so it may be the same one, changed since.
        expect(page.get_by_role("checkbox", name="byhand_2")).not_to_be_checked()
        page.get_by_role("button", name="None").click()
        page.get_by_role("checkbox", name="theirs", exact=True).check()
        page.get_by_role("button", name="Take over 1 server").click()
        expect(page.get_by_role("heading", level=1, name="theirs")).to_be_visible()
        assert "not_this" not in entries(folder)
        assert not [name for name in entries(folder) if name.endswith("_2") and name != "one_2"]


def test_a_form_says_what_is_wrong_before_it_adds(context: BrowserContext, url: str, folder: Path) -> None:
    """A command is split as a shell would, a line that is no name and value is refused, and a name that is taken is
    told at its field, with one that is free."""
    with visiting(context, url) as visit:
        page = visit.open("add?way=form")
        name = page.get_by_role("textbox", name=re.compile("^Name"))
        name.fill("One")
        page.get_by_label(re.compile("^Command")).fill("""sh -c "exit 1" 'it''s' C:\\a\\b""")
        expect(page.get_by_role("alert").filter(has_text="There is a server one already.")).to_be_visible()
        expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()
        visit.check_accessible()
        page.get_by_role("button", name="Call it one_2").click()
        expect(name).to_have_value("one_2")
        environment = page.get_by_label(re.compile("Environment"))
        environment.fill("A=1\nsome words")
        expect(page.get_by_text("This line is not like that: some words")).to_be_visible()
        expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()
        environment.fill("A=b=c")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="one_2")).to_be_visible()
        added = entries(folder)["one_2"]
        assert [added["command"], *added["args"]] == ["sh", "-c", "exit 1", "its", "C:\\a\\b"]
        assert added["env"] == {"A": "b=c"}
        page = visit.open("add?way=form")
        page.get_by_label("An address").check()
        page.get_by_label("Address", exact=True).fill("https://x.example/mcp")
        page.get_by_label(re.compile("Headers")).fill("X-Key = 1")
        expect(page.get_by_text("This line is not like that: X-Key = 1")).to_be_visible()


def test_what_was_pasted_is_not_lost_without_a_question(context: BrowserContext, url: str) -> None:
    """Nor what stands in the form; once it is added nothing is asked."""
    with visiting(context, url) as visit:
        page = visit.open("add")
        question = page.get_by_role("dialog", name="Leave without saving?")
        page.get_by_label("A snippet of any client or README").fill("hello")
        page.get_by_role("link", name="Fill in").click()
        question.get_by_role("button", name="Cancel").click()
        expect(page.get_by_label("A snippet of any client or README")).to_have_value("hello")
        page.get_by_role("link", name="Fill in").click()
        question.get_by_role("button", name="Leave").click()
        page.get_by_role("textbox", name=re.compile("^Name")).fill("x")
        page.get_by_role("link", name="Servers", exact=True).click()
        question.get_by_role("button", name="Leave").click()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()


def test_a_few_names_stand_for_many(context: BrowserContext, url: str, folder: Path) -> None:
    """Of servers that were added at once the first are named, and how many others there are."""
    many = {name: {**toy(name=name), "enabled": False} for name in (f"extra{number}" for number in range(40))}
    with visiting(context, url) as visit:
        page = visit.open("add")
        page.get_by_label("A snippet of any client or README").fill(json.dumps({"mcpServers": many}))
        page.get_by_role("button", name="Add 40 servers").click()
        expect(page.locator(".notice")).to_contain_text("Added extra0, extra1, extra2 and 37 more.")
        assert many.keys() <= entries(folder).keys()


def test_nothing_is_asked_once_it_is_added(context: BrowserContext, url: str) -> None:
    """Also where the page is drawn anew before the browser tells that the address is another one."""
    with visiting(context, url) as visit:
        # What the page hears of itself after adding comes with the answer: behind it, and before anything else.
        visit.page.add_init_script("""
          const ask = window.fetch;
          let isAdding = false, goOn;
          const isHeard = new Promise((done) => { goOn = done; });
          window.fetch = async (address, given) => {
            const isAdded = address === "/api/servers" && given.method === "POST";
            isAdding ||= isAdded;
            const response = await ask(address, given);
            if (!isAdded && !(isAdding && address === "/api/whoami")) return response;
            const { status, headers } = response;
            const text = await response.text();
            if (isAdded) await isHeard;
            else {
              goOn();
              for (let turn = 0; turn < 100; turn += 1) await null;
            }
            return { status, headers, text: async () => text };
          };
        """)
        page = visit.open("add")
        snippet = json.dumps({"mcpServers": {"fresh": toy(name="fresh")}})
        page.get_by_label("A snippet of any client or README").fill(snippet)
        page.get_by_role("button", name="Add 1 server").click()
        expect(page.get_by_role("heading", level=1, name="fresh")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_back_leads_on_after_leaving(context: BrowserContext, url: str) -> None:
    """Whoever leaves without saving is where the browser's history says; one step back is the screen before that."""
    with visiting(context, url) as visit:
        page = visit.open("tools")
        page.get_by_role("link", name="Servers", exact=True).click()
        page.get_by_role("link", name="one", exact=True).click()
        page.evaluate("location.hash = '#/servers/one?tab=config'")
        page.get_by_label("Arguments, one a line").fill("half typed")
        page.go_back()
        page.get_by_role("dialog").get_by_role("button", name="Leave").click()
        expect(page.get_by_role("link", name="Tools", exact=True).last).to_have_attribute("aria-current", "page")
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Tools")).to_be_visible()


def test_a_question_ends_with_its_screen(context: BrowserContext, url: str, folder: Path) -> None:
    """Whoever goes back has said no: the question is gone, and so is what it was about."""
    with visiting(context, url) as visit:
        page = visit.open("tools")
        page.get_by_role("link", name="Servers", exact=True).click()
        choose(page, "one", "Remove")
        expect(page.get_by_role("dialog", name="Remove one?")).to_be_visible()
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Tools")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.go_forward()
        expect(row(page, "one")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert "one" in entries(folder)


def test_why_a_server_fails_can_be_read(context: BrowserContext, tmp_path: Path) -> None:
    """All of it where it is of a usual length, wide and on a phone; what is longer than that is one step away."""
    program = "/nonexistent/" + "folder/" * 25 + "key"
    servers = {"fails": {"command": program}, "worse": {"command": program + "/folder" * 40}}
    with gateway(tmp_path / "failing", servers) as address, visiting(context, address) as visit:
        page = visit.open("servers")
        for name in servers:
            choose(page, name, "Refresh its tools")
            expect(row(page, name).locator(".reason")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that answers were errors.
        for screen in ("servers", ""):
            visit.open(screen)
            for size in (DESKTOP, PHONE):
                page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
                text = page.locator(".reason").filter(has_text="key").first
                expect(text).to_be_visible()
                assert text.evaluate("box => box.querySelector('div').scrollHeight <= box.clientHeight + 1")
                visit.check_accessible()
            expect(page.get_by_role("button", name="Show all").first).to_be_visible()


def test_words_that_are_no_program_are_not_the_main_way(context: BrowserContext, url: str) -> None:
    """Whatever is pasted may be a command: that there is none is said, and so are values that are still to be given."""
    with visiting(context, url) as visit:
        page = visit.open("add")
        box = page.get_by_label("A snippet of any client or README")
        box.fill("hello this is nothing")
        expect(page.get_by_text("no such program")).to_be_visible()
        expect(page.get_by_role("button", name="Add 1 server all the same")).not_to_have_class("main")
        box.fill(json.dumps({"mcpServers": {"fresh": {"url": "https://x.example", "headers": {"K": "<token>"}}}}))
        expect(page.get_by_text("Put your own value in: headers K")).to_be_visible()
        expect(page.get_by_role("button", name="Add 1 server")).to_have_class("main")
        visit.open("add?way=form")
        page.get_by_role("dialog").get_by_role("button", name="Leave").click()
        page.get_by_role("textbox", name=re.compile("^Name")).fill("my server!")
        expect(page.get_by_text("Its name will be my_server.")).to_be_visible()


def test_a_server_is_signed_in_to(context: BrowserContext, tmp_path: Path) -> None:
    """From the button over the authorization server's page and back; then it has its tools."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        with (
            gateway(tmp_path / "signed", {"guarded": {"url": protected.url}}) as address,
            visiting(context, address) as visit,
        ):
            page = visit.open("servers/guarded")
            page.get_by_role("button", name="More for guarded").click()
            page.get_by_role("menuitem", name="Sign in").click()
            link = page.get_by_role("link", name="Open the sign-in page")
            with context.expect_page() as opened:
                link.click()
            opened.value.wait_for_url("**/oauth/callback/*?*")
            expect(page.get_by_text("Signed in to guarded.")).to_be_visible()
            expect(page.get_by_role("dialog")).to_have_count(0)
            expect(page.get_by_text(re.compile(r"[1-9]\d* tools? of"))).to_be_visible()
