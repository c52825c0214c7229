"""Which files an import reads, on each system, and what becomes of those that cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from client_configs.places import SYSTEMS
from pegboard.client_configs.import_files import project_counts, read_clients, read_named_file
from pegboard.client_configs.place import Place, System
from pegboard.client_configs.program import ClientProgram
from pegboard.client_configs.table import CLIENTS, find_client

ONE = {"command": "x"}


def place_in(tmp_path: Path, system: System = "linux") -> Place:
    return Place(system, tmp_path, {}, tmp_path / "project")


def write(path: Path, text: str | dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")
    return path


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each.user], ids=lambda each: each.id)
def test_each_clients_file_is_found_on_each_system(client: ClientProgram, system: System, tmp_path: Path) -> None:
    """Where the table says it is, in its format."""
    place = place_in(tmp_path, system)
    file = client.user_files(place)[0]
    texts = {
        "toml": '[mcp_servers.a]\ncommand = "x"\n',
        "yaml": "extensions:\n  a:\n    type: stdio\n    cmd: x\n",
    }
    write(file.path, texts.get(file.format) or json.dumps({file.key[0]: {"a": ONE}}))
    found = read_clients([client], place, with_project=False)
    assert found.unreadable == ()
    assert [(each.name, each.entry, each.origin.label) for each in found.servers] == [("a", ONE, client.name)]


def test_the_users_files_come_before_the_projects(tmp_path: Path) -> None:
    """Files of the project only where they are asked for; one that several clients share is read once."""
    place = place_in(tmp_path)
    write(tmp_path / ".cursor/mcp.json", {"mcpServers": {"user": ONE}})
    write(place.project / ".mcp.json", {"mcpServers": {"shared": {"command": "./run"}}})
    write(place.project / ".vscode/mcp.json", {"servers": {"mine": {"command": "y"}}})
    assert [each.name for each in read_clients(CLIENTS, place, with_project=False).servers] == ["user"]
    found = read_clients(CLIENTS, place, with_project=True).servers
    assert sorted(each.name for each in found) == ["mine", "shared", "user"]
    assert found[0].name == "user"
    assert next(each for each in found if each.name == "shared").entry["command"] == str(place.project / "run")


def test_the_local_scope_of_claude_code_belongs_to_its_project(tmp_path: Path) -> None:
    """It is counted, and taken over for that project alone."""
    place = place_in(tmp_path)
    code = [find_client("claude-code")]
    projects = {
        str(place.project): {"mcpServers": {"mine": ONE}},
        "/other": {"mcpServers": {"theirs": {"command": "z"}}},
    }
    write(tmp_path / ".claude.json", {"mcpServers": {"all": {"command": "y"}}, "projects": projects})
    assert [each.name for each in read_clients(code, place, with_project=False).servers] == ["all"]
    assert project_counts(code, place) == {place.project: 1, Path("/other"): 1}
    assert [each.name for each in read_clients(code, place, with_project=True).servers] == ["all", "mine"]


def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """Broken, of another encoding, a folder, a pipe, or too large; an empty one is no mistake."""
    place = place_in(tmp_path)
    cursor = write(tmp_path / ".cursor/mcp.json", '{\n"mcpServers": {')
    kiro = write(tmp_path / ".kiro/settings/mcp.json", "")
    kiro.write_bytes(b'{"mcpServers":\n{"a": "\xff"}}')
    warp = tmp_path / ".warp/.mcp.json"
    warp.mkdir(parents=True)
    junie = tmp_path / ".junie/mcp/mcp.json"
    junie.parent.mkdir(parents=True)
    os.mkfifo(junie)
    lmstudio = write(tmp_path / ".lmstudio/mcp.json", " " * (5 * 2**20))
    write(tmp_path / ".qwen/settings.json", "")
    write(tmp_path / ".gemini/settings.json", {"mcpServers": {"good": ONE}})
    found = read_clients(CLIENTS, place, with_project=False)
    assert [each.name for each in found.servers] == ["good"]
    reasons = {each.place: each.reason for each in found.unreadable}
    assert set(reasons) == {f"{cursor}:2", f"{kiro}:2", str(warp), str(junie), str(lmstudio)}
    assert reasons[f"{kiro}:2"] == "it is not UTF-8"
    assert reasons[str(junie)] == "it is no ordinary file"


def test_a_file_without_a_section_is_a_client_without_servers(tmp_path: Path) -> None:
    """For a client; for somebody who names the file it is a question what they mean."""
    place = place_in(tmp_path)
    file = write(tmp_path / ".config/zed/settings.json", {"theme": "x"})
    assert read_clients(CLIENTS, place, with_project=False).unreadable == ()
    assert "there are no servers in it" in read_named_file(file, place).unreadable[0].reason


def test_a_named_file_is_read_as_its_clients(tmp_path: Path) -> None:
    """By its place in the table, or as the project's that it is in."""
    place = place_in(tmp_path)
    gemini = write(tmp_path / ".gemini/settings.json", {"mcpServers": {"a": {"command": "./x", "args": ["$A b"]}}})
    (server,) = read_named_file(gemini, place).servers
    assert server.entry == {"command": "./x", "args": ["${A} b"]}
    project = write(tmp_path / "app/.kiro/settings/mcp.json", {"mcpServers": {"a": {"command": "./x"}}})
    assert read_named_file(project, place).servers[0].entry == {"command": str(tmp_path / "app/x")}
    plain = write(tmp_path / "snippet.txt", "npx -y something")
    assert read_named_file(plain, place).unreadable[0].reason == "it is neither JSON, TOML nor YAML"


def test_a_symlink_is_followed(tmp_path: Path) -> None:
    """Dotfiles are often links."""
    place = place_in(tmp_path)
    real = write(tmp_path / "dotfiles/mcp.json", {"mcpServers": {"a": ONE}})
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").symlink_to(real)
    assert [each.name for each in read_clients(CLIENTS, place, with_project=False).servers] == ["a"]
