"""Access at the page: tokens that are made, changed, rotated and removed; the rules of the config; who one is."""

from __future__ import annotations

import contextlib
import json
import re
import urllib.error
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from harness import toy
from page import PHONE, Visit, gateway, pegboard, rest, visiting

RULES = [
    {"who": ["token:ci*"], "readOnly": True, "rate": "600/m"},
    {"who": ["token:*"], "tools": {"deny": ["prod__*"]}},
    {"who": ["local"], "admin": True},
]
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "Überlänge" * 20 + "工具" * 20


@pytest.fixture
def url(tmp_path: Path) -> Generator[str]:
    """A gateway with rules, two servers, and two tokens."""
    servers = {"one": toy(name="one"), "zwei": toy(name="zwei")}
    with gateway(tmp_path, servers, auth={"rules": RULES}) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        ada = {"servers": ["one"], "rate": "60/m", "perServer": {"one": {"inFlight": 2}}}
        rest(f"{address}/api/tokens", "POST", {"name": "ada", "rule": ada, "expires": "30d"})
        rest(f"{address}/api/tokens", "POST", {"name": "ci", "rule": {}})
        yield address


def field(page: Page, label: str) -> Locator:
    """A field of the form; behind its label stands a hint."""
    return page.get_by_role("main").get_by_label(re.compile(rf"^{label}(?![a-z])"))


def token_in(page: Page) -> str:
    """The token that is shown now."""
    text = page.get_by_role("dialog").locator("pre").inner_text()
    assert text.startswith("pgb_")
    return text


def is_let_in(url: str, token: str) -> bool:
    """Whether somebody comes in with it."""
    with contextlib.suppress(urllib.error.HTTPError):
        rest(f"{url}/api/whoami", authorization=f"Bearer {token}")
        return True
    return False


def assert_gone(page: Page, token: str) -> None:
    """The page keeps nothing of a token: not in what it shows, in fields, its address, its history or its storage."""
    kept = """() => JSON.stringify([document.documentElement.outerHTML, location.href, history.state, document.cookie,
      {...localStorage}, {...sessionStorage},
      [...document.querySelectorAll("input, textarea")].map((each) => each.value),
      performance.getEntries().map((each) => each.name)])"""
    assert token.removeprefix("pgb_") not in page.evaluate(kept)


def rule_of(url: str, name: str) -> dict[str, Any]:
    """What a token's rule says now."""
    return rest(f"{url}/api/tokens/{name}")["rule"]


def test_a_token_is_made_and_shown_once(context: BrowserContext, url: str) -> None:
    """With everything that a rule can say; names of servers are said; behind the dialog nothing of it is left."""
    with visiting(context, url) as visit:
        page = visit.open("access")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("link", name="Add a token").click()
        page.get_by_role("button", name="Make the token").click()
        expect(page.locator(".notice.bad")).to_contain_text("a token's name has letters")
        visit.complaints.clear()  # The browser says by itself that an answer was 400.
        servers = field(page, "Servers")
        expect(page.get_by_text("Empty: all of one, zwei")).to_be_visible()
        servers.fill("one, zwei")
        page.get_by_text("More limits").click()
        for label, text in {
            "Name": "ben@example.com",
            "Expires": "90d",
            "Only these tools": "one__*, zwei__echo",
            "Not these tools": "*__delete_*",
            "Pegboard's own tools": "memory",
            "Shared boards": "team",
            "Namespaces of memory": "ben",
            "Rate of calls": "120/m",
            "Calls at once": "4",
        }.items():
            field(page, label).fill(text)
        page.get_by_role("checkbox", name="Only tools that change nothing").check()
        visit.check_accessible()
        page.get_by_role("button", name="Make the token").click()
        expect(page.get_by_role("dialog", name="The token of ben@example.com")).to_contain_text("this once")
        token = token_in(page)
        visit.check_accessible()
        page.get_by_role("dialog").get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == token
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert_gone(page, token)
        row = page.get_by_role("row").filter(has_text="ben@example.com")
        for words in ("servers one zwei", "read-only", "120/m", "4 at once", "in 90 days", "rule 2", "never"):
            expect(row).to_contain_text(words)
        assert rule_of(url, "ben@example.com") == {
            "servers": ["one", "zwei"],
            "toolsets": ["memory"],
            "tools": {"allow": ["one__*", "zwei__echo"], "deny": ["*__delete_*"]},
            "readOnly": True,
            "boards": ["team"],
            "namespaces": ["ben"],
            "rate": "120/m",
            "inFlight": 4,
        }
        assert is_let_in(url, token)


