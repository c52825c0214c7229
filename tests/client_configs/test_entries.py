"""Entries: built for every client on three systems as the golden file has them, and recognized again."""

from __future__ import annotations

import base64
import json
import os
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from client_configs.places import SYSTEMS, context_of
from pegboard.client_configs.context import (
    InstallOptions,
    InstallUsageError,
    choose_target,
    pegboard_program,
)
from pegboard.client_configs.entries import EntryKind, EntryTarget, build_entry, is_own_entry, read_target, snippet
from pegboard.client_configs.install import plan_install
from pegboard.client_configs.place import System
from pegboard.client_configs.table import CLIENTS, find_client

GOLDEN = Path(__file__).parent / "golden" / "entries.json"
INSTALLABLE = [client for client in CLIENTS if not client.import_only]
PROGRAMS = {
    "linux": "/home/me/.local/bin/pegboard",
    "macos": "/Users/me/.local/bin/pegboard",
    "windows": r"C:\Users\me\.local\bin\pegboard.exe",
}


def entry_of(client_id: str, system: System, transport: EntryKind, **changes: Any) -> dict[str, Any]:
    client = find_client(client_id)
    context = replace(context_of(Path("/x"), system), program=(PROGRAMS[system],), **changes)
    target, _ = choose_target(client, context, InstallOptions(kind=transport))
    return build_entry(client.style, target, "pegboard")


def entries_of(system: System) -> dict[str, dict[str, Any]]:
    return {
        client.id: {
            **({"http": entry_of(client.id, system, "http")} if client.style.takes_http else {}),
            "stdio": entry_of(client.id, system, "stdio"),
        }
        for client in INSTALLABLE
    }


def test_every_client_gets_the_entry_of_the_golden_file_on_each_system() -> None:
    """`UPDATE_GOLDEN=1` writes it again, for a look at the difference."""
    found = {system: entries_of(system) for system in SYSTEMS}
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))


URL = "http://127.0.0.1:7420/mcp"


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("claude-code", {"type": "http", "url": f"{URL}/claude-code"}),
        ("vscode", {"type": "http", "url": f"{URL}/vscode"}),
        ("cursor", {"url": f"{URL}/cursor"}),
        ("windsurf", {"serverUrl": f"{URL}/windsurf"}),
        ("cline", {"type": "streamableHttp", "url": f"{URL}/cline"}),
        ("gemini", {"type": "http", "url": f"{URL}/gemini"}),
        ("codex", {"url": f"{URL}/codex"}),
        ("opencode", {"type": "remote", "url": f"{URL}/opencode", "enabled": True}),
        ("copilot", {"type": "http", "url": f"{URL}/copilot", "tools": ["*"]}),
    ],
)
def test_the_shapes_that_real_clients_were_tried_with(client: str, entry: dict[str, Any]) -> None:
    """As Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI and mcporter read them."""
    assert entry_of(client, "linux", "http") == entry


def test_a_command_has_its_whole_path_and_the_config_that_is_not_the_usual_one() -> None:
    """A program with a window has no PATH of a shell, and starts in any folder."""
    entry = entry_of("claude-desktop", "windows", "stdio", is_default_config=False, env={"PEGBOARD_STATE_DIR": "/s"})
    assert entry == {
        "command": PROGRAMS["windows"],
        "args": ["stdio", "--board", "claude-desktop", "--config", "/x/pegboard.json"],
        "env": {"PEGBOARD_STATE_DIR": "/s"},
    }


@pytest.mark.parametrize(
    ("client", "gateway", "transport", "kind", "reason"),
    [
        ("cursor", True, None, "http", "an address (HTTP), because a gateway runs at http://127.0.0.1:7420"),
        ("cursor", False, None, "stdio", "a command, because no gateway runs now"),
        ("cursor", True, "stdio", "stdio", "a command, as you asked"),
        ("cursor", True, "http", "http", "an address (HTTP), as you asked"),
        ("cursor", False, "http", "http", "no gateway runs now, so start one: pegboard serve"),
        ("claude-desktop", True, None, "stdio", "a command, because Claude Desktop takes nothing else"),
        ("junie", True, None, "stdio", "a command, because Junie takes nothing else"),
    ],
)
def test_what_is_chosen_is_said_with_its_reason(
    client: str, gateway: bool, transport: EntryKind | None, kind: str, reason: str
) -> None:
    """HTTP with a running gateway, a command otherwise, and what was asked for before both."""
    context = context_of(Path("/x"), "linux", "http://127.0.0.1:7420" if gateway else None)
    target, said = choose_target(find_client(client), context, InstallOptions(kind=transport))
    assert target.kind == kind
    assert target.board == client
    assert reason in said


def test_an_address_for_a_client_that_takes_commands_only_is_refused() -> None:
    """It would be written, and never work."""
    with pytest.raises(InstallUsageError, match="Claude Desktop starts a command"):
        choose_target(find_client("claude-desktop"), context_of(Path("/x")), InstallOptions(kind="http"))


