"""Clients at the page: connected and disconnected by a preview, their sessions, and the tools on their boards."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Response, Route, expect

from harness import toy
from page import PHONE, Visit, gateway, pegboard, rest, visiting

SECRET = "tulip-tulip-tulip"
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "Überlänge" * 30 + "工具" * 2000
CURSOR = {"linear": {"url": "https://linear.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}}


@pytest.fixture
def home() -> Path:
    """A home with config files of several clients, with secrets in them; one that cannot be read, one of somebody
    else's Pegboard."""
    home = Path.home()
    files = {
        ".cursor/mcp.json": json.dumps({"mcpServers": CURSOR}, indent=2),
        ".config/zed/settings.json": f'{{\n  // {SECRET}\n  "context_servers": {{"其他": {{"command": "x"}}}}\n}}\n',
        ".codex/config.toml": f'# {SECRET}\n[mcp_servers.docs]\ncommand = "npx"\nenv = {{ KEY = "{SECRET}" }}\n',
        ".config/Code/User/mcp.json": '{"servers": {',
        ".codeium/windsurf/mcp_config.json": json.dumps({"mcpServers": {"pegboard": {"command": SECRET}}}),
        ".claude.json": json.dumps({"mcpServers": {"same": toy(name="one"), "other": {"command": SECRET}}}),
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, "utf-8")
    return home


@pytest.fixture
def url(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A gateway of the user with that home, and without a program of any client."""
    assert home.is_relative_to(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with gateway(tmp_path, {"one": toy(name="one")}) as address:
        rest(f"{address}/api/servers/one/refresh", "POST", {})
        yield address


@pytest.fixture
def visit(context: BrowserContext, url: str) -> Generator[Visit]:
    """A visit; whatever it reads and shows, no secret of a file is in it."""
    bodies: list[str] = []

    def keep(answer: Response) -> None:
        if "/api/clients" in answer.url:
            bodies.append(answer.text())

    with visiting(context, url) as visit:
        visit.page.emulate_media(reduced_motion="reduce")
        visit.page.on("response", keep)
        yield visit
        assert SECRET not in visit.page.content()
    assert bodies
    assert SECRET not in "".join(bodies)


def row(page: Page, name: str) -> Any:
    """A client's row."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def servers(file: Path, key: str = "mcpServers") -> dict[str, Any]:
    """The servers of a client's file."""
    return json.loads(file.read_text("utf-8"))[key]


def begin_session(url: str, name: str, board: str = "", version: str = "1.0") -> None:
    """A client of the handshake era comes in, and stays."""
    import urllib.request

    def send(body: dict[str, Any], **headers: str) -> str:
        kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        text = json.dumps({"jsonrpc": "2.0", **body}).encode()
        asked = urllib.request.Request(f"{url}/mcp/{board}".removesuffix("/"), text, {**kinds, **headers})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            answer.read()
            return answer.headers.get("mcp-session-id", "")

    info = {"name": name, "version": version}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    session = send({"id": 1, "method": "initialize", "params": params})
    send({"method": "notifications/initialized"}, **{"mcp-session-id": session})


def test_clients_are_listed_with_their_state(visit: Visit) -> None:
    """Those that are here with their files, what is wrong with one, how many servers each has, and below those that are
    not here."""
    rest(f"{visit.url}/api/clients/claude-code/install", "POST", {"board": "mine"})
    page = visit.open("clients")
    expect(row(page, "Cursor")).to_contain_text("not connected")
    expect(row(page, "Cursor")).to_contain_text("/.cursor/mcp.json")
    expect(row(page, "Claude Code")).to_contain_text("connected")
    expect(row(page, "Claude Code")).to_contain_text("by address, board mine")
    expect(row(page, "Claude Code").get_by_role("cell").nth(1)).to_have_text("2")
    expect(row(page, "VS Code")).to_contain_text("it cannot be read: 1:14")
    expect(row(page, "Goose")).not_to_be_visible()
    page.get_by_text("not found here").click()
    expect(row(page, "Goose")).to_contain_text("connect by hand")
    visit.check_accessible()


def test_a_client_is_connected_and_it_is_undone(visit: Visit, home: Path) -> None:
    """The preview writes nothing and says each line in words; connected, it says where the old file is; undone, the
    file is byte for byte what it was."""
    file = home / ".cursor/mcp.json"
    before = file.read_bytes()
    page = visit.open("clients")
    row(page, "Cursor").get_by_role("link", name="Connect Cursor").click()
    expect(page.get_by_role("link", name="Disconnect")).to_have_count(0)
    change = page.get_by_role("region", name=re.compile("Change of .*mcp.json"))
    expect(change.locator("ins").filter(has_text=f"{visit.url}/mcp/cursor")).to_contain_text("added:")
    expect(page.get_by_text("0", exact=True)).to_have_count(0)
    expect(page.get_by_text(re.compile(r"\d+ lines? added, 0 lines removed"))).to_be_visible()
    assert file.read_bytes() == before
    visit.check_accessible()
    page.get_by_role("button", name="Connect", exact=True).click()
    done = page.get_by_role("status").filter(has_text="Pegboard is in the config.")
    expect(done).to_contain_text(re.compile(r"It answers with \d+ tools"))
    assert servers(file)["pegboard"] == {"url": f"{visit.url}/mcp/cursor"}
    assert Path(page.locator("p", has_text="held before").locator("code").inner_text()).read_bytes() == before
    page.reload()
    assert Path(page.locator("p", has_text="held before").locator("code").inner_text()).read_bytes() == before
    expect(page.get_by_text("It is there already. Nothing changes.")).to_be_visible()
    expect(page.get_by_role("button", name="Connect", exact=True)).to_have_count(0)
    visit.check_accessible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone. The file is as it was.")).to_be_visible()
    assert file.read_bytes() == before
    expect(change).to_be_visible()


def test_a_file_that_changed_since_the_preview_is_shown_anew(visit: Visit, home: Path) -> None:
    """What nobody has seen is not written: it is said, and the preview is of the file as it is now."""
    file = home / ".cursor/mcp.json"
    page = visit.open("clients/cursor")
    expect(page.locator("ins").first).to_be_visible()
    file.write_text(json.dumps({"mcpServers": {**CURSOR, "fresh": {"command": "x"}}}, indent=2), "utf-8")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator(".notice.bad")).to_contain_text("changed since the preview; nothing was written")
    visit.complaints.clear()  # The browser says by itself that an answer was 409.
    assert "pegboard" not in servers(file)
    expect(page.get_by_role("region", name=re.compile("Change of"))).to_contain_text("fresh")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_text("Pegboard is in the config.")).to_be_visible()
    assert servers(file).keys() == {"linear", "fresh", "pegboard"}


