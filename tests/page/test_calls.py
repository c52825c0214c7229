"""Calls at the page: as they end, filtered by the address, held, in detail, as a file, and as numbers."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from harness import toy
from page import PHONE, gateway, rest, visiting

RATE = 200
SECONDS = 3
LANES = 4
# What a table has before somebody wants more.
SHOWN = 100


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with two servers that work, and some calls of each."""
    folder = tmp_path_factory.mktemp("calls")
    servers = {"one": toy(name="one", tools=["add"]), "two": toy(name="two")}
    with gateway(folder, servers, audit={"arguments": "values"}) as address:
        for name in servers:
            rest(f"{address}/api/servers/{name}/refresh", "POST", {})
        call(address, "one__add", a=1, b=2)
        call(address, "two__echo", text="grüße 日本語")
        call(address, "one__fails")
        yield address


def call(url: str, tool: str, **arguments: Any) -> None:
    """A call by a program of this machine, however it goes."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    body = json.dumps({"arguments": arguments})
    connection.request("POST", f"/api/tools/{tool}/call", body, {"content-type": "application/json"})
    connection.getresponse().read()
    connection.close()


def rows(page: Page, tool: str) -> Locator:
    """The rows of a tool's calls."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=tool, exact=True))


def test_calls_come_as_they_end(context: BrowserContext, url: str) -> None:
    """The newest is first, with who called, how long it took and how it went; nothing is read anew by hand."""
    with visiting(context, url) as visit:
        page = visit.open("calls")
        expect(rows(page, "one__fails").first).to_contain_text("tool error")
        known = rows(page, "one__add").count()
        call(url, "one__add", a=3, b=4)
        expect(rows(page, "one__add")).to_have_count(known + 1)
        newest = page.get_by_role("row").nth(1)
        expect(newest).to_contain_text("one__add")
        expect(newest).to_contain_text("ok")
        expect(newest).to_contain_text("now")
        expect(newest).to_contain_text(re.compile(r"\d ms"))
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()


def test_filters_are_in_the_address(context: BrowserContext, url: str) -> None:
    """A link opens what somebody looked at; each filter holds for what is there and for what comes."""
    with visiting(context, url) as visit:
        page = visit.open("calls?server=one&outcome=tool_error&since=1h")
        expect(page.get_by_role("searchbox", name="Server")).to_have_value("one")
        expect(page.get_by_role("combobox", name="Outcome")).to_have_value("tool_error")
        expect(page.get_by_role("combobox", name="Since")).to_have_value("1h")
        expect(rows(page, "one__fails").first).to_be_visible()
        expect(rows(page, "one__add")).to_have_count(0)
        page.get_by_role("combobox", name="Outcome").select_option("")
        expect(rows(page, "one__add").first).to_be_visible()
        assert "outcome" not in page.url
        page.get_by_role("searchbox", name="Server").fill("")
        page.get_by_role("searchbox", name="Tool").fill("two__*")
        expect(rows(page, "one__add")).to_have_count(0)
        expect(rows(page, "two__echo").first).to_be_visible()
        assert "tool=two__*" in page.url
        known = rows(page, "two__echo").count()
        call(url, "one__add", a=5, b=6)
        call(url, "two__echo", text="again")
        expect(rows(page, "two__echo")).to_have_count(known + 1)
        expect(rows(page, "one__add")).to_have_count(0)
        page.get_by_role("searchbox", name="Who").fill("nobody-of-that-name")
        page.keyboard.press("Enter")
        expect(page.get_by_text("No calls that fit.")).to_be_visible()
        page.reload()
        expect(page.get_by_role("searchbox", name="Who")).to_have_value("nobody-of-that-name")


def test_who_is_the_principal_and_the_client(context: BrowserContext, url: str) -> None:
    """Both are shown, and the filter takes either, of what was and of what comes."""
    with visiting(context, url) as visit:
        for who in ("local", "REST"):
            page = visit.open(f"calls?who={who}&tool=one__add")
            expect(rows(page, "one__add").first).to_contain_text("local")
            expect(rows(page, "one__add").first).to_contain_text("REST")
            known = rows(page, "one__add").count()
            call(url, "one__add", a=1, b=2)
            expect(rows(page, "one__add")).to_have_count(known + 1)