def test_names_of_servers_are_said_once_they_are_known(context: BrowserContext, url: str) -> None:
    """While they are read nothing is said of them, and nothing else is in their place."""
    with visiting(context, url) as visit:
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        visit.page.route("**/api/servers", hold)
        page = visit.open("access?tab=add")
        hint = field(page, "Servers").locator("..").locator("small")
        expect(hint).to_have_text("With commas. Empty: all.")
        for route in held:
            route.continue_()
        expect(hint).to_have_text("With commas. Empty: all of one, zwei.")


def test_a_token_is_copied_where_pages_have_no_clipboard(context: BrowserContext, url: str) -> None:
    """Over plain HTTP from another machine there is none: then it is copied by hand, out of the open dialog."""
    context.add_init_script("Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})")
    with visiting(context, url) as visit:
        page = visit.open("access?tab=add")
        field(page, "Name").fill("far")
        page.get_by_role("button", name="Make the token").click()
        token = token_in(page)
        page.get_by_role("dialog").get_by_role("button", name="Copy").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("heading", level=1, name="Access")).to_be_focused()
        assert_gone(page, token)
        page.get_by_label("Find").click()
        page.keyboard.press("Control+V")
        expect(page.get_by_label("Find")).to_have_value(token)


def test_a_token_is_changed(context: BrowserContext, url: str) -> None:
    """Only what was touched: a limit that the form does not have stays. What is wrong is said, and nothing changes."""
    with visiting(context, url) as visit:
        page = visit.open("access/ada")
        expect(page.get_by_text(re.compile(r"[1-9]\d* tools of \d+"))).to_be_visible()
        visit.check_accessible()
        before = rest(f"{url}/api/tokens/ada")
        for label, text in (("Rate of calls", "fast"), ("Calls at once", "many"), ("Expires", "soon")):
            old = field(page, label).input_value()
            field(page, label).fill(text)
            page.get_by_role("button", name="Save").click()
            expect(page.locator(".notice.bad")).to_be_visible()
            page.get_by_role("button", name="Dismiss").click()
            field(page, label).fill(old)
        visit.complaints.clear()  # The browser says by itself that answers were 400.
        assert rest(f"{url}/api/tokens/ada") == before
        field(page, "Rate of calls").fill("")
        field(page, "Not these tools").fill("one__fails")
        page.get_by_role("checkbox", name="Admin").check()
        field(page, "Expires").fill("never")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        assert rule_of(url, "ada") == {
            "servers": ["one"],
            "tools": {"deny": ["one__fails"]},
            "perServer": {"one": {"inFlight": 2}},
            "admin": True,
        }
        expect(page.get_by_text("servers one; not one__fails; one 2 at once; admin")).to_be_visible()
        assert rest(f"{url}/api/tokens/ada")["expiresAt"] is None
        expect(field(page, "Expires")).to_have_value("")
        field(page, "Not these tools").fill("")
        page.get_by_role("checkbox", name="Admin").uncheck()
        field(page, "Name").fill("ada.lovelace")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", level=1, name="ada.lovelace")).to_be_visible()
        assert rule_of(url, "ada.lovelace") == {"servers": ["one"], "perServer": {"one": {"inFlight": 2}}}
        # The page may hear of the change before it goes on to the new name, and ask for the old one once more.
        visit.complaints[:] = [each for each in visit.complaints if not each.endswith("/api/tokens/ada)")]


def test_a_token_is_rotated_and_removed(context: BrowserContext, url: str) -> None:
    """Each is asked once more; the new secret is shown once, the old one is refused."""
    with visiting(context, url) as visit:
        old = rest(f"{url}/api/tokens/ci/rotate", "POST", {})["token"]
        page = visit.open("access/ci")
        page.get_by_role("button", name="Rotate").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("button", name="Rotate")).to_be_focused()
        assert is_let_in(url, old)
        page.get_by_role("button", name="Rotate").click()
        page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        expect(page.get_by_role("dialog", name="The token of ci")).to_be_visible()
        token = token_in(page)
        assert (is_let_in(url, token), is_let_in(url, old)) == (True, False)
        # It is shown this once: a key that closes other dialogs does not lose it, however often it is pressed.
        for _ in range(3):
            page.keyboard.press("Escape")
        assert token_in(page) == token
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert_gone(page, token)
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert is_let_in(url, token)
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_role("heading", level=1, name="Access")).to_be_visible()
        expect(page.get_by_role("link", name="ada", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="ci", exact=True)).to_have_count(0)
        assert not is_let_in(url, token)
        assert_gone(page, token)
        # Its screen may have been read once more before it was left.
        visit.complaints[:] = [each for each in visit.complaints if "404" not in each]


