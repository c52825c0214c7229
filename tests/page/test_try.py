"""Trying a tool at the page: a form from its schema and the same as JSON, the call while it runs, what its server asks,
and what it gives. What a server really received is read from the bytes that came to it.

It is long because every test of it tries tools of the same gateway, which takes long to start.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from auth.provider import open_provider
from forking import warm_start
from harness import toy
from login.protected import open_protected
from page import PHONE, gateway, rest, visiting

VERBATIM = Path(__file__).parents[1] / "servers" / "verbatim.py"
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "Überlänge" * 30 + "工具" * 200
READS: dict[str, Any] = {"readOnlyHint": True}
TEXT: dict[str, Any] = {"type": "string"}
BIG = 9007199254740993


def tool(name: str, *, defs: Any = None, required: list[str] | None = None, **properties: Any) -> str:
    """A tool's definition, as text."""
    schema = {"type": "object", "properties": properties, "required": required or [], "$defs": defs or {}}
    return json.dumps({"name": name, "inputSchema": schema, "annotations": READS})


ADDRESS = {"type": "object", "properties": {"street": TEXT, "number": {"type": "integer"}}, "required": ["street"]}
NODE = {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}
TOOLS = [
    tool(
        "optional", a=TEXT, b={"type": "integer"}, c={"type": "array", "items": TEXT}, d=ADDRESS, e={"enum": ["x", "y"]}
    ),
    tool(
        "needed",
        required=["list", "home"],
        list={"type": "array", "items": {"type": "integer"}},
        home=ADDRESS,
        free=TEXT,
    ),
    tool(
        "nullable",
        required=["kept"],
        kept={"type": ["string", "null"]},
        either={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        choice={"type": ["string", "null"], "enum": ["on", "off", None]},
    ),
    tool(
        "composed",
        defs={"size": {"type": "integer", "title": "Size"}, "half": {"properties": {"b": TEXT}}},
        size={"$ref": "#/$defs/size"},
        both={"type": "object", "allOf": [{"properties": {"a": TEXT}}, {"$ref": "#/$defs/half"}]},
        union={"anyOf": [ADDRESS, {"type": "array"}]},
        numbers={"enum": [1, 2]},
    ),
    tool(
        "formats",
        required=["count"],
        count={"type": "integer", "default": BIG},
        amount={"type": "number", "examples": [1.5]},
        mail={"type": "string", "format": "email"},
        site={"type": "string", "format": "uri"},
        day={"type": "string", "format": "date"},
        at={"type": "string", "format": "date-time"},
        secret={"type": "string", "writeOnly": True},
        password={"type": "string", "format": "password"},
        flag={"type": "boolean"},
        where={"type": "string", "examples": ["Lisbon"]},
    ),
    tool(
        "limited",
        amount={"type": "number", "minimum": 0, "exclusiveMaximum": 10},
        free={"type": "integer"},
        word={"type": "string", "minLength": 2, "maxLength": 3},
        rows={"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2},
    ),
    tool(
        "hostile",
        defs={"node": {**NODE, "required": ["left", "right"]}},
        required=["word", "tree"],
        word={"enum": [HOSTILE, "b"], "title": HOSTILE, "description": HOSTILE * 10},
        tree={"$ref": "#/$defs/node"},
        **{HOSTILE: TEXT},
    ),
]
# What no server may list, and may ask all the same.
NONSENSE = {
    "type": "object",
    "properties": {
        "a": {"type": 5, "format": {"x": 1}},
        "b": {"$ref": "#/properties/b"},
        "c": {"type": "object", "properties": []},
        "d": {"type": "string", "format": "constructor", "title": {"x": 1}, "enum": 5},
        "e": {"enum": ["x"], "enumNames": [{"y": 1}]},
        "f": 7,
        "g": {"type": "string", "format": {"toString": 1}, "examples": [{}]},
    },
    "required": "all",
}
DESTRUCTIVE = {"name": "wipe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}}
HARMLESS = {"name": "look", "inputSchema": {"type": "object"}, "annotations": READS}
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
SHOWN = {
    "content": [
        {"type": "text", "text": HOSTILE},
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"},
        {"type": "resource_link", "uri": "javascript:alert(1)", "name": "press me"},
        {"type": "resource_link", "uri": "https://example.com/a", "name": "elsewhere\u202e"},
        {"type": "hologram", "beam": [1, None]},
    ],
    "structuredContent": {"big": 2**80, "\u2067turned": "\u202eturned"},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with tools of every kind of schema, and a toy whose tools take their time, ask, and answer oddly."""
    shown = [{**HARMLESS, "name": name} for name in ("look", "huge")]
    servers = {
        "v": {"command": sys.executable, "args": ["-I", "-S", str(VERBATIM), *TOOLS], "unicode": "allow"},
        "toy": toy(name="toy", features=["tools", "asking"], raw_tools=[DESTRUCTIVE, *shown], results={"huge": SHOWN}),
        "lost": {"command": "/nonexistent/program"},
    }
    with gateway(tmp_path_factory.mktemp("try"), servers) as address:
        for name in ("v", "toy"):
            rest(f"{address}/api/servers/{name}/refresh", "POST", {})
        yield address


def field(page: Page | Locator, name: str) -> Locator:
    """The field of this name."""
    return page.get_by_label(re.compile(rf"^{re.escape(name)}( required)?( JSON)?$"))


def call(page: Page) -> None:
    """Press Call, and say that it is meant where that is asked."""
    page.get_by_role("button", name="Call", exact=True).click()


def received(page: Page) -> str:
    """Call the tool, and have what came to its server, byte for byte."""
    call(page)
    expect(page.get_by_role("button", name="Call", exact=True)).to_have_attribute("aria-busy", "false")
    page.get_by_role("heading", name="Result").wait_for()
    text = page.get_by_role("button", name="As text")
    if text.count():
        text.click()
    return page.locator("section", has=page.get_by_role("heading", name="Result")).locator("pre").inner_text()


def test_what_is_left_alone_is_absent(context: BrowserContext, url: str) -> None:
    """No empty text, no null, no empty list; and what was taken back is as if it had never been there."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__optional")
        assert received(page) == "{}"
        field(page, "a").fill("x")
        field(page, "b").fill("1")
        page.get_by_role("button", name="Add c").click()
        page.get_by_role("button", name="Add d").click()
        field(page, "e").select_option("y")
        field(page, "street").fill("Long")
        field(page, "Item 1").fill("one")
        page.reload()
        page.get_by_role("button", name="Add c").wait_for()
        field(page, "a").fill("x")
        field(page, "a").fill("")
        field(page, "b").fill("1")
        field(page, "b").fill("")
        page.get_by_role("button", name="Add c").click()
        page.get_by_role("button", name="Remove Item 1").click()
        page.get_by_role("button", name="Add d").click()
        page.get_by_role("button", name="Leave out d").click()
        field(page, "e").select_option("y")
        field(page, "e").select_option("")
        assert received(page) == "{}"


def test_what_must_be_there_is(context: BrowserContext, url: str) -> None:
    """A list begins empty, an object with what it must have; items are added, moved and taken out. A field that has to
    be filled is asked for before anything is sent; what stands there as JSON is sent as it is."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__needed")
        call(page)
        expect(field(page, "street")).to_be_focused()
        assert field(page, "street").evaluate("field => field.validity.valueMissing")
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)
        page.get_by_role("button", name="JSON", exact=True).click()
        assert json.loads(received(page)) == {"list": [], "home": {}}
        page.get_by_label("All as JSON").fill('{"home": {"street": "x"}}')
        page.get_by_role("button", name="Form", exact=True).click()
        call(page)
        expect(field(page, "list")).to_be_focused()
        page.get_by_label("list").fill("[]")
        field(page, "street").fill("")
        for number in range(3):
            page.get_by_role("button", name="Add an item to list").click()
            expect(page.get_by_role("button", name="Call", exact=True)).to_be_disabled()
            field(page, f"Item {number + 1}").fill(str(number))
        page.get_by_role("button", name="Move item 3 of list up").click()
        page.get_by_role("button", name="Remove Item 1").click()
        field(page, "street").fill("Rua\nnova")
        visit.check_accessible()
        assert json.loads(received(page)) == {"list": [2, 1], "home": {"street": "Rua\nnova"}}


def test_keys_call_and_the_address_keeps_the_arguments(context: BrowserContext, url: str) -> None:
    """Enter in a field of one line, Ctrl+Enter anywhere, but in a name of another member Enter adds it. Whoever comes
    back finds what was sent, unless the tool takes secrets."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__optional")
        field(page, "a").fill("two\nlines")
        field(page, "b").fill(str(BIG))
        field(page, "b").press("Enter")
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        visit.open("tools")
        page.go_back()
        expect(field(page, "a")).to_have_value("two\nlines")
        expect(field(page, "b")).to_have_value(str(BIG))
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)
        field(page, "a").press("Control+Enter")
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        page = visit.open("tools/v__formats")
        field(page, "count").press("Enter")
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        assert "arguments" not in page.url
        page = visit.open("tools/toy__look")
        page.get_by_label("Another member").fill("x")
        page.get_by_label("Another member").press("Enter")
        expect(page.get_by_role("button", name="Remove x")).to_be_visible()
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)


