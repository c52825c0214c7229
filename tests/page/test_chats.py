"""Chats at the page: those of several editors, found, read, saved and copied."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from chats.makers import Home, append, log, push, request, session, whole
from page import PHONE, Visit, gateway, pegboard, visiting

HOSTILE = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"
GERMAN = "Rechtsschutzversicherungsgesellschaftenverzeichnis"
CHINESE = "修复登录页面的错误"
ARABIC = "إصلاح صفحة تسجيل الدخول"
BIG = 9007199254740993
TOOL = {
    "kind": "toolInvocationSerialized",
    "toolId": "copilot_readFile",
    "pastTenseMessage": {"value": "Read upload.py"},
    "toolSpecificData": {"rawInput": {"id": BIG}},
    "resultDetails": {"input": "x", "output": [{"value": "import wombat", "isText": True}], "isError": True},
}
EDIT = {"kind": "textEditGroup", "uri": {"path": "/home/ada/shop/upload.py"}, "edits": []}


def line(kind: str, number: int, text: str) -> dict[str, Any]:
    """A line of a transcript of Claude Code."""
    content = text if kind == "user" else [{"type": "text", "text": text}]
    return {
        "type": kind,
        "uuid": str(number),
        "parentUuid": str(number - 1) if number > 1 else None,
        "sessionId": "claude",
        "cwd": "/home/ada/cart",
        "timestamp": f"2026-01-01T10:00:{number:02}Z",
        "message": {"role": kind, "content": content},
    }


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with chats of two editors: short and very long ones, with titles in several scripts."""
    folder = tmp_path_factory.mktemp("chats")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(folder / "home"))
        patched.setenv("XDG_CONFIG_HOME", str(folder / "home/.config"))
        patched.setenv("PEGBOARD_STATE_DIR", str(folder / "state"))
        home = Home(folder / "home")
        now = time.time()
        done = [TOOL, EDIT, {"value": "I added a <b>retry</b> with quokkas. " + "More of it. " * 900 + "THE END"}]
        requests = [
            request("Add a retry to the upload", 1, response=done),
            request("Second question", 2, modelState={"value": 3}, result={"errorDetails": {"message": HOSTILE}}),
        ]
        home.chat("up", session(session_id="up", customTitle="Upload retries", requests=requests), at=now)
        texts = [f"Question {number} about wombats" for number in range(1, 3001)]
        home.chat("huge", session(*texts, session_id="huge", customTitle="Thousands"), at=now - 100)
        for number, title in enumerate((HOSTILE, GERMAN * 8, CHINESE, ARABIC)):
            home.chat(f"t{number}", session(title, session_id=f"t{number}", customTitle=title), at=now - 200)
        home.transcript("claude", [line("user", 1, "Explain the cart"), line("assistant", 2, "It holds items.")])
        for number in range(60):
            home.chat(f"old{number}", session("hi"), workspace=f"o{number}", folder="file:///srv/old")
        broken = json.dumps({"kind": 0, "v": session("Half of it")}).encode() + b'\n{"kind": 1, "v"\n{"kind": 1}\n'
        home.chat("broken", broken, workspace="w1", at=now - 300)
        with gateway(folder, {}) as address:
            yield address


