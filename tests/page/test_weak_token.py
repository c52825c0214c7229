"""Whoever has a token with a rule sees at the page what the rule gives, and learns of nothing else: neither on a
screen, nor by an address typed by hand, nor in an answer, nor over the stream."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from harness import toy
from page import Visit, gateway, pegboard, rest
from page.walk import PLACES, TABS, Gathering, screens

READS = {"readOnlyHint": True}
RULE = {"servers": ["seen"], "tools": {"deny": ["seen__denied_one"]}, "readOnly": True, "toolsets": ["discovery"]}
# What a rule hides, by its name; and what is said of it, which no address typed by hand may bring out.
NAMES = ("orchid", "magnolia", "jasmine", "gardenia", "denied_one", "writes_one")
CONTENTS = ("tulip-described", "tulip-denied", "tulip-written", "tulip-logged", "tulip-remembered", "tulip-argument")


def described(name: str, text: str, **annotations: bool) -> dict[str, Any]:
    """A tool that says this of itself."""
    return {"name": name, "description": text, "inputSchema": {"type": "object"}, "annotations": annotations}


@dataclass
class Guarded:
    """A gateway that asks who comes, with the token of an admin and one with a rule."""

    url: str
    config: Path
    admin: dict[str, str]
    weak: str = ""

    def do(self, method: str, path: str, body: Any = None, bearer: str = "") -> Any:
        """What REST answers to the admin, or to another token."""
        headers = {"authorization": f"Bearer {bearer}"} if bearer else self.admin
        return rest(self.url + path, method, {} if body is None and method == "POST" else body, **headers)

    def token(self, name: str) -> str:
        """A new token with the rule."""
        return self.do("POST", "/api/tokens", {"name": name, "rule": RULE})["token"]

    def call(self, tool: str, bearer: str = "") -> None:
        """A call, however it goes."""
        self.do("POST", f"/api/tools/{tool}/call", {"arguments": {"text": "tulip-argument"}}, bearer)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Guarded]:
    """A server that may be seen, with a tool that may be used and two that may not; another one that is hidden, and all
    that others have done."""
    folder = tmp_path_factory.mktemp("weak")
    config = folder / "pegboard.json"
    log = "import sys; print('tulip-logged', file=sys.stderr)"
    start = toy(
        name="seen",
        raw_tools=[
            described("looks", "Looks only", **READS),
            described("denied_one", "tulip-denied", **READS),
            described("writes_one", "tulip-written"),
        ],
    )
    shell = f'{start["command"]} -c "{log}"; exec "$@"'
    servers = {
        "seen": {"command": "sh", "args": ["-c", shell, "x", start["command"], *start["args"]]},
        "orchid": toy(name="orchid", raw_tools=[described("magnolia", "tulip-described", **READS)]),
    }
    with gateway(folder, servers, auth={"required": True}) as url:
        said = pegboard(config, "token", "add", "gardenia", "--admin")
        admin = next(word for word in said.split() if word.startswith("pgb_"))
        made = Guarded(url, config, {"authorization": f"Bearer {admin}"})
        made.weak = made.token("weak")
        for name in servers:
            made.do("POST", f"/api/servers/{name}/refresh")
        made.call("orchid__magnolia")
        made.call("seen__looks")
        made.do("POST", "/api/memories", {"key": "hidden", "text": "tulip-remembered"})
        greet(url, admin)
        yield made


def greet(url: str, token: str) -> None:
    """A client of somebody else connects."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "jasmine", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
    }
    with urllib.request.urlopen(urllib.request.Request(f"{url}/mcp", body, headers), timeout=30) as answer:
        assert answer.status == 200


def sign_in(context: BrowserContext, guarded: Guarded, token: str) -> Visit:
    """A visit of whoever has this token."""
    visit = Visit(context.new_page(), guarded.url)
    page = visit.open()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    return visit


def change_what_is_hidden(guarded: Guarded) -> None:
    """Calls, states, memories, tokens and configs that are nothing to whoever has the weak token."""
    guarded.call("orchid__magnolia")
    guarded.call("seen__denied_one")
    guarded.do("POST", "/api/servers/orchid/disable")
    guarded.do("POST", "/api/servers/orchid/enable")
    guarded.do("POST", "/api/servers/orchid/restart")
    guarded.do("POST", "/api/memories", {"key": "magnolia", "text": "tulip-remembered"})
    guarded.do("POST", "/api/tokens", {"name": "gardenia-2", "rule": {}, "expires": None})


