"""Claude Code is changed by its own command line where that is there: here by a program that stands for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallContext, InstallOptions
from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.install import apply_install, plan_install
from pegboard.client_configs.place import System
from pegboard.client_configs.table import find_client
from pegboard.client_configs.uninstall import apply_uninstall, plan_uninstall

CLAUDE = find_client("claude-code")
# As the real one: it writes the file anew, counts its starts there, and refuses a name that is taken.
PROGRAM = """#!{python}
import json, os, pathlib, sys
file = pathlib.Path(os.environ["HOME"]) / ".claude.json"
data = json.loads(file.read_text()) if file.exists() else {{}}
(pathlib.Path(os.environ["HOME"]) / "calls").open("a").write(json.dumps(sys.argv[1:]) + "\\n")
data["numStartups"] = data.get("numStartups", 0) + 1
servers = data.setdefault("mcpServers", {{}})
match sys.argv[1:]:
    case ["mcp", "add-json", "-s", "user", name, text] if name not in servers:
        servers[name] = json.loads(text)
    case ["mcp", "remove", "-s", "user", name] if name in servers:
        del servers[name]
    case _:
        sys.exit("MCP server " + sys.argv[5] + " already exists in user config")
file.write_text(json.dumps(data, indent=2))
"""


def machine(tmp_path: Path, system: System = "linux") -> InstallContext:
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    program = programs / "claude"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    return context_of(tmp_path, system, HOME=str(home), PATH=str(programs))


def calls(tmp_path: Path) -> list[list[str]]:
    file = tmp_path / "home" / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_claude_adds_and_the_file_is_as_before_after_uninstall(tmp_path: Path) -> None:
    """Byte for byte, though `claude` wrote it anew, as long as nothing else happened to it."""
    context = machine(tmp_path)
    file, content = tmp_path / "home" / ".claude.json", b'{"numStartups":3}'
    file.write_bytes(content)
    apply_install(plan_install(CLAUDE, context, InstallOptions()), context)
    entry = {"type": "http", "url": "http://127.0.0.1:7420/mcp/claude-code"}
    assert calls(tmp_path) == [["mcp", "add-json", "-s", "user", "pegboard", json.dumps(entry)]]
    assert json.loads(file.read_bytes()) == {"numStartups": 4, "mcpServers": {"pegboard": entry}}
    apply_uninstall(plan_uninstall(CLAUDE, context), context)
    assert file.read_bytes() == content


def test_claude_takes_out_what_it_has_changed_since(tmp_path: Path) -> None:
    """A session wrote its file: then `claude` takes out the entry, and nothing else is lost."""
    context = machine(tmp_path)
    file = tmp_path / "home" / ".claude.json"
    file.write_text("{}")
    apply_install(plan_install(CLAUDE, context, InstallOptions()), context)
    file.write_text(json.dumps({**json.loads(file.read_text()), "theme": "dark"}))
    apply_uninstall(plan_uninstall(CLAUDE, context), context)
    assert calls(tmp_path)[-1] == ["mcp", "remove", "-s", "user", "pegboard"]
    assert json.loads(file.read_text()) == {"numStartups": 2, "theme": "dark", "mcpServers": {}}


@pytest.mark.scenario("first hour: What an install took out or made is undone")
@pytest.mark.parametrize("name", ["time", "not for claude's add-json"])
def test_claude_adds_what_a_replace_took_out_though_it_changed_its_file_since(tmp_path: Path, name: str) -> None:
    """Servers that were moved to Pegboard are in Claude Code again; a name that `claude` would refuse, by the file."""
    context = machine(tmp_path)
    file, entry = tmp_path / "home" / ".claude.json", {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"]}
    file.write_text(json.dumps({"mcpServers": {name: entry}}))
    context.config.write_text(json.dumps({"mcpServers": {"time": entry}}))
    context = with_working_servers(context)
    apply_install(plan_install(CLAUDE, context, InstallOptions(replace=True)), context)
    file.write_text(json.dumps({**json.loads(file.read_text()), "theme": "dark"}))
    apply_uninstall(plan_uninstall(CLAUDE, context), context)
    assert json.loads(file.read_text())["mcpServers"] == {name: entry}
    assert (calls(tmp_path)[-1][4] == name) == (name == "time")
    assert json.loads(file.read_text())["theme"] == "dark"


def test_an_update_takes_the_old_entry_out_first(tmp_path: Path) -> None:
    """`claude` refuses a name that is taken."""
    context = machine(tmp_path)
    for options in (InstallOptions(), InstallOptions(kind="stdio")):
        apply_install(plan_install(CLAUDE, context, options), context)
    assert [call[1] for call in calls(tmp_path)] == ["add-json", "remove", "add-json"]
    again = plan_install(CLAUDE, context, InstallOptions(board="b"))
    assert not any(line.startswith("-") and "numStartups" in line for line in again.diff.splitlines())
    servers = json.loads((tmp_path / "home" / ".claude.json").read_text())["mcpServers"]
    assert servers["pegboard"]["command"] == "/opt/bin/pegboard"
    apply_uninstall(plan_uninstall(CLAUDE, context), context)
    assert not (tmp_path / "home" / ".claude.json").exists()


def test_what_claude_says_is_passed_on(tmp_path: Path) -> None:
    """A failure of the program is a failure of the install."""
    context = machine(tmp_path)
    (tmp_path / "home" / ".claude.json").write_text("{}")
    plan = plan_install(CLAUDE, context, InstallOptions())
    entry = {"mcpServers": {"pegboard": {"command": "x"}}}
    (tmp_path / "home" / ".claude.json").write_text(json.dumps(entry))
    with pytest.raises(ClientFileError, match=r"`claude mcp add-json` failed: MCP server pegboard already exists"):
        apply_install(plan, context)
    assert json.loads((tmp_path / "home" / ".claude.json").read_text()) == entry


@pytest.mark.parametrize("scope", ["user", "project"])
def test_windows_and_projects_use_the_file(tmp_path: Path, scope: str) -> None:
    """There `claude` is a batch file, which spoils JSON; and `.mcp.json` is no file of its sessions."""
    context = machine(tmp_path, "windows" if scope == "user" else "linux")
    options = InstallOptions(scope="user" if scope == "user" else "project")
    apply_install(plan_install(CLAUDE, context, options), context)
    assert calls(tmp_path) == []
    file = tmp_path / "home" / ".claude.json" if scope == "user" else tmp_path / "project" / ".mcp.json"
    assert "pegboard" in json.loads(file.read_text())["mcpServers"]