def test_choices_are_in_the_preview_and_in_the_address(visit: Visit, home: Path, tmp_path: Path) -> None:
    """Board and transport, a project, and the servers that work in Pegboard, which go and come back."""
    page = visit.open("clients/claude-code")
    page.get_by_label(re.compile("^Board")).fill("a board")
    expect(page.get_by_role("alert").filter(has_text="board takes letters")).to_be_visible()
    visit.complaints.clear()  # The browser says by itself that an answer was 400.
    page.get_by_label(re.compile("^Board")).fill("team")
    page.get_by_label("Connected by").select_option("command")
    change = page.get_by_role("region", name=re.compile("Change of"))
    expect(change).to_contain_text('"--board"')
    expect(change).to_contain_text('"team"')
    page.get_by_role("checkbox", name="Take out its servers").check()
    expect(page.get_by_text("Taken out: same")).to_be_visible()
    expect(change.locator("del").filter(has_text='"same"')).to_contain_text("removed:")
    page.reload()
    expect(page.get_by_text("Taken out: same")).to_be_visible()
    page.get_by_label("Connected by").select_option("address")
    expect(change).to_contain_text("/mcp/team")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_text("Pegboard is in the config.")).to_be_visible()
    assert servers(home / ".claude.json").keys() == {"other", "pegboard"}
    assert servers(home / ".claude.json")["pegboard"]["url"] == f"{visit.url}/mcp/team"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    assert servers(home / ".claude.json").keys() == {"same", "other"}
    page.get_by_role("checkbox", name="Take out its servers").uncheck()
    project = tmp_path / "项目"
    project.mkdir()
    page.get_by_label("Config of").select_option("one project")
    expect(page.get_by_role("alert").filter(has_text="needs the folder")).to_be_visible()
    visit.complaints.clear()
    page.get_by_label("Folder of the project").fill(str(project))
    expect(change).to_contain_text("/mcp/team")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_text("Pegboard is in the config.")).to_be_visible()
    assert servers(project / ".mcp.json").keys() == {"pegboard"}
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone.")).to_be_visible()
    assert list(project.iterdir()) == []
    visit.complaints.clear()


def test_an_entry_of_somebody_else_is_left_alone(visit: Visit) -> None:
    """It is said whose it is, and there is nothing to press."""
    page = visit.open("clients/windsurf")
    expect(page.get_by_text("Its entry pegboard is another server's: nothing is written.")).to_be_visible()
    expect(page.get_by_role("button", name="Connect", exact=True)).to_have_count(0)