def test_a_browser_that_rounds_says_so(context: BrowserContext, url: str) -> None:
    """Older ones do not tell how a number stands in a text; others say nothing."""
    said = "This browser rounds numbers"
    with visiting(context, url) as visit:
        expect(visit.open("tools/v__optional").get_by_text(said)).to_have_count(0)
        visit.page.add_init_script(
            "const parse = JSON.parse;"
            "JSON.parse = (text, read) => parse(text, read && ((name, value) => read(name, value)))"
        )
        visit.page.reload()
        expect(visit.page.get_by_text(said)).to_be_visible()


def test_what_may_be_null_can_be_cleared(context: BrowserContext, url: str) -> None:
    """It is the field of what else it may be; null is sent where something has to be, and where it is chosen."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__nullable")
        assert json.loads(received(page)) == {"kept": None}
        field(page, "kept").fill("x")
        field(page, "either").fill("7")
        field(page, "choice").select_option("null")
        assert json.loads(received(page)) == {"kept": "x", "either": 7, "choice": None}
        field(page, "kept").fill("")
        field(page, "either").fill("")
        field(page, "choice").select_option("off")
        assert json.loads(received(page)) == {"kept": None, "choice": "off"}


def test_references_and_parts_of_schemas_are_put_together(context: BrowserContext, url: str) -> None:
    """What only a validator could tell is JSON, and that part of the form alone."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__composed")
        page.get_by_label("Size size").fill("3")
        page.get_by_role("button", name="Add both").click()
        field(page, "a").fill("A")
        field(page, "b").fill("B")
        field(page, "union").fill('{"street": "S", "number": 1e400}')
        field(page, "numbers").select_option("2")
        expected = '{"size":3,"both":{"a":"A","b":"B"},"union":{"street":"S","number":1e400},"numbers":2}'
        assert received(page) == expected


