"""The table of client programs: the paths of every client on three systems, the variables that move them, and names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.client_configs.places import SYSTEMS, place_of

from pegboard.client_configs.place import System, this_place
from pegboard.client_configs.program import ClientFile
from pegboard.client_configs.table import CLIENTS, UnknownClientError, find_client

GOLDEN = Path(__file__).parent / "golden" / "paths.json"


def describe(file: ClientFile) -> str:
    """One line that has everything of a file."""
    note = "" if file.is_written else " (read only)"
    return f"{file.path.as_posix()} {file.format} {' > '.join(file.key)}{note}"


def paths_of(system: System) -> dict[str, dict[str, list[str]]]:
    place = place_of(system)
    return {
        client.id: {
            "user": [describe(file) for file in client.user_files(place)],
            "project": [describe(file) for file in client.project_files(place)],
        }
        for client in CLIENTS
    }


def test_every_client_has_the_paths_of_the_golden_file_on_each_system() -> None:
    """`UPDATE_GOLDEN=1` writes it again, for a look at the difference."""
    found = {system: paths_of(system) for system in SYSTEMS}
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))


MOVED = [
    ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
    ("claude-desktop", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"),
    ("claude-desktop", "windows", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
    # Its own variable does not move it on other systems.
    (
        "claude-desktop",
        "macos",
        {"XDG_CONFIG_HOME": "/x", "APPDATA": "/r"},
        "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ("vscode", "windows", {"APPDATA": "/r"}, "/r/Code/User/mcp.json"),
    ("vscode-insiders", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code - Insiders/User/mcp.json"),
    ("zed", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
    ("zed", "linux", {"XDG_CONFIG_HOME": "/x", "FLATPAK_XDG_CONFIG_HOME": "/f"}, "/f/zed/settings.json"),
    ("zed", "macos", {"XDG_CONFIG_HOME": "/x"}, "/home/me/.config/zed/settings.json"),
    ("zed", "windows", {"APPDATA": "/r"}, "/r/Zed/settings.json"),
    ("cline", "linux", {"CLINE_DIR": "/d"}, "/d/data/settings/cline_mcp_settings.json"),
    ("cline", "linux", {"CLINE_DIR": "/d", "CLINE_DATA_DIR": "/e"}, "/e/settings/cline_mcp_settings.json"),
    ("cline", "macos", {"CLINE_DIR": "/d", "CLINE_MCP_SETTINGS_PATH": "/m.json"}, "/m.json"),
    ("continue", "linux", {"CONTINUE_GLOBAL_DIR": "/c"}, "/c/mcpServers/pegboard.json"),
    ("gemini", "linux", {"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"),
    ("codex", "linux", {"CODEX_HOME": "/c"}, "/c/config.toml"),
    ("copilot", "linux", {"COPILOT_HOME": "/c"}, "/c/mcp-config.json"),
    ("copilot", "linux", {"XDG_CONFIG_HOME": "/x"}, "/home/me/.copilot/mcp-config.json"),
    ("opencode", "macos", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"),
    # Set to nothing is not set.
    ("codex", "linux", {"CODEX_HOME": " "}, "/home/me/.codex/config.toml"),
]


@pytest.mark.parametrize(("client", "system", "variables", "path"), MOVED)
def test_a_variable_moves_a_file(client: str, system: System, variables: dict[str, str], path: str) -> None:
    """Exactly where that client reads the variable."""
    target = find_client(client).target(place_of(system, **variables))
    assert target is not None
    assert target.path.as_posix() == path


def test_the_app_of_the_microsoft_store_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Where its package is, that file is the one; elsewhere the usual one."""
    client = find_client("claude-desktop")
    local = tmp_path / "Local"
    place = place_of("windows", tmp_path, LOCALAPPDATA=str(local))
    usual = client.target(place)
    package = local / "Packages" / "Claude_pzs8sxrjxfjjc"
    package.mkdir(parents=True)
    store = client.target(place)
    assert usual is not None
    assert store is not None
    assert usual.path == tmp_path / "AppData" / "Roaming" / "Claude" / "claude_desktop_config.json"
    assert store.path == package / "LocalCache" / "Roaming" / "Claude" / "claude_desktop_config.json"


def test_opencode_reads_jsonc_before_json(tmp_path: Path) -> None:
    """The .jsonc file is used where there is one, even beside the other."""
    place = place_of("linux", tmp_path)
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    for name in ("opencode.json", "opencode.jsonc"):
        (folder / name).write_text("{}")
        target = find_client("opencode").target(place)
        assert target is not None
        assert target.path.name == name


def test_profiles_of_vs_code_are_found(tmp_path: Path) -> None:
    """Each has a file, which is read and not written."""
    profile = tmp_path / ".config" / "Code" / "User" / "profiles" / "-1a2b" / "mcp.json"
    profile.parent.mkdir(parents=True)
    profile.write_text("{}")
    files = find_client("vscode").user_files(place_of("linux", tmp_path))
    assert [(file.path.name, file.is_written) for file in files] == [("mcp.json", True), ("mcp.json", False)]
    assert files[1].path == profile


def test_a_file_that_two_patterns_mean_is_there_once(tmp_path: Path) -> None:
    """Continue reads every JSON file of a folder, ours among them."""
    folder = tmp_path / ".continue" / "mcpServers"
    folder.mkdir(parents=True)
    for name in ("pegboard.json", "other.json"):
        (folder / name).write_text("{}")
    files = find_client("continue").user_files(place_of("linux", tmp_path))
    names = [(file.path.name, file.is_written) for file in files]
    assert names == [("pegboard.json", True), ("other.json", False), ("config.yaml", False)]


@pytest.mark.parametrize("client", [client.id for client in CLIENTS if client.user])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_is_present_where_its_file_is(client: str, system: System, tmp_path: Path) -> None:
    """And not in an empty home."""
    place = place_of(system, tmp_path)
    program = find_client(client)
    assert not program.is_present(place)
    path = next(file.path for file in program.user_files(place))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert program.is_present(place)


def test_a_client_is_present_where_its_program_is(tmp_path: Path) -> None:
    """A program on the PATH is enough."""
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_client("gemini").is_present(place_of("linux", tmp_path / "home", PATH=str(tmp_path)))


@pytest.mark.parametrize("name", ["vscode", "VS Code", "vs  code", "VSCODE"])
def test_a_client_is_found_by_id_or_name(name: str) -> None:
    """People write both."""
    assert find_client(name).id == "vscode"


@pytest.mark.parametrize(("name", "offer"), [("claude", "claude-code"), ("curser", "cursor"), ("opencod", "opencode")])
def test_an_unknown_client_is_answered_with_the_nearest(name: str, offer: str) -> None:
    """So that a slip of the pen costs one look."""
    with pytest.raises(UnknownClientError, match=rf"there is no client '{name}': did you mean .*\b{offer}\b"):
        find_client(name)


def test_a_name_like_no_other_is_answered_with_all() -> None:
    """There are few enough."""
    with pytest.raises(UnknownClientError, match=r"there are claude-code, claude-desktop, vscode"):
        find_client("zzzzzz")


def test_ids_are_unique_and_can_be_names_of_boards() -> None:
    """The board in an entry is the client's id."""
    from pegboard.names import is_board_name

    ids = [client.id for client in CLIENTS]
    assert len(set(ids)) == len(ids)
    assert all(map(is_board_name, ids))


def test_this_place_is_this_machine() -> None:
    """Home and folder of whoever asks."""
    place = this_place()
    assert place.home == Path.home()
    assert place.project == Path.cwd()
