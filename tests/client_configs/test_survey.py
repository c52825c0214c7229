"""What is said of the clients of a machine: `pegboard clients`, and the findings of `pegboard doctor`."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallContext, InstallOptions
from pegboard.client_configs.findings import client_findings
from pegboard.client_configs.install import apply_install, plan_install
from pegboard.client_configs.survey import ClientStatus, look_at
from pegboard.client_configs.table import find_client


def install(context: InstallContext, client: str, options: InstallOptions | None = None) -> None:
    apply_install(plan_install(find_client(client), context, options or InstallOptions()), context)


def status(context: InstallContext, client: str) -> ClientStatus:
    return look_at(find_client(client), context)


def said(context: InstallContext) -> list[tuple[str, str]]:
    return [
        (finding.level, f"{finding.about}: {finding.said} → {finding.advice}") for finding in client_findings(context)
    ]


def test_a_client_that_is_not_here(tmp_path: Path) -> None:
    """Its file is named, and not made."""
    found = status(context_of(tmp_path), "cursor")
    assert (found.found, found.exists, found.connected, found.servers) == (False, False, False, 0)
    assert found.file == str(tmp_path / "home" / ".cursor" / "mcp.json")
    assert not (tmp_path / "home").exists()


def test_a_client_with_servers_and_pegboard(tmp_path: Path) -> None:
    """How it is connected, by which board, under which name, and how many servers it has beside."""
    context = context_of(tmp_path)
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://e.com"}}}')
    before = status(context, "cursor")
    assert (before.found, before.connected, before.servers) == (True, False, 2)
    install(context, "cursor", InstallOptions(board="work"))
    after = status(context, "cursor")
    assert (after.transport, after.board, after.entry, after.servers) == ("http", "work", "pegboard", 2)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """With the place, and without an end to the list."""
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    assert "1:2" in (status(context_of(tmp_path), "cursor").problem or "")


def test_clients_that_are_only_imported_from_or_written_by_hand(tmp_path: Path) -> None:
    """They say so."""
    context = context_of(tmp_path)
    assert not status(context, "amazon-q").installable
    assert (status(context, "goose").installable, status(context, "goose").writes) == (True, False)


def test_doctor_has_nothing_to_say_where_nothing_is_installed(tmp_path: Path) -> None:
    """Clients without Pegboard are no finding, whatever their files say."""
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    assert said(context_of(tmp_path)) == []


def test_doctor_says_that_all_is_well(tmp_path: Path) -> None:
    """The entry is there, and leads to the gateway that runs."""
    context = context_of(tmp_path)
    install(context, "cursor")
    assert [level for level, _ in said(context)] == ["ok"]


def test_doctor_finds_an_entry_that_is_gone(tmp_path: Path) -> None:
    """Some clients rewrite their files."""
    context = context_of(tmp_path)
    install(context, "cursor")
    (tmp_path / "home" / ".cursor" / "mcp.json").write_text("{}")
    assert [(level, "not there any more → pegboard install cursor" in text) for level, text in said(context)] == [
        ("warning", True)
    ]


def test_doctor_finds_a_command_that_is_gone(tmp_path: Path) -> None:
    """An environment that was replaced."""
    context = context_of(tmp_path, "linux", None)
    install(context, "cursor")
    assert ("warning", "client cursor: its command is gone: /opt/bin/pegboard → pegboard install cursor") in said(
        context
    )


@pytest.mark.parametrize(
    ("gateway", "text"),
    [
        (None, "and no gateway runs → pegboard serve"),
        ("http://127.0.0.1:7500", "and the gateway is at http://127.0.0.1:7500 → pegboard install cursor"),
    ],
)
def test_doctor_finds_an_address_at_which_nobody_is(tmp_path: Path, gateway: str | None, text: str) -> None:
    """No gateway, or one at another port."""
    context = context_of(tmp_path)
    install(context, "cursor")
    found = said(replace(context, gateway=gateway))
    assert found == [("warning", f"client cursor: it goes to http://127.0.0.1:7420/mcp/cursor, {text}")]


def test_doctor_finds_servers_that_are_in_both(tmp_path: Path) -> None:
    """Each would be started twice, and its tools listed twice. One that does not work in Pegboard is needed there."""
    context = context_of(tmp_path)
    entry = {"command": "uvx", "args": ["mcp-server-time"]}
    context.config.write_text(json.dumps({"mcpServers": {"time": entry}}))
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"clock": entry}}))
    install(context, "cursor")
    wanted = "it starts servers itself that Pegboard serves: clock → pegboard install cursor --replace"
    assert ("warning", f"client cursor: {wanted}") in said(with_working_servers(context))
    assert [level for level, _ in said(replace(context, own_problems={"time": "not reached"}))] == ["ok"]


def test_doctor_finds_profiles_of_vs_code_without_pegboard(tmp_path: Path) -> None:
    """A profile has a list of servers of its own."""
    context = context_of(tmp_path)
    install(context, "vscode")
    user = tmp_path / "home" / ".config" / "Code" / "User"
    for profile, text in (("with", (user / "mcp.json").read_text()), ("without", '{"servers": {}}')):
        (user / "profiles" / profile).mkdir(parents=True)
        (user / "profiles" / profile / "mcp.json").write_text(text)
    found = [text for level, text in said(context) if level == "warning"]
    assert len(found) == 1
    assert found[0].startswith("client vscode: profiles with a list of servers of their own, without Pegboard: without")


def test_doctor_finds_that_gemini_does_not_trust_the_folder(tmp_path: Path) -> None:
    """It uses no MCP servers there; a folder above that is trusted will do."""
    context = context_of(tmp_path)
    install(context, "gemini")
    assert any("only in folders that it trusts" in text for _, text in said(context))
    (tmp_path / "home" / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(tmp_path): "TRUST_FOLDER"}))
    assert not any("only in folders that it trusts" in text for _, text in said(context))


def test_notes_that_are_gone_or_broken_are_no_error(tmp_path: Path) -> None:
    """The state folder is the user's to empty."""
    context = context_of(tmp_path)
    install(context, "cursor")
    for note in (tmp_path / "state" / "backups" / "cursor").glob("*.note.json"):
        note.write_text("{")
    assert [level for level, _ in said(context)] == ["ok"]
    shutil.rmtree(tmp_path / "state")
    assert [level for level, _ in said(context)] == ["ok"]