def row(page: Page, name: str) -> Any:
    """A chat's row."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def test_chats_of_every_editor_are_listed(context: BrowserContext, url: str) -> None:
    """Each with editor, folder and number of requests; the rest on demand; one folder by a click; what cannot be
    read says why."""
    with visiting(context, url) as visit:
        page = visit.open("chats")
        expect(page.get_by_role("status").filter(has_text="68 chats")).to_be_visible()
        expect(row(page, "Upload retries")).to_contain_text("Code")
        expect(row(page, "Thousands")).to_contain_text("3,000")
        expect(row(page, CHINESE)).to_contain_text("/home/ada/shop")
        expect(page.get_by_role("row")).to_have_count(51)
        page.get_by_role("button", name="Show more").click()
        expect(page.get_by_role("row")).to_have_count(69)
        expect(page.get_by_role("button", name="Show more")).to_have_count(0)
        expect(row(page, "Explain the cart")).to_contain_text("Claude Code")
        expect(row(page, "Half of it")).to_contain_text("is broken")
        row(page, "Explain the cart").get_by_role("link", name="/home/ada/cart").click()
        expect(page.get_by_role("row")).to_have_count(2)
        assert page.url.endswith("#/chats?folder=%2Fhome%2Fada%2Fcart")
        page.get_by_label("Folder").fill("/nowhere")
        page.get_by_label("Folder").press("Enter")
        expect(page.get_by_text("No chat of this folder.")).to_be_visible()


def test_requests_are_found_and_opened_where_they_stand(context: BrowserContext, url: str) -> None:
    """What matched is marked; the link leads into the middle of a chat of thousands, of which a part is shown."""
    with visiting(context, url) as visit:
        page = visit.open("chats")
        page.get_by_label("Find in chats").fill('"question 2345"')
        expect(page.locator("mark").first).to_have_text("Question")
        page.get_by_role("link", name="Thousands").first.click()
        expect(page.get_by_role("heading", name="Request 2345", exact=True)).to_be_in_viewport()
        expect(page.locator("article")).to_have_count(20)
        page.get_by_role("link", name="Show earlier").click()
        expect(page.get_by_role("heading", name="Request 2321", exact=True)).to_be_visible()
        expect(page.get_by_text("2,320 before these")).to_be_visible()
        page.get_by_role("button", name="Show more").click()
        expect(page.locator("article")).to_have_count(40)
        expect(page.get_by_text("640 more")).to_be_visible()
        page.get_by_label("Find in this chat").fill("wombats 7")
        page.get_by_label("Find in this chat").press("Enter")
        expect(page.get_by_role("status").filter(has_text="request")).to_be_visible()
        expect(page.locator("article")).to_have_count(0)
        page.get_by_label("Find in this chat").fill("aardvark")
        page.get_by_label("Find in this chat").press("Enter")
        expect(page.get_by_text("Nothing found.")).to_be_visible()


def test_a_chat_is_question_and_answer_as_text(context: BrowserContext, url: str) -> None:
    """Roles by words, tools and long answers folded, numbers exact, what failed told; nothing of it is markup."""
    with visiting(context, url) as visit:
        page = visit.open("chats/up")
        expect(page.get_by_role("heading", level=1)).to_have_text("Upload retries")
        first = page.get_by_role("article", name="Request 1")
        expect(first.get_by_role("heading", name="Answer")).to_be_visible()
        expect(first).to_contain_text("I added a <b>retry</b>")
        expect(first).not_to_contain_text("THE END")
        first.get_by_role("button", name=re.compile("Show all")).click()
        expect(first).to_contain_text("THE END")
        expect(first).not_to_contain_text("import wombat")
        first.get_by_text("1 tool used, 1 file edited").click()
        for words in ("copilot_readFile failed", "import wombat", str(BIG), "/home/ada/shop/upload.py"):
            expect(first).to_contain_text(words)
        second = page.get_by_role("article", name="Request 2")
        expect(second).to_contain_text("failed")
        expect(second).to_contain_text(HOSTILE)
        assert page.locator("main img").count() == 0
        visit.check_accessible()


def test_a_chat_is_saved_and_copied(context: BrowserContext, url: str) -> None:
    """As Markdown and as data, all of it; a request, an answer and the whole on the clipboard."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visiting(context, url) as visit:
        page = visit.open("chats/huge")
        saved: dict[str, str] = {}
        for name in ("Save as Markdown", "Save as JSON"):
            with page.expect_download() as download:
                page.get_by_role("link", name=name).click()
            saved[download.value.suggested_filename] = Path(download.value.path()).read_text("utf-8")
        assert list(saved) == ["2026-01-01-thousands-huge.md", "2026-01-01-thousands-huge.json"]
        markdown, data = saved.values()
        assert "Answer to Question 3000 about wombats" in markdown
        assert len(json.loads(data)["requests"]) == 3000

        def copied(button: str) -> str:
            page.get_by_role("button", name=button, exact=True).click()
            expect(page.get_by_text("Copied.")).to_be_visible()
            page.get_by_role("button", name="Dismiss").click()
            return page.evaluate("navigator.clipboard.readText()")

        assert copied("Copy") == markdown
        assert copied("Copy request 3") == "Question 3 about wombats"
        assert copied("Copy answer 3") == "Answer to Question 3 about wombats"


def test_any_title_fits_a_phone(context: BrowserContext, url: str) -> None:
    """Long words, other scripts and markup neither widen the list nor become part of the page."""
    with visiting(context, url) as visit:
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        page = visit.open("chats")
        expect(page.get_by_role("link", name=ARABIC)).to_be_visible()
        visit.check_accessible()
        for number in range(4):
            visit.open(f"chats/t{number}")
            expect(page.get_by_role("article")).to_be_visible()
            visit.check_fits()
        visit.check_accessible()
        assert page.locator("main img").count() == 0


def test_a_chat_that_is_none_says_so(context: BrowserContext, url: str) -> None:
    """In the gateway's words, under a heading."""
    with visiting(context, url) as visit:
        page = visit.open("chats/" + quote("<img src=x onerror=alert(1)>"))
        expect(page.get_by_role("alert")).to_contain_text("Session not found: <img")
        visit.complaints.clear()  # The browser says by itself that an answer was 404.


def test_no_chats_at_all_say_what_to_do(context: BrowserContext, tmp_path: Path) -> None:
    """Which editors are read, and what to put into the config."""
    with gateway(tmp_path, {}) as address, visiting(context, address) as visit:
        page = visit.open("chats")
        expect(page.get_by_text("No chats yet.")).to_contain_text("Claude Code")
        expect(page.locator("main code")).to_contain_text("exports")
        visit.check_accessible()


def test_a_chat_that_goes_on_is_read_again(context: BrowserContext, tmp_path: Path) -> None:
    """When somebody asks for it: nothing tells the gateway of it."""
    path = Home(tmp_path / "home").chat("one", log(whole(session("Hello there"))), at=time.time())
    with gateway(tmp_path, {}) as address, visiting(context, address) as visit:
        page = visit.open("chats")
        expect(row(page, "Hello there").get_by_role("cell").last).to_have_text("1")
        append(path, log(push(["requests"], request("And again", 2))))
        page.get_by_role("button", name="Read again").click()
        expect(row(page, "Hello there").get_by_role("cell").last).to_have_text("2")


def test_whoever_is_refused_reads_why(context: BrowserContext, tmp_path: Path) -> None:
    """A token without the chat tools has no such place in the navigation, and its address says in the gateway's words
    that it is refused."""
    Home(tmp_path / "home").chat("secret", session("Nobody else reads this"), at=time.time())
    with gateway(tmp_path, {}, auth={"required": True}) as address:
        words = pegboard(tmp_path / "pegboard.json", "token", "add", "weak", "--tool", "memory_*").split()
        visit = Visit(context.new_page(), address)
        page = visit.open("chats")
        page.get_by_label("Token").fill(next(word for word in words if word.startswith("pgb_")))
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Chats")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_role("navigation", name="Screens").get_by_role("link", name="Chats")).to_have_count(0)
        expect(page.get_by_text("Nobody else")).to_have_count(0)
        assert visit.strangers == []
        page.close()