@pytest.mark.parametrize("name", ["Tool", "Server", "Who"])
def test_what_is_typed_outlives_calls_that_come(context: BrowserContext, url: str, name: str) -> None:
    """A filter takes effect after a pause, and meanwhile calls of others draw the page anew: nothing is taken from
    whoever types, spaces at the end included."""
    with visiting(context, url) as visit:
        page = visit.open("calls")
        expect(page.get_by_text("Live")).to_be_visible()
        field = page.get_by_role("searchbox", name=name)
        field.focus()
        page.keyboard.type("no ")
        expect(page.get_by_text("No calls that fit.")).to_be_visible()
        assert page.url.endswith(f"#/calls?{name.lower()}=no")
        page.keyboard.type("body")
        call(url, "two__echo", text="again")
        page.wait_for_url(f"**/#/calls?{name.lower()}=no+body")
        expect(field).to_have_value("no body")
        expect(field).to_be_focused()


def test_back_leads_back_whatever_was_typed(context: BrowserContext, url: str) -> None:
    """A text that has not taken effect yet is dropped with its screen; one that has is in the address without a step of
    its own, and is there again when somebody comes back."""
    with visiting(context, url) as visit:
        page = visit.open("servers")
        page.goto(f"{url}/#/calls")
        field = page.get_by_role("searchbox", name="Tool")
        field.fill("two__*")
        page.wait_for_url("**/#/calls?tool=two__*")
        expect(rows(page, "one__add")).to_have_count(0)
        field.press("End")
        page.keyboard.type("and more")
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        page.wait_for_timeout(0)
        assert page.url.endswith("#/servers")
        page.go_forward()
        expect(field).to_have_value("two__*")
        page.goto(f"{url}/#/calls?tab=numbers")
        page.go_back()
        expect(field).to_have_value("two__*")
        page.evaluate("location.hash = '#/calls?tool=one__add'")
        expect(field).to_have_value("one__add")


def test_what_is_read_is_no_call(context: BrowserContext, url: str) -> None:
    """Who walks through the page adds nothing to the calls and their numbers; a filter shows what was read."""
    with visiting(context, url) as visit:
        before = rest(f"{url}/api/stats")["total"]["calls"]
        page = visit.open("memory")
        for screen in ("Chats", "Tasks", "Calls"):
            page.get_by_role("link", name=screen, exact=True).first.click()
            expect(page.get_by_role("heading", level=1, name=screen)).to_be_visible()
            expect(page.get_by_text("Reading …")).to_have_count(0)
        expect(rows(page, "one__add").first).to_be_visible()
        expect(rows(page, "memory_list")).to_have_count(0)
        page.get_by_role("combobox", name="Kind").select_option("reads")
        expect(rows(page, "memory_list").first).to_be_visible()
        expect(rows(page, "one__add")).to_have_count(0)
        assert rest(f"{url}/api/stats")["total"]["calls"] == before


def test_the_list_is_held_and_goes_on(context: BrowserContext, url: str) -> None:
    """Paused, nothing moves under whoever reads, and how many are new is said; going on shows them."""
    with visiting(context, url) as visit:
        page = visit.open("calls?tool=two__*")
        expect(rows(page, "two__echo").first).to_be_visible()
        known = rows(page, "two__echo").count()
        page.get_by_role("button", name="Pause").click()
        for number in range(3):
            call(url, "two__echo", number=number)
        go_on = page.get_by_role("button", name="Go on (3 new)")
        expect(go_on).to_be_visible()
        expect(rows(page, "two__echo")).to_have_count(known)
        go_on.click()
        expect(rows(page, "two__echo")).to_have_count(known + 3)
        expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_a_held_list_of_another_filter_has_none_of_the_old_one(context: BrowserContext, url: str) -> None:
    """What came in while one filter held is not shown under the next."""
    with visiting(context, url) as visit:
        page = visit.open("calls?tool=one__add")
        page.get_by_role("button", name="Pause").click()
        call(url, "one__add", a=1, b=1)
        expect(page.get_by_role("button", name="Go on (1 new)")).to_be_visible()
        page.get_by_role("searchbox", name="Tool").fill("two__echo")
        page.keyboard.press("Enter")
        expect(rows(page, "two__echo").first).to_be_visible()
        page.get_by_role("button", name="Go on", exact=True).click()
        expect(rows(page, "one__add")).to_have_count(0)