def test_formats_are_inputs_and_numbers_keep_their_digits(chromium: Browser, url: str) -> None:
    """Defaults are there, examples are hints, secrets are masked also with spaces in them, and a moment is that of the
    browser's own zone, whatever year is typed on the way."""
    context = chromium.new_context(timezone_id="Europe/Berlin", locale="en-US")
    with visiting(context, url) as visit:
        page = visit.open("tools/v__formats")
        expect(field(page, "count")).to_have_value(str(BIG))
        expect(field(page, "where")).to_have_attribute("placeholder", "Lisbon")
        expect(field(page, "amount")).to_have_attribute("placeholder", "1.5")
        for name, kind in {"mail": "email", "site": "url", "day": "date", "secret": "password"}.items():
            expect(field(page, name)).to_have_attribute("type", kind)
        field(page, "secret").press_sequentially("two words ")
        expect(field(page, "secret")).to_have_attribute("type", "password")
        expect(field(page, "password")).to_have_attribute("type", "password")
        field(page, "amount").fill("1e400")
        field(page, "mail").fill("a@b.c")
        field(page, "day").fill("2026-11-18")
        field(page, "flag").select_option("false")
        field(page, "at").focus()
        page.keyboard.type("11182026")
        page.keyboard.press("Tab")
        page.keyboard.type("093000AM")
        expect(page.get_by_text("Sent as 2026-11-18T08:30:00Z.")).to_be_visible()
        # Another year, digit by digit: on the way there are years of long ago.
        for digits in ("11182025", "11182026"):
            page.get_by_role("heading", level=1).focus()
            field(page, "at").focus()
            page.keyboard.type(digits)
            expect(page.get_by_text(f"Sent as {digits[4:]}-11-18T08:30:00Z.")).to_be_visible()
        sent = received(page)
    assert f'"count":{BIG},' in sent
    assert '"amount":1e400' in sent
    assert json.loads(sent) == {
        "count": BIG,
        "amount": float("inf"),
        "mail": "a@b.c",
        "day": "2026-11-18",
        "at": "2026-11-18T08:30:00Z",
        "secret": "two words ",
        "flag": False,
    }
    context.close()


def test_form_and_json_are_the_same(context: BrowserContext, url: str) -> None:
    """At any time, in both directions and without a loss: other members, exact numbers, and what is no value yet."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__optional")
        field(page, "a").fill("x")
        field(page, "b").fill("12x")
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_disabled()
        expect(page.get_by_role("status").filter(has_text="b: This is not a number.")).to_be_visible()
        page.get_by_role("button", name="JSON", exact=True).click()
        box = page.get_by_label("All as JSON")
        expect(box).to_have_value('{\n  "a": "x",\n  "b": 12x\n}')
        page.get_by_role("button", name="Form", exact=True).click()
        expect(field(page, "b")).to_have_value("12x")
        field(page, "b").fill(str(BIG))
        page.get_by_role("button", name="JSON", exact=True).click()
        box.fill(f'{{"a": "x", "b": {BIG}, "more": 1.0, "c": ["q"')
        expect(box).to_have_accessible_description(re.compile("JSON.*column 57"))
        expect(page.get_by_role("status").filter(has_text="This is no JSON yet.")).to_be_visible()
        expect(page.get_by_role("button", name="Form", exact=True)).to_be_disabled()
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_disabled()
        box.press_sequentially("]}")
        page.get_by_role("button", name="Form", exact=True).click()
        expect(field(page, "Item 1")).to_have_value("q")
        expect(field(page, "more")).to_have_value("1.0")
        assert received(page) == f'{{"a":"x","b":{BIG},"more":1.0,"c":["q"]}}'
        page.get_by_role("button", name="JSON", exact=True).click()
        box.fill("")
        expect(box).to_have_value("")
        assert received(page) == "{}"
        box.fill("[1]")
        expect(page.get_by_text("The arguments are an object: { … }")).to_be_visible()


def test_what_was_typed_stays_where_it_was(context: BrowserContext, url: str) -> None:
    """A part that is JSON keeps spaces and half a text; a call changes nothing in the form."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__composed")
        box = field(page, "union")
        box.fill('{ "street" :')
        expect(page.get_by_role("status").filter(has_text="union: Unexpected end of JSON")).to_be_visible()
        page.get_by_label("Size size").fill("4")
        expect(box).to_have_value('{ "street" :')
        box.press_sequentially(' "S" }')
        call(page)
        page.get_by_role("heading", name="Result").wait_for()
        expect(box).to_have_value('{ "street" : "S" }')
        expect(page.get_by_label("Size size")).to_have_value("4")


