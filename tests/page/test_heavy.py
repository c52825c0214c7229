"""What takes long for a browser: schemas that grow as they are read, long descriptions, patterns; and what an address
names or a stream tells that is none of what it should be."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from page import gateway, rest, visiting
from servers.toy import Settings
from servers.toy_http import http_toy

READS = {"readOnlyHint": True}
TEXT = {"type": "string"}
LONG = 255_000
TOOLS = 60
# Of all that a screen says.
MOST_SAID = 100_000
# Each property is the same schema 180 times over, and what is required holds all of it again.
GROWING: dict[str, Any] = {
    "type": "object",
    "$defs": {"s": {"x": "y" * 200_000}, "l": {"allOf": [{"$ref": "#/$defs/s"}] * 180}},
    "properties": {
        "plain": TEXT,
        "r0": {"$ref": "#"},
        **{f"p{number}": {"$ref": "#/$defs/l"} for number in range(150)},
    },
    "required": ["r0"],
}
# What is compared stands in two places, and so is no longer the same by where it is.
NESTED = [{"a": "y" * 50_000}]
COMPARED: dict[str, Any] = {
    "type": "object",
    "$defs": {"one": {**TEXT, "x": NESTED}, "two": {**TEXT, "x": NESTED}},
    "properties": {
        "plain": TEXT,
        **{f"p{number}": {"allOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}] * 5} for number in range(150)},
    },
}
WIDE: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{f"r{number}": {"$ref": "#"} for number in range(12)},
        **{f"p{number}": TEXT for number in range(2000)},
    },
    "required": [f"r{number}" for number in range(12)],
}
# Long values that are meant in many places.
REPEATED: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "text": {**TEXT, "default": "y" * 60_000, "examples": ["z" * 60_000]},
        "choice": {"enum": [f"choice {number}" for number in range(4000)]},
    },
    "properties": {
        "plain": TEXT,
        **{f"t{number}": {"$ref": "#/$defs/text"} for number in range(90)},
        **{f"c{number}": {"$ref": "#/$defs/choice"} for number in range(90)},
    },
}
SCHEMAS = {"growing": GROWING, "compared": COMPARED, "wide": WIDE, "repeated": REPEATED}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with a server that has such tools, and one whose tools say much."""
    tools = [{"name": name, "inputSchema": schema, "annotations": READS} for name, schema in SCHEMAS.items()]
    plain = {"inputSchema": {"type": "object"}, "annotations": READS}
    tools.append({"name": "get_weather_for_a_place_and_a_day", **plain})
    said = [{"name": f"tool_{number}", "description": "say " * (LONG // 4), **plain} for number in range(TOOLS)]
    with (
        http_toy(Settings(name="heavy", raw_tools=tools)) as heavy,
        http_toy(Settings(name="talks", raw_tools=said)) as talks,
        gateway(
            tmp_path_factory.mktemp("heavy"), {"heavy": {"url": heavy.url}, "talks": {"url": talks.url}}
        ) as address,
    ):
        for name in ("heavy", "talks"):
            rest(f"{address}/api/servers/{name}/refresh", "POST", {})
        yield address


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_form_of_any_schema_is_there(context: BrowserContext, url: str, name: str) -> None:
    """It is drawn, drawn again as somebody types, and can be written as JSON."""
    with visiting(context, url) as visit:
        page = visit.open(f"tools/heavy__{name}")
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
        if name != "wide":
            plain = page.get_by_label("plain", exact=True).first
            plain.fill("typed")
            expect(plain).to_have_value("typed")
        page.get_by_role("button", name="JSON", exact=True).click()
        given = page.get_by_label("All as JSON")
        assert len(given.input_value()) < MOST_SAID
        given.fill('{"plain": "as JSON"}')
        page.get_by_role("button", name="Call", exact=True).click()
        expect(page.get_by_role("heading", name="Result")).to_be_visible()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_question_of_any_schema_is_there(context: BrowserContext, url: str, name: str) -> None:
    """A server asks with the same schemas, and somebody can say no."""
    asked = {"message": "?", "requestedSchema": SCHEMAS[name]}
    with visiting(context, url) as visit:
        page = visit.open("tools/heavy__get_weather_for_a_place_and_a_day")
        _tell(page, _question({"q": {"method": "elicitation/create", "params": asked}}))
        page.get_by_role("button", name="Call", exact=True).click()
        dialog = page.get_by_role("dialog", name="heavy asks")
        expect(dialog).to_be_visible()
        page.unroute("**/call")
        dialog.get_by_role("button", name="Decline").click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("heading", name="Result")).to_be_visible()


@pytest.mark.parametrize("screen", ["tools", "tools?q=say", "servers/talks"])
def test_a_list_says_the_beginning_of_what_its_tools_say(context: BrowserContext, url: str, screen: str) -> None:
    """What is long is read at the tool."""
    with visiting(context, url) as visit:
        page = visit.open(screen)
        expect(page.get_by_role("row").nth(10)).to_be_visible()
        assert len(page.locator("main").text_content() or "") < MOST_SAID
        page.get_by_role("link", name=re.compile("tool_")).first.click()
        page.get_by_role("button", name=re.compile("^Show all 25[0-9],")).first.click()
        expect(page.get_by_role("button", name="Show less")).to_be_visible()


def test_a_program_is_given_all_that_a_tool_says(url: str) -> None:
    """Unless it asks for brief rows; the tool itself always has the whole."""
    address = f"{url}/api/tools?prefix=talks__tool_&limit=1"
    (whole,), (brief,) = rest(address)["tools"], rest(f"{address}&brief=true")["tools"]
    assert len(whole["description"]) == len("say " * (LONG // 4))
    assert brief == {**whole, "description": f"{whole['description'][:299]}…"}
    assert len(rest(f"{url}/api/tools/{whole['name']}")["description"]) == len(whole["description"])


def test_a_pattern_of_many_stars_is_answered(context: BrowserContext, url: str) -> None:
    """Calls that come in are compared with it, and the page goes on; stars mean anything in their order."""
    tool = "heavy__get_weather_for_a_place_and_a_day"
    with visiting(context, url) as visit:
        page = visit.open(f"calls?tool={'*' * 80}!")
        expect(page.get_by_text("No calls that fit.")).to_be_visible()
        with page.expect_event("console", lambda said: said.text == "heard"):
            # What the page hears of the call, heard here too.
            page.evaluate(
                """() => new Promise((open) => {
                    const events = new EventSource("/api/events");
                    events.addEventListener("hello", open);
                    events.addEventListener("call", () => { events.close(); console.debug("heard"); });
                })"""
            )
            rest(f"{url}/api/tools/{tool}/call", "POST", {})
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Go on")).to_be_visible()
        expect(page.get_by_text("No calls that fit.")).to_be_visible()
        for pattern, number in (("heavy__*weather**day", 1), ("*day*weather*", 0), ("heavy*y__get*", 0)):
            visit.open(f"calls?tool={pattern}&outcome=ok")
            rest(f"{url}/api/tools/{tool}/call", "POST", {})
            found = page.get_by_role("row").filter(has_text=tool)
            expect(found.first if number else page.get_by_text("No calls that fit.")).to_be_visible()


def test_progress_and_questions_that_are_none_break_nothing(context: BrowserContext, url: str) -> None:
    """They are shown as text, asked without fields, or said to be nothing."""
    progress = {"progress": {"a": 1}, "total": [1], "message": {"b": None}}
    told = f"event: progress\ndata: {json.dumps(progress)}\n\n"
    with visiting(context, url) as visit:
        page = visit.open("tools/heavy__get_weather_for_a_place_and_a_day")
        _tell(page, told + _question({"q": None, "other": {"params": None}, "third": {"params": 5}}))
        page.get_by_role("button", name="Call", exact=True).click()
        dialog = page.get_by_role("dialog", name="heavy asks")
        expect(page.get_by_text('{"a": 1} of [1]')).to_be_visible()
        for _ in range(2):
            dialog.get_by_role("button", name="Decline").click()
        _tell(page, told + _question({}))
        dialog.get_by_role("button", name="Decline").click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_text("The server asks nothing.")).to_be_visible()


def test_a_folder_that_an_address_names_is_opened_by_a_click(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """Before, the gateway reads nothing there; so it is after a reload."""
    tasks = tmp_path / "openspec/changes/elsewhere/tasks.md"
    tasks.parent.mkdir(parents=True)
    tasks.write_text("- [ ] Only here\n", "utf-8")
    with visiting(context, url) as visit:
        page = visit.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
        visit.open(f"tasks?folder={tmp_path}")
        button = page.get_by_role("button", name="Open this folder")
        expect(button).to_be_visible()
        visit.check_accessible()
        assert [each for each in asked if tmp_path.name in each.split("#")[0]] == []
        button.click()
        expect(page.get_by_role("link", name="elsewhere", exact=True).first).to_be_visible()
        page.reload()
        button.click()
        expect(page.get_by_role("link", name="elsewhere", exact=True).first).to_be_visible()
        asked.clear()
        other = tmp_path / "other"
        other.mkdir()
        visit.open(f"clients/cursor?scope=project&project={other}")
        expect(button).to_be_visible()
        assert not [each for each in asked if "/preview" in each]
        button.click()
        expect(page.get_by_role("heading", name="Preview")).to_be_visible()


def _question(requests: Any) -> str:
    data = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    return f"event: input\ndata: {json.dumps({'success': True, 'data': data})}\n\n"


def _tell(page: Page, events: str) -> None:
    """Answer the next calls with these events."""
    page.route("**/call", lambda route: route.fulfill(body=events, content_type="text/event-stream"))