def test_a_call_is_shown_in_full_and_repeated(context: BrowserContext, url: str) -> None:
    """Everything that the audit has of it, of one that came just now as well; from there its tool is one step away,
    with the same arguments, digit by digit."""
    large = 2**53 + 1
    with visiting(context, url) as visit:
        page = visit.open("calls?tool=one__add")
        expect(rows(page, "one__add").first).to_be_visible()
        known = rows(page, "one__add").count()
        call(url, "one__add", a=large, b=2)
        expect(rows(page, "one__add")).to_have_count(known + 1)
        rows(page, "one__add").first.get_by_role("button", name=re.compile("Details")).click()
        dialog = page.get_by_role("dialog", name="one__add")
        expect(dialog.get_by_role("term")).to_have_text(
            ["When", "Who", "Client", "Server", "Outcome", "Took", "Arguments", "Result"]
        )
        expect(dialog.get_by_text("argsDigest")).not_to_be_visible()
        dialog.get_by_text("More", exact=True).click()
        expect(dialog.get_by_text("argsDigest")).to_be_visible()
        expect(dialog).to_contain_text(f'"a": {large}')
        visit.check_accessible()
        link = dialog.get_by_role("link", name="Repeat with changes")
        query = parse_qs((link.get_attribute("href") or "").partition("?")[2])
        assert json.loads(query["arguments"][0]) == {"a": large, "b": 2}
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(rows(page, "one__add").first.get_by_role("button", name=re.compile("Details"))).to_be_focused()


def test_what_is_shown_is_saved(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """As JSON lines, one record each, with the filter that is set."""
    with visiting(context, url) as visit:
        page = visit.open("calls?server=two")
        expect(rows(page, "two__echo").first).to_be_visible()
        with page.expect_download() as begun:
            page.get_by_role("button", name="Export as JSON lines").click()
        expect(page.get_by_text(re.compile(r"Saved \d+ records?\."))).to_be_visible()
        assert begun.value.suggested_filename == "pegboard-calls.jsonl"
        begun.value.save_as(tmp_path / "calls.jsonl")
    saved = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text("utf-8").splitlines()]
    there = rest(f"{url}/api/calls?server=two&limit=1000")["records"]
    assert saved == there
    assert {record["server"] for record in saved} == {"two"}


def test_calls_as_numbers(context: BrowserContext, url: str) -> None:
    """In all, by server and by tool, with a plot that has words; the span is in the address, and numbers follow."""
    with visiting(context, url) as visit:
        page = visit.open("calls")
        page.get_by_role("link", name="Numbers").click()
        expect(page.get_by_role("img", name=re.compile(r"\d+ calls over time"))).to_be_visible()
        by_server = page.get_by_role("table", name="Calls by server")
        by_tool = page.get_by_role("table", name="Calls by tool")
        expect(by_server.get_by_role("link", name="one", exact=True)).to_be_visible()
        row = by_tool.get_by_role("row").filter(has=page.get_by_role("link", name="two__echo", exact=True))
        before = int(row.get_by_role("cell").first.inner_text())
        call(url, "two__echo")
        expect(row.get_by_role("cell").first).to_have_text(str(before + 1))
        failed = by_tool.get_by_role("row").filter(has=page.get_by_role("link", name="one__fails", exact=True))
        expect(failed.get_by_role("cell").nth(1)).not_to_have_text("0")
        # Errors are drawn where they were, within the plot.
        bar = page.get_by_role("img", name=re.compile(r"^\d+ errors? over time")).locator("rect.bad").last
        assert 0 <= float(bar.get_attribute("x") or "nan") < 100
        page.get_by_role("combobox", name="Since").select_option("7d")
        expect(page.get_by_role("img", name=re.compile("over time")).first).to_be_visible()
        assert "tab=numbers&since=7d" in page.url
        page.reload()
        expect(page.get_by_role("combobox", name="Since")).to_have_value("7d")
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()
        by_server.get_by_role("link", name="one", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="one")).to_be_visible()
        for place in ("servers/one?tab=calls", "tools/one__fails"):
            visit.open(place)
            expect(page.get_by_role("img", name=re.compile("^[1-9].* over time, [1-9].* error"))).to_be_visible()