def test_the_address_brings_arguments(context: BrowserContext, url: str) -> None:
    """A call is repeated with changes from a link, with every digit; the tool's latest calls are listed as they end."""
    with visiting(context, url) as visit:
        given = f'{{"a": "again", "b": {BIG}}}'
        page = visit.open(f"tools/v__optional?arguments={quote(given)}")
        expect(field(page, "b")).to_have_value(str(BIG))
        field(page, "a").fill("changed")
        expect(page.get_by_text("Reading …")).to_have_count(0)
        before = page.get_by_role("table", name="Latest calls of v__optional").locator("tbody tr").count()
        call(page)
        page.get_by_role("dialog").get_by_role("button", name="Call it").click()
        page.get_by_role("heading", name="Result").wait_for()
        assert received(page) == f'{{"a":"changed","b":{BIG}}}'
        expect(page.get_by_role("table", name="Latest calls of v__optional").locator("tbody tr")).to_have_count(
            before + 2
        )
        page = visit.open("tools/v__optional?arguments=%7Bbroken")
        expect(page.get_by_label("All as JSON")).to_have_value("{broken")
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_disabled()


def test_arguments_of_a_link_are_asked_about(context: BrowserContext, url: str) -> None:
    """With what the page was loaded with, a tool is called by whoever has read that, whatever its hints are; with what
    was chosen here it is called at once."""
    with visiting(context, url) as visit:
        theirs, own = (quote(json.dumps({"by": name})) for name in ("them", "me"))
        page = visit.open(f"tools/toy__look?arguments={theirs}")
        call(page)
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text('A link led here. The arguments: {"by": "them"}')
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)
        call(page)
        dialog.get_by_role("button", name="Call it").click()
        expect(page.get_by_text("toy:look")).to_be_visible()
        for again in (page.reload, lambda: visit.open(f"tools/toy__look?arguments={own}")):
            again()
            expect(page.get_by_role("heading", name="Result")).to_have_count(0)
            call(page)
            expect(page.get_by_text("toy:look")).to_be_visible()
            expect(dialog).to_have_count(0)


@pytest.mark.parametrize("name", ["api_key", "authToken", "Password", "client-secret"])
def test_what_looks_secret_does_not_stay_in_the_address(context: BrowserContext, url: str, name: str) -> None:
    """Browsers keep addresses; a name in the schema or in the arguments says it."""
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__look")
        for given, is_kept in (({name: "tulip"}, False), ({"max_tokens": 5}, True)):
            page.get_by_role("button", name="JSON", exact=True).click()
            page.get_by_label("All as JSON").fill(json.dumps(given))
            with page.expect_response("**/call"):
                call(page)
            assert ("arguments" in page.url) is is_kept


def test_what_may_destroy_is_asked_once_more(context: BrowserContext, url: str) -> None:
    """In words, before its first call; what only reads is called at once."""
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__wipe")
        expect(page.get_by_text("destructive", exact=True)).to_be_visible()
        call(page)
        expect(page.get_by_role("dialog")).to_contain_text("may change or delete")
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)
        call(page)
        page.get_by_role("button", name="Call it").click()
        expect(page.get_by_text("toy:wipe")).to_be_visible()
        call(page)
        expect(page.get_by_role("dialog")).to_have_count(0)
        page = visit.open("tools/toy__look")
        expect(page.get_by_text("reads only")).to_be_visible()
        call(page)
        expect(page.get_by_text("toy:look")).to_be_visible()