def test_rules_are_in_words_and_one_sees_who_one_is(context: BrowserContext, url: str) -> None:
    """With what they name that there is not, and the tokens that each holds for."""
    with visiting(context, url) as visit:
        page = visit.open("access?tab=rules")
        first, second = (page.get_by_role("row").filter(has_text=who) for who in ("token:ci*", "token:*"))
        expect(first).to_contain_text("read-only; 600/m")
        expect(first).to_contain_text("ci")
        expect(second).to_contain_text('there is no server "prod"')
        expect(second.get_by_role("cell").last).to_have_text("ada")
        visit.check_accessible()
        page.get_by_role("link", name="Who you are").click()
        expect(page.get_by_text("this machine's user, an admin")).to_be_visible()
        expect(page.get_by_text("everything; admin")).to_be_visible()
        expect(page.get_by_text("one, zwei")).to_be_visible()
        visit.check_accessible()


def test_without_rules_it_is_said_where_they_are_written(context: BrowserContext, tmp_path: Path) -> None:
    """In the config file, under which key."""
    with gateway(tmp_path / "none", {}) as address, visiting(context, address) as visit:
        expect(visit.open("access?tab=rules").get_by_text("auth.rules")).to_be_visible()


def test_many_tokens_are_searched_and_shown_as_they_come(context: BrowserContext, url: str) -> None:
    """The first hundred, the others when somebody wants them; hostile names as texts, on a phone too; one that is made
    elsewhere appears."""
    for number in range(200):
        rule = {"servers": [HOSTILE, "überprüfer"]} if number == 7 else {"readOnly": True}
        rest(f"{url}/api/tokens", "POST", {"name": f"person-{number:03}", "rule": rule})
    with visiting(context, url) as visit:
        page = visit.open("access")
        expect(page.get_by_role("status").filter(has_text="202 tokens")).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(101)
        page.get_by_role("button", name="Show more").click()
        expect(page.get_by_role("row")).to_have_count(201)
        page.get_by_label("Find").fill("person-00")
        expect(page.get_by_role("row")).to_have_count(11)
        assert "q=person-00" in page.url
        assert page.locator("main img").count() == 0
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()
        page.get_by_label("Find").fill("late")
        expect(page.get_by_text("Nothing here.")).to_be_visible()
        rest(f"{url}/api/tokens", "POST", {"name": "latecomer", "rule": {}})
        expect(page.get_by_role("link", name="latecomer")).to_be_visible()
        visit.open("access?tab=rules")
        expect(page.get_by_text("person-003 and 197 more")).to_be_visible()
        visit.open("access/person-007")
        expect(field(page, "Servers")).to_have_value(re.compile(", uberprufer$"))
        visit.check_accessible()


def test_a_weak_token_sees_itself_alone(context: BrowserContext, tmp_path: Path) -> None:
    """Nothing of other tokens and of rules is asked for or shown, by whatever address; only what it may use itself."""
    servers = {"one": toy(name="one"), "hidden": toy(name="hidden")}
    auth = {"required": True, "rules": [{"who": ["token:*"], "tools": {"deny": ["secret_tool"]}}]}
    with gateway(tmp_path, servers, auth=auth) as address:
        config = tmp_path / "pegboard.json"
        said = pegboard(config, "token", "add", "weak", "--server", "one", "--rate", "60/m")
        pegboard(config, "token", "add", "somebodyelse")
        token = next(word for word in said.split() if word.startswith("pgb_"))
        visit = Visit(context.new_page(), address)
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url.removeprefix(address)))
        page = visit.open()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        for screen in ("access", "access?tab=rules", "access?tab=add", "access/somebodyelse"):
            visit.open(screen)
            expect(page.get_by_text("Only admins see who may come in.")).to_be_visible()
            expect(page.get_by_text(re.compile("token weak$"))).to_be_visible()
            expect(page.get_by_text("60/m, 60 left")).to_be_visible()
            expect(page.get_by_role("link", name="Add a token")).to_have_count(0)
            text = page.locator("main").inner_text()
            assert "hidden" not in text
            assert "secret_tool" not in text
            assert "somebodyelse" not in text
        visit.check_accessible()
        assert [each for each in asked if each.startswith(("/api/tokens", "/api/rules"))] == []
        assert token not in json.dumps(asked)
        assert visit.strangers == []
        page.close()