@pytest.mark.parametrize(
    ("client", "options", "program", "remark"),
    [
        ("cursor", InstallOptions(), "/bin/pegboard", "Cursor was not found on this machine."),
        ("cursor", InstallOptions(scope="project"), "/bin/pegboard", "The command is a path of this machine"),
        ("cursor", InstallOptions(), "/home/me/.cache/uv/archive-v0/x/bin/pegboard", "runs from a cache of uv"),
        ("cursor", InstallOptions(kind="http"), "/bin/pegboard", "each time: pegboard serve --port 7500"),
    ],
)
def test_what_a_person_should_know_is_said_before(
    tmp_path: Path, client: str, options: InstallOptions, program: str, remark: str
) -> None:
    """An entry that will work here and not elsewhere, or not for long."""
    gateway = "http://127.0.0.1:7500" if options.kind == "http" else None
    context = replace(context_of(tmp_path, "linux", gateway), program=(program,))
    plan = plan_install(find_client(client), context, options)
    assert any(remark in said for said in plan.remarks)


def test_the_program_is_the_one_that_runs() -> None:
    """A file that can be run, by its whole path."""
    program = Path(pegboard_program()[0])
    assert program.is_absolute()
    assert os.access(program, os.X_OK)
    assert program.parent.resolve() == Path(sys.executable).parent.resolve()


OWN: list[tuple[Any, str | None]] = [
    ({"command": "pegboard", "args": ["stdio"]}, None),
    ({"command": "/opt/bin/pegboard", "args": ["stdio", "--board", "b"]}, "b"),
    ({"command": r"C:\bin\pegboard.exe", "args": ["stdio", "--board=b"]}, "b"),
    ({"command": "/usr/bin/python3", "args": ["-m", "pegboard", "stdio"]}, None),
    ({"command": "uvx", "args": ["--from", "/src", "pegboard", "stdio"]}, None),
    ({"type": "local", "command": ["pegboard", "stdio", "--board", "o"], "enabled": True}, "o"),
    ({"url": "http://127.0.0.1:7420/mcp"}, None),
    ({"url": "http://localhost:7420/mcp/cursor"}, "cursor"),
    ({"serverUrl": "http://[::1]:7420/mcp/w"}, "w"),
    ({"httpUrl": "http://127.0.0.1:7500/mcp/g"}, "g"),
    ({"type": "streamable_http", "uri": "http://127.0.0.1:7420/mcp/goose"}, "goose"),
    ({"transport": {"type": "streamableHttp", "url": "http://127.0.0.1:7420/mcp/cline"}}, "cline"),
    ({"command": "npx", "args": ["-y", "mcp-remote", "http://127.0.0.1:7420/mcp"]}, None),
]


@pytest.mark.parametrize(("entry", "board"), OWN)
def test_our_entries_are_recognized_whatever_wrote_them(entry: Any, board: str | None) -> None:
    """By command, by address, by a bridge to the address."""
    assert is_own_entry(entry, {7420, 7500})
    target = read_target(entry)
    assert target is not None
    assert target.board == board


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "pegboard-other", "args": ["stdio"]},
        {"command": "pegboard", "args": ["serve"]},
        {"command": "echo", "args": ["pegboard"]},
        {"url": "http://127.0.0.1:7421/mcp"},
        {"url": "http://example.com:7420/mcp"},
        {"url": "http://127.0.0.1:7420/mcpx"},
        {"url": "http://127.0.0.1:99999/mcp"},
        {"url": "http://[::1/mcp"},
        {"url": 5},
        {},
        [],
        None,
        "pegboard stdio",
    ],
)
def test_entries_of_others_are_not_ours(entry: Any) -> None:
    """What only looks like Pegboard is left alone."""
    assert not is_own_entry(entry, {7420, 7500})


def test_an_address_that_we_wrote_is_ours_at_any_port() -> None:
    """The gateway may run elsewhere by now."""
    assert is_own_entry({"url": "http://127.0.0.1:9/mcp/x"}, {7420}, {"http://127.0.0.1:9/mcp/x"})


def test_links_carry_the_entry() -> None:
    """Each in the form that its client decodes."""
    entry = {"type": "http", "url": f"{URL}/a b"}
    vscode = find_client("vscode").link
    cursor, kiro, goose = (find_client(name).link for name in ("cursor", "kiro", "goose"))
    assert vscode is not None
    assert cursor is not None
    assert kiro is not None
    assert goose is not None
    scheme, _, query = vscode("peg", entry).partition("?")
    assert (scheme, json.loads(unquote(query))) == ("vscode:mcp/install", {"name": "peg", **entry})
    parts = parse_qs(urlsplit(cursor("peg", entry)).query)
    assert (parts["name"], json.loads(base64.b64decode(parts["config"][0]))) == (["peg"], entry)
    parts = parse_qs(urlsplit(kiro("peg", entry)).query)
    assert json.loads(parts["config"][0]) == entry
    link = goose("peg", {"type": "streamable_http", "uri": URL})
    assert link.startswith("goose://extension?type=streamable_http&url=http%3A%2F%2F127.0.0.1%3A7420%2Fmcp&id=peg")


def test_snippets_are_in_the_format_of_the_client() -> None:
    """What a person pastes: JSON with everything around it, TOML, YAML."""
    target = EntryTarget(URL)
    shown = {
        name: snippet(client, "pegboard", build_entry(client.style, target, "pegboard"))
        for name in ("zed", "codex", "goose", "jetbrains")
        for client in [find_client(name)]
    }
    assert json.loads(shown["zed"]) == {"context_servers": {"pegboard": {"url": URL}}}
    assert tomllib.loads(shown["codex"]) == {"mcp_servers": {"pegboard": {"url": URL}}}
    assert shown["goose"].splitlines()[:5] == [
        *("extensions:", "  pegboard:", '    type: "streamable_http"', '    name: "pegboard"', f'    uri: "{URL}"')
    ]
    assert list(json.loads(shown["jetbrains"])) == ["mcpServers"]