def test_progress_is_seen_and_a_call_is_cancelled(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """Numbers and words as they come; its server hears that nobody waits any more."""
    with visiting(context, url) as visit:
        arguments = quote(json.dumps({"steps": 3, "gates": str(tmp_path)}))
        page = visit.open(f"tools/toy__progress?arguments={arguments}")
        call(page)
        page.get_by_role("button", name="Call it").click()
        for step in (1, 2):
            (tmp_path / str(step)).touch()
            expect(page.get_by_text(f"{step} of 3 · step {step}")).to_be_visible()
            expect(page.get_by_role("progressbar")).to_have_attribute("max", "3")
        (tmp_path / "3").touch()
        expect(page.get_by_text("3 steps, token given")).to_be_visible()
        expect(page.get_by_role("progressbar")).to_have_count(0)
        page = visit.open("tools/v__talk")
        call(page)
        page.get_by_role("button", name="Call it").click()
        page.get_by_role("dialog", name="v asks").get_by_role("button", name="Send").wait_for()
        expect(page.get_by_text("0.50000000000000000000", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_text("ok", exact=True).first).to_be_visible()
        before = rest(f"{url}/api/tools/toy__seen/call", "POST", {})["structuredContent"]
        arguments = quote('{"seconds": 60}')
        page = visit.open(f"tools/toy__sleep?arguments={arguments}")
        call(page)
        page.get_by_role("button", name="Call it").click()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_enabled()
        expect(page.get_by_role("table", name="Latest calls of toy__sleep")).to_contain_text("cancelled")
        seen = rest(f"{url}/api/tools/toy__seen/call", "POST", {})["structuredContent"]
        assert len(seen["cancelled"]) == len(before["cancelled"]) + 1


def test_a_servers_question_is_answered(context: BrowserContext, url: str) -> None:
    """A form as its schema says, with every digit, and another one after it; declining and cancelling are answers."""
    with visiting(context, url) as visit:
        page = visit.open(f"tools/toy__ask_form?arguments={quote(json.dumps({'who': 'Ada'}))}")
        call(page)
        page.get_by_role("button", name="Call it").click()
        dialog = page.get_by_role("dialog", name="toy asks")
        expect(dialog).to_contain_text("Is it Ada? 😀")
        visit.check_accessible()
        dialog.get_by_label("big").fill("x")
        expect(dialog.get_by_role("button", name="Send")).to_be_disabled()
        dialog.get_by_label("big").fill(str(BIG))
        dialog.get_by_role("button", name="Send").click()
        expect(dialog.get_by_label("Name")).to_be_focused()
        dialog.get_by_role("button", name="JSON", exact=True).click()
        dialog.get_by_role("button", name="Send").click()
        expect(dialog.get_by_role("status")).to_have_text("Required: name")
        dialog.get_by_role("button", name="Form", exact=True).click()
        dialog.get_by_label("Name").fill("Grace")
        dialog.get_by_role("button", name="Send").click()
        shown = page.locator(".columns pre")
        page.get_by_role("button", name="As text").click()
        expect(shown).to_contain_text(f'"content": {{"big": {BIG}, "name": "Grace"}}')
        for press, action in (("Decline", "decline"), ("Cancel", "cancel")):
            call(page)
            dialog.get_by_role("button", name=press).click()
            expect(shown).to_contain_text(f'"action": "{action}"')
        page = visit.open("tools/toy__ask_twice")
        call(page)
        page.get_by_role("button", name="Call it").click()
        dialog.get_by_label("Name").fill("first")
        dialog.get_by_role("button", name="Send").click()
        expect(dialog).to_contain_text("Is it first again?")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="As text").click()
        expect(shown).to_contain_text('"second": {"action": "cancel"}')


def test_a_question_may_lead_to_a_page(context: BrowserContext, url: str) -> None:
    """Where it leads is said, nothing is opened but by a click, and what has been done there goes on."""
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__ask_url")
        call(page)
        page.get_by_role("button", name="Call it").click()
        dialog = page.get_by_role("dialog", name="toy asks")
        expect(dialog).to_contain_text("open a page at example.com")
        link = dialog.get_by_role("link")
        expect(link).to_have_attribute("href", "https://example.com/pay?q=ü")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        assert len(context.pages) == 1
        visit.check_accessible()
        dialog.get_by_role("button", name="I have been there").click()
        page.get_by_role("button", name="As text").click()
        expect(page.locator(".columns pre")).to_contain_text('"action": "accept"')


def test_a_question_that_names_another_server_is_seen_to_be_of_its_own(context: BrowserContext, url: str) -> None:
    """The name that the gateway puts before the words stays: another one behind it is the server's own."""
    with visiting(context, url) as visit:
        page = visit.open(f"tools/toy__ask_url?arguments={quote(json.dumps({'who': '[seen] Ada'}))}")
        call(page)
        page.get_by_role("button", name="Call it").click()
        expect(page.get_by_role("dialog", name="toy asks").get_by_text("[toy] Go there, [seen] Ada")).to_be_visible()
        page.get_by_role("dialog").get_by_role("button", name="Decline").click()


@pytest.mark.parametrize("mode", ["form", "url"])
def test_nonsense_that_is_asked_breaks_nothing(context: BrowserContext, url: str, mode: str) -> None:
    """A schema of no schema is JSON where it is one, and an address that is no web page is no link."""
    asked = {"message": HOSTILE, "mode": mode, "requestedSchema": NONSENSE, "url": "javascript:alert(1)"}
    answer = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": asked}}}
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__look")
        told = json.dumps({"success": True, "data": {**answer, "requestState": "s"}})
        page.route(
            "**/api/tools/toy__look/call",
            lambda route: route.fulfill(body=f"event: input\ndata: {told}\n\n", content_type="text/event-stream"),
        )
        call(page)
        dialog = page.get_by_role("dialog", name="toy asks")
        expect(dialog).to_contain_text("<img src=x")
        assert dialog.locator("img").count() == 0
        assert dialog.get_by_role("link").count() == 0
        visit.check_accessible()
        if mode == "form":
            field(dialog, "a").fill("[1]")
            expect(dialog.get_by_role("button", name="Send")).to_be_enabled()
        page.unroute("**/api/tools/toy__look/call")
        dialog.get_by_role("button", name="Decline").click()
        expect(page.get_by_role("heading", name="Result")).to_be_visible()


def test_a_hostile_schema_breaks_nothing(context: BrowserContext, url: str) -> None:
    """Long and foreign words stay text within the window, and what must be within itself comes to an end."""
    with visiting(context, url) as visit:
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        page = visit.open("tools/v__hostile")
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
        assert page.locator("main img").count() == 0
        visit.check_accessible()
        page.get_by_role("combobox").select_option(index=1)
        # What must be within itself is never whole.
        page.get_by_role("button", name="JSON", exact=True).click()
        assert json.loads(received(page))["word"] == HOSTILE


def test_a_result_is_shown_and_never_run(context: BrowserContext, url: str) -> None:
    """Known pictures are shown and others named, a link is one only on the web, signs that turn text turn nothing."""
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__huge")
        call(page)
        page.get_by_role("heading", name="Result").wait_for()
        expect(page.get_by_role("img", name="Picture of the result, image/png")).to_be_visible()
        assert page.locator("main img").count() == 1
        expect(page.get_by_text("image/svg+xml, 6 bytes: not shown.")).to_be_visible()
        expect(page.get_by_role("link", name="elsewhere\\u202e")).to_have_attribute("href", "https://example.com/a")
        expect(page.get_by_role("link", name="press me")).to_have_count(0)
        expect(page.get_by_text("resource of its server")).to_have_count(1)
        expect(page.get_by_role("button", name="Copy the address")).to_have_count(2)
        expect(page.get_by_text("1208925819614629174706176")).to_be_visible()
        shown = page.locator("section", has=page.get_by_role("heading", name="Result"))
        expect(shown).to_contain_text('\\u2067turned: "\\u202eturned"')
        expect(shown).to_contain_text("<img src=x onerror=alert(1)>\\u202eÜberlänge")
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown.inner_text())
        visit.check_accessible()