def test_a_rule_holds_on_every_screen_and_in_the_stream(context: BrowserContext, guarded: Guarded) -> None:
    """What it hides is in no screen, no answer and no event, also while it changes; what it gives is there."""
    visit = sign_in(context, guarded, guarded.weak)
    gathering = Gathering(visit)
    page = visit.open("calls")
    change_what_is_hidden(guarded)
    gathering.walk([*screens(["seen"], ["seen__looks"]), "calls"])
    # Events keep their order: what was told of before this one has been told.
    guarded.call("seen__looks", guarded.weak)
    expect(page.get_by_role("link", name="seen__looks").first).to_be_visible()
    gathering.walk(["servers", "calls"])
    text = gathering.everything()
    page.close()
    assert [word for word in (*NAMES, *CONTENTS) if word in text] == []
    assert str(guarded.config.parent) not in text
    assert "Looks only" in text
    assert any(event.startswith("call ") and "seen__looks" in event for event in gathering.events)


def test_addresses_typed_by_hand_bring_out_nothing(context: BrowserContext, guarded: Guarded) -> None:
    """A screen of what is hidden is one of what is not there, and screens for admins have nothing in them."""
    visit = sign_in(context, guarded, guarded.weak)
    gathering = Gathering(visit)
    page = visit.page
    guarded.call("orchid__magnolia")
    hidden = [f"servers/orchid{tab}" for tab in TABS]
    tools = ["tools/orchid__magnolia", "tools/seen__denied_one", "tools/seen__writes_one"]
    calls = ["calls?server=orchid", "calls?tool=orchid__*", "calls?who=gardenia", "calls?kind=token.*"]
    gathering.walk([*hidden, *tools, *calls, "servers/seen?tab=config", "servers/seen?tab=log", *PLACES])
    text = gathering.everything()
    assert [word for word in CONTENTS if word in text] == []
    assert "jasmine" not in text
    visit.open("servers/orchid?tab=config")
    screen = page.get_by_role("main")
    expect(screen).to_contain_text("There is no server of this name now.")
    said = screen.inner_text().replace("orchid", "NAME")
    visit.open("servers/nowhere?tab=config")
    expect(screen).to_contain_text("nowhere")
    expect(screen).to_contain_text("There is no server of this name now.")
    # There is no telling what is hidden from what is not there.
    assert screen.inner_text().replace("nowhere", "NAME") == said
    visit.open("servers/seen?tab=log")
    for tab in ("Config", "Log"):
        expect(page.get_by_role("link", name=tab, exact=True)).to_have_count(0)
    visit.open("add")
    expect(page.get_by_text("Only admins add servers.")).to_be_visible()
    expect(page.get_by_role("textbox")).to_have_count(0)
    page.close()


def actions_of(page: Page) -> set[str]:
    """Everything that can be pressed on a screen."""
    return {name.strip() for name in page.locator("main button, main a.button").all_inner_texts()}


def test_nothing_is_offered_that_would_be_refused(context: BrowserContext, guarded: Guarded) -> None:
    """Changes of servers are for admins: nobody else is shown a button for them."""
    visit = sign_in(context, guarded, guarded.weak)
    page = visit.open("servers")
    page.get_by_role("button", name="More for seen").click()
    items = page.get_by_role("menuitem").all_inner_texts()
    assert items == ["Refresh its tools"]
    page.keyboard.press("Escape")
    assert "Add a server" not in actions_of(page)
    visit.open("servers/seen")
    expect(page.get_by_role("link", name="seen__looks")).to_be_visible()
    assert actions_of(page) == {"⋯"}
    visit.open("calls")
    expect(page.get_by_role("searchbox", name="Who")).to_have_count(0)
    page.close()


def test_a_token_that_expires_ends_the_visit(context: BrowserContext, guarded: Guarded) -> None:
    """Whoever is not let in any more is asked for a token, without a reload; nothing of the screen stays."""
    visit = sign_in(context, guarded, guarded.token("ending"))
    page = visit.open("servers/seen")
    expect(page.get_by_role("link", name="looks")).to_be_visible()
    guarded.do("PATCH", "/api/tokens/ending", {"expires": "1s"})
    expect(page.get_by_role("heading", name="Sign in to Pegboard")).to_be_visible()
    expect(page.get_by_text("looks")).to_have_count(0)
    page.close()


def test_another_rule_holds_at_once(context: BrowserContext, guarded: Guarded) -> None:
    """A server that a token may see no longer goes from the list while it is looked at, and one that it may see now
    comes."""
    visit = sign_in(context, guarded, guarded.token("changing"))
    page = visit.open("servers")
    expect(page.get_by_role("link", name="seen", exact=True)).to_be_visible()
    guarded.do("PATCH", "/api/tokens/changing", {"rule": {"servers": ["orchid"]}})
    expect(page.get_by_role("link", name="orchid", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="seen", exact=True)).to_have_count(0)
    page.close()