def test_without_an_audit_the_page_says_so(context: BrowserContext, tmp_path: Path) -> None:
    """Calls are shown as they end all the same; of numbers it says why there are none."""
    servers = {"one": toy(name="one", tools=["add"])}
    with gateway(tmp_path, servers, audit=False) as address, visiting(context, address) as visit:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        page = visit.open("calls")
        expect(page.get_by_text("No calls that fit.")).to_be_visible()
        call(address, "one__add", a=1, b=2)
        expect(rows(page, "one__add")).to_have_count(1)
        rows(page, "one__add").get_by_role("button", name=re.compile("Details")).click()
        expect(page.get_by_role("dialog", name="one__add")).to_contain_text("outcome")
        page.get_by_role("button", name="Close").click()
        page.get_by_role("link", name="Numbers").click()
        expect(page.get_by_text("Calls are not recorded: the audit is off in the config.")).to_be_visible()


def flood(url: str, is_over: threading.Event) -> int:
    """So many calls a second until it is over, at most for some seconds; how many there were."""
    parts = urlsplit(url)
    body = json.dumps({"arguments": {"a": 1, "b": 2}})

    def call_on() -> int:
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        made = 0
        for _ in range(RATE * SECONDS // LANES):
            connection.request("POST", "/api/tools/one__add/call", body, {"content-type": "application/json"})
            assert connection.getresponse().read()
            made += 1
            if is_over.wait(LANES / RATE):
                break
        connection.close()
        return made

    with ThreadPoolExecutor(LANES) as pool:
        return sum(each.result() for each in [pool.submit(call_on) for _ in range(LANES)])


@pytest.mark.parametrize("screen", ["calls", "calls?tab=numbers", "", "servers/one?tab=calls"])
def test_hundreds_of_calls_a_second(context: BrowserContext, url: str, screen: str) -> None:
    """Rows arrive, what is clicked meanwhile does what it should, and no more rows are kept than anybody reads."""
    is_over = threading.Event()
    with visiting(context, url) as visit, ThreadPoolExecutor(1) as pool:
        page = visit.open(screen)
        expect(page.get_by_text("Reading …")).to_have_count(0)
        flooding = pool.submit(flood, url, is_over)
        try:
            expect(page.get_by_text("one__add").first).to_be_visible()
            if screen == "calls":
                use_calls(page)
            page.get_by_role("link", name="Servers", exact=True).first.click()
            expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
            page.go_back()
            expect(page.get_by_text("one__add").first).to_be_visible()
            if screen != "calls":
                is_over.set()
            made = flooding.result(60)
        finally:
            is_over.set()
        assert made
        call(url, "two__echo", text="the last one")
        if screen == "calls":
            assert made == RATE * SECONDS
            expect(page.get_by_role("row").nth(1)).to_contain_text("two__echo")
            expect(page.get_by_role("row")).to_have_count(SHOWN + 1)
            for _ in range(5):
                if page.get_by_role("button", name="Show more").count():
                    page.get_by_role("button", name="Show more").click()
            assert page.get_by_role("row").count() <= 401


def use_calls(page: Page) -> None:
    """Pause, look at one, filter, go on, while calls pour in."""
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name=re.compile(r"Go on \([\d,]+ new\)"))).to_be_visible()
    first = page.get_by_role("row").nth(1)
    before = first.inner_text()
    first.get_by_role("button", name=re.compile("Details")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("trace")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    assert first.inner_text().split("\n")[1:] == before.split("\n")[1:]
    page.get_by_role("button", name=re.compile("Go on")).click()
    page.get_by_role("searchbox", name="Tool").fill("one__*")
    page.keyboard.press("Enter")
    expect(rows(page, "one__add").first).to_be_visible()
    page.get_by_role("searchbox", name="Tool").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Tool")).to_have_value("")