def test_a_megabyte_is_a_closed_tree(context: BrowserContext, url: str) -> None:
    """It goes there and back, is read once somebody wants its tree, and is shown in parts."""
    rows = json.dumps({"rows": [{"n": number, "t": "x" * 100} for number in range(9000)]})
    with visiting(context, url) as visit:
        page = visit.open("tools/v__echo")
        page.get_by_role("button", name="JSON", exact=True).click()
        page.get_by_label("All as JSON").fill(rows)
        call(page)
        page.get_by_role("button", name="Call it").click()
        result = page.locator("section", has=page.get_by_role("heading", name="Result"))
        expect(result.get_by_text('"rows"').first).to_be_visible()
        expect(result.get_by_text("rows: [ 9,000 ]")).to_have_count(0)
        result.get_by_role("button", name="As a tree").click()
        result.get_by_text("rows: [ 9,000 ]").first.click()
        expect(page.get_by_text("Show more of 9,000")).to_be_visible()
        page.get_by_role("button", name="As text").click()
        some = page.get_by_role("button", name=re.compile(r"Show 300,000 of 1,\d\d\d,\d\d\d characters"))
        expect(some).to_be_visible()


def test_a_number_is_within_its_limits(context: BrowserContext, url: str) -> None:
    """What the form says of a number holds before it is sent."""
    with visiting(context, url) as visit:
        page = visit.open("tools/v__limited")
        for wrong, words in (("-1", "at least 0"), ("10", "less than 10")):
            field(page, "amount").fill(wrong)
            page.get_by_role("button", name="Call", exact=True).click()
            expect(field(page, "amount")).to_be_focused()
            assert field(page, "amount").evaluate("field => field.validationMessage") == f"It has to be {words}."
        field(page, "amount").fill("0")
        field(page, "free").fill("-1")
        assert json.loads(received(page)) == {"amount": 0, "free": -1}


def refused(where: Page | Locator, name: str, wrong: str, send: str) -> str:
    """What is said where this is sent: the field is where one goes on."""
    field(where, name).fill(wrong)
    where.get_by_role("button", name=send, exact=True).click()
    expect(field(where, name)).to_be_focused()
    return field(where, name).evaluate("field => field.validationMessage")