def test_a_client_is_disconnected_by_a_preview(visit: Visit, home: Path) -> None:
    """What goes is shown first; what others wrote since stays; a file that changed meanwhile is shown anew."""
    file = home / ".codex/config.toml"
    before = file.read_bytes()
    rest(f"{visit.url}/api/clients/codex/install", "POST", {})
    page = visit.open("clients/codex?tab=out")
    expect(page.get_by_text("byte for byte")).to_be_visible()
    expect(page.locator("del").first).to_contain_text("removed:")
    file.write_bytes(file.read_bytes() + b'\n[mcp_servers.later]\ncommand = "x"\n')
    page.get_by_role("button", name="Disconnect").click()
    expect(page.locator(".notice.bad")).to_contain_text("nothing was written")
    visit.complaints.clear()  # The browser says by itself that an answer was 409.
    assert b"pegboard" in file.read_bytes()
    expect(page.get_by_text("byte for byte")).to_have_count(0)
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Pegboard is out of the config.")).to_be_visible()
    expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()
    assert file.read_bytes() == before + b'\n[mcp_servers.later]\ncommand = "x"\n'


def test_what_cannot_be_written_is_pasted(visit: Visit) -> None:
    """The entry with a button that copies it, and a link that opens the client; one of another kind is no link."""
    page = visit.open("clients/goose")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    snippet = page.locator("main pre")
    expect(snippet).to_contain_text(f"{visit.url}/mcp/goose")
    assert page.get_by_role("button", name="Connect", exact=True).count() == 0
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == snippet.inner_text()
    assert (page.get_by_role("link", name="Open in Goose").get_attribute("href") or "").startswith("goose://extension?")
    visit.open("clients/amp")
    expect(page.get_by_text("Pegboard is never put into it.")).to_be_visible()

    def change_link(route: Route) -> None:
        answer = route.fetch()
        data = answer.json()
        data["data"]["link"] = "javascript:alert(1)//cursor://anysphere.cursor-deeplink/mcp/install?"
        route.fulfill(response=answer, json=data)

    for name, title in (("cursor", "Cursor"), ("lm-studio", "LM Studio"), ("kiro", "Kiro")):
        visit.open(f"clients/{name}")
        expect(page.get_by_role("link", name=f"Open in {title}")).to_be_visible()
    page.route("**/api/clients/cursor/preview", change_link)
    visit.open("clients/cursor")
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    expect(page.get_by_role("link", name="Open in Cursor")).to_have_count(0)


def test_sessions_are_seen_and_boards_are_cleared(visit: Visit) -> None:
    """Who is there now, hostile names as texts; a tool is taken off a board, and put back."""
    begin_session(visit.url, HOSTILE, version=HOSTILE)
    begin_session(visit.url, "Überprüfer", "zed")
    rest(f"{visit.url}/api/boards/zed", "PATCH", {"load": ["one__echo", "one__pid"]})
    page = visit.open("clients")
    sessions = page.get_by_role("table", name="Open sessions")
    expect(sessions.get_by_role("row")).to_have_count(3)
    expect(sessions).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0
    visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
    visit.check_accessible()
    begin_session(visit.url, "latecomer")
    expect(sessions).to_contain_text("latecomer")
    sessions.get_by_role("link", name="zed").click()
    expect(page.get_by_role("heading", level=1, name="Board zed")).to_be_visible()
    page.get_by_role("button", name="Unload one__pid").click()
    expect(page.get_by_role("link", name="one__pid")).to_have_count(0)
    assert rest(f"{visit.url}/api/boards/zed")["tools"] == ["one__echo"]
    visit.check_accessible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="one__pid")).to_be_visible()
    visit.open("clients/zed")
    expect(page.get_by_role("table", name="Open sessions")).to_contain_text("Überprüfer")
    expect(page.get_by_role("table", name="Open sessions")).not_to_contain_text("latecomer")


@pytest.mark.parametrize("options", [[], ["--admin"]], ids=["weak", "admin"])
def test_whoever_is_not_the_user_of_the_machine_is_told_so(
    context: BrowserContext, home: Path, tmp_path: Path, options: list[str]
) -> None:
    """In words, and without anything of the files; an admin sees the sessions all the same, nobody else those of
    others."""
    with gateway(tmp_path, {"one": toy(name="one")}, auth={"rules": [], "required": True}) as address:
        config = tmp_path / "pegboard.json"
        said = pegboard(config, "token", "add", "somebody", *options)
        other = next(word for word in pegboard(config, "token", "add", "other").split() if word.startswith("pgb_"))
        token = next(word for word in said.split() if word.startswith("pgb_"))
        visit = Visit(context.new_page(), address)
        page = visit.open()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        visit.open("clients")
        expect(page.get_by_text("Clients are not connected from here: this is only for the user")).to_be_visible()
        expect(page.get_by_role("heading", name="Open sessions")).to_be_visible()
        visit.check_accessible()
        text = page.content()
        assert ".cursor" not in text
        assert "Windsurf" not in text
        assert visit.strangers == []
        # What a browser says by itself of an answer of 401 or 403.
        assert [each for each in visit.complaints if not re.search("40[13]", each)] == []
        assert other not in text
        page.close()