def test_nothing_is_sent_that_the_form_says_is_not_allowed(context: BrowserContext, url: str) -> None:
    """Whole numbers by their digits, texts by their characters, lists by their items; also where a server asks."""
    large = "123456789012345678901234567890"
    with visiting(context, url) as visit:
        page = visit.open("tools/v__limited")
        for wrong in ("12.5", f"{large}.5", "1e-1"):
            assert refused(page, "free", wrong, "Call") == "It has to be a whole number."
        for right in ("1.50e1", "12.0", large):
            field(page, "free").fill(right)
            assert field(page, "free").evaluate("field => field.validationMessage") == ""
        assert refused(page, "word", "a", "Call") == "Its characters have to be at least 2."
        assert refused(page, "word", "😀😀😀😀", "Call") == "Its characters have to be at most 3."
        field(page, "word").fill("😀😀😀")
        page.get_by_role("button", name="Add rows").click()
        for number, words in ((1, "at least"), (2, ""), (3, "at most")):
            if number > 1:
                page.get_by_role("button", name="Add an item to rows").click()
            field(page, f"Item {number}").fill(str(number))
            said = page.get_by_text("Its items have to be")
            if not words:
                expect(said).to_have_count(0)
                continue
            expect(said).to_have_text(f"Its items have to be {words} 2.")
            page.get_by_role("button", name="Call", exact=True).click()
            expect(field(page, "Item 1")).to_be_focused()
            visit.check_accessible()
        assert page.get_by_role("heading", name="Result").count() == 0
        page.get_by_role("button", name="Remove Item 3").click()
        assert json.loads(received(page)) == {"free": int(large), "word": "😀😀😀", "rows": ["1", "2"]}
        page = visit.open(f"tools/toy__ask_form?arguments={quote(json.dumps({'who': 'Ada'}))}")
        call(page)
        page.get_by_role("button", name="Call it").click()
        dialog = page.get_by_role("dialog", name="toy asks")
        dialog.get_by_label("Name").fill("Grace")
        assert refused(dialog, "big", "12.5", "Send") == "It has to be a whole number."
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)


@pytest.mark.parametrize("name", ["key", "kind", "link", "error"])
def test_no_word_is_too_long_to_be_drawn(context: BrowserContext, url: str, name: str) -> None:
    """Whatever a server calls its keys, kinds, addresses and errors: its beginning is drawn, at once."""
    long = "x" * 3_000_000
    link = {"type": "resource_link", "uri": f"https://example.com/{long}", "name": long}
    answer: dict[str, Any] = {
        "key": {"success": True, "data": {"content": [], "structuredContent": {long: 1, "n": {long: []}}}},
        "kind": {"success": True, "data": {"content": [{"type": "image", "data": "eA==", "mimeType": long}]}},
        "link": {"success": True, "data": {"content": [link, {"type": "resource", "resource": {"uri": long}}]}},
        "error": {"success": False, "error": {"code": long, "message": long}},
    }[name]
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__look")
        told = json.dumps(answer)
        page.route(
            "**/api/tools/toy__look/call",
            lambda route: route.fulfill(body=f"event: result\ndata: {told}\n\n", content_type="text/event-stream"),
        )
        call(page)
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        expect(page.get_by_text("xxx…").first).to_be_visible()
        drawn = page.evaluate("document.querySelector('main').innerText.length")
        assert drawn < 20_000, drawn


def test_no_word_of_a_question_is_too_long_to_be_drawn(context: BrowserContext, url: str) -> None:
    """Names that are required and not there, and those of the form's fields."""
    long = "x" * 1_000_000
    schema = {"type": "object", "properties": {long: {**TEXT, "title": long}}, "required": [long]}
    asked = {"message": long, "requestedSchema": schema}
    answer = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": asked}}}
    told = json.dumps({"success": True, "data": {**answer, "requestState": "s"}})
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__look")
        page.route(
            "**/api/tools/toy__look/call",
            lambda route: route.fulfill(body=f"event: input\ndata: {told}\n\n", content_type="text/event-stream"),
        )
        call(page)
        dialog = page.get_by_role("dialog", name="toy asks")
        dialog.get_by_role("button", name="JSON", exact=True).click()
        dialog.get_by_role("button", name="Send").click()
        expect(dialog.get_by_role("status")).to_contain_text("Required: xxx")
        dialog.get_by_role("button", name="Form", exact=True).click()
        expect(dialog.get_by_text("required", exact=True)).to_be_visible()
        assert dialog.evaluate("dialog => dialog.innerText.length") < 5000
        page.unroute("**/api/tools/toy__look/call")
        dialog.get_by_role("button", name="Decline").click()


def test_a_link_that_looks_like_another_address_says_where_it_leads(context: BrowserContext, url: str) -> None:
    """The true host is before the words, and of a long one its end; where a user's name hides it there is no link."""
    named = [("https://evil.example/a", "https://bank.example/login"), ("https://good.example/b", "Read me")]
    long = f"https://bank.example{'.a' * 100}.evil.example/"
    hidden = "https://bank.example%2Flogin@evil.example/"
    items = [{"type": "resource_link", "uri": uri, "name": "x", "title": title} for uri, title in named]
    items += [{"type": "resource_link", "uri": uri, "name": uri} for uri in (long, hidden)]
    told = json.dumps({"success": True, "data": {"content": items}})
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__look")
        page.route(
            "**/api/tools/toy__look/call",
            lambda route: route.fulfill(body=f"event: result\ndata: {told}\n\n", content_type="text/event-stream"),
        )
        call(page)
        links = page.locator("section", has=page.get_by_role("heading", name="Result")).get_by_role("link")
        texts = [
            "evil.example: https://bank.example/login",
            "Read me",
            re.compile(r"^…[a.]+\.evil\.example: https://bank"),
        ]
        expect(links).to_have_text(texts)


def test_errors_are_shown_as_they_were_said(context: BrowserContext, url: str) -> None:
    """Those of the tool, those of its server, and of a tool that cannot be used it says why before it is called."""
    with visiting(context, url) as visit:
        page = visit.open("tools/toy__fails")
        call(page)
        page.get_by_role("button", name="Call it").click()
        # It stands in the list of latest calls, too.
        expect(page.get_by_text("tool error", exact=True).first).to_be_visible()
        expect(page.get_by_text("it went wrong")).to_be_visible()
        page = visit.open("tools/toy__refuses")
        call(page)
        page.get_by_role("button", name="Call it").click()
        expect(page.get_by_role("alert").filter(has_text="no, thank you")).to_be_visible()
        rest(f"{url}/api/servers/toy/disable", "POST", {})
        expect(page.get_by_text("Disabled: toy")).to_be_visible()
        rest(f"{url}/api/servers/toy/enable", "POST", {})
        expect(page.get_by_text("Disabled: toy")).to_have_count(0)
        page = visit.open("tools/toy__nothing")
        expect(page.get_by_role("alert")).to_contain_text("toy__nothing")
        visit.complaints.clear()  # The browser says by itself that an answer was 404.


def test_a_tool_of_pegboard_is_tried(context: BrowserContext, url: str) -> None:
    """As any other, and its answer is shown once, though it comes as text and as data."""
    with visiting(context, url) as visit:
        page = visit.open("tools/tool_find")
        expect(page.get_by_text("Pegboard itself")).to_be_visible()
        expect(field(page, "limit")).to_have_value("10")
        field(page, "query").fill("wipe")
        call(page)
        expect(page.get_by_text("ok", exact=True).first).to_be_visible()
        expect(page.get_by_role("heading", name="Structured")).to_have_count(0)


def test_the_same_call_is_copied_for_a_terminal_and_a_program(
    context: BrowserContext, url: str, tmp_path: Path
) -> None:
    """Each runs as it is, and brings the same arguments to the server."""
    given = f'{{"a": "it\'s $HOME \\"q\\"", "b": {BIG}, "more": 1e400}}'
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visiting(context, url) as visit:
        page = visit.open(f"tools/v__optional?arguments={quote(given)}")
        copied: dict[str, str] = {}
        for name in ("pegboard call", "curl", "Python"):
            page.get_by_role("button", name=f"Copy as {name}").click()
            expect(page.get_by_text("Copied.")).to_be_visible()
            copied[name] = page.evaluate("navigator.clipboard.readText()")
            page.get_by_role("button", name="Dismiss").click()
    assert shlex.split(copied["pegboard call"]) == ["pegboard", "call", "v__optional", given]
    words = shlex.split(copied["curl"].replace("\\\n", ""))
    assert words[:4] == ["curl", "-X", "POST", f"{url}/api/tools/v__optional/call"]
    assert words[-1] == f'{{"arguments": {given}}}'
    config = tmp_path / "pegboard.json"
    entry = {"command": sys.executable, "args": ["-I", "-S", str(VERBATIM), *TOOLS]}
    config.write_text(json.dumps({"mcpServers": {"v": entry}}), "utf-8")
    command = [*warm_start(), *shlex.split(copied["pegboard call"])[1:], "--json", "--config", str(config)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    script = copied["Python"].replace("from_config()", f"from_config({str(config)!r})")
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True).stdout
    for text in (said, told):
        assert str(BIG) in text
        assert "1e400" in text


def test_one_signs_in_where_a_tool_needs_it(context: BrowserContext, tmp_path: Path) -> None:
    """The tool says so, and offers it; afterwards it can be used."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        with (
            gateway(tmp_path / "signed", {"guarded": {"url": protected.url}}) as address,
            visiting(context, address) as visit,
        ):
            page = visit.open("servers/guarded")
            page.get_by_role("button", name="More for guarded").click()
            page.get_by_role("menuitem", name="Sign in").click()
            _sign_in(context, page)
            expect(page.get_by_role("checkbox", name="Choose echo", exact=True)).to_be_visible()
            rest(f"{address}/api/servers/guarded/login", "DELETE")
            page = visit.open("tools/guarded__echo")
            page.locator(".attention").get_by_role("button", name="Sign in").click()
            _sign_in(context, page)
            expect(page.locator(".attention")).to_have_count(0)
            call(page)
            page.get_by_role("button", name="Call it").click()
            expect(page.get_by_text("ok", exact=True).first).to_be_visible()


def _sign_in(context: BrowserContext, page: Page) -> None:
    """Over the page of the authorization server, and back."""
    link = page.get_by_role("link", name="Open the sign-in page")
    with context.expect_page() as opened:
        link.click()
    opened.value.wait_for_url("**/oauth/callback/*?*")
    expect(page.get_by_text("Signed in to guarded.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
