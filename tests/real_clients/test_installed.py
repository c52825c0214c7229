"""What `pegboard install` writes, as real programs read it: Claude Code itself, and mcporter for editors that cannot
run here. `make test-clients` has more of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from real_clients.programs import Home


@pytest.mark.parametrize(
    "before",
    [None, '{\n  "numStartups": 3,\n  "mcpServers": {}\n}', '{"mcpServers": {"x": {"type": "stdio", "command": "x"}}}'],
)
def test_claude_code_is_connected(home: Home, config: Path, gateway: str, before: str | None) -> None:
    """After an install its health check is green; after an uninstall its file is what it was, or gone."""
    file = home.path / ".claude.json"
    if before is not None:
        file.write_text(before)
    said = home.pegboard("install", "claude-code", "--yes", "--config", str(config))
    assert "claude-code" in said
    assert json.loads(file.read_text())["mcpServers"]["pegboard"]["url"] == f"{gateway}/claude-code"
    assert "pegboard: " in (listed := home.run("claude", "mcp", "list"))
    assert "✔ Connected" in listed.partition("pegboard: ")[2].partition("\n")[0]
    home.pegboard("uninstall", "claude-code", "--yes", "--config", str(config))
    after = json.loads(file.read_text()) if file.exists() else {}
    assert "pegboard" not in after.get("mcpServers", {})


def test_claude_code_is_connected_without_a_gateway(home: Home, config: Path) -> None:
    """Then its entry is a command, which is the gateway itself."""
    home.pegboard("install", "claude-code", "--yes", "--config", str(config))
    entry = json.loads((home.path / ".claude.json").read_text())["mcpServers"]["pegboard"]
    assert entry["args"][-2:] == ["--board", "claude-code"] or "--board" in entry["args"]
    assert "✔ Connected" in home.run("claude", "mcp", "list")


def test_mcporter_reads_what_editors_would(home: Home, config: Path, gateway: str) -> None:
    """The entries of editors that cannot run here are right: another program reads them and lists Pegboard's tools."""
    files = {
        "cursor": home.path / ".cursor/mcp.json",
        "windsurf": home.path / ".codeium/windsurf/mcp_config.json",
        "vscode": home.path / ".config/Code/User/mcp.json",
    }
    before = {
        "cursor": b'{\r\n\t// mine\r\n\t"mcpServers": {},\r\n}',
        "windsurf": b'{"mcpServers":{"other":{"command":"true","args":[]}}}\n',
        "vscode": b'{\n    "servers": {\n    },\n    "inputs": []\n}\n',
    }
    for client, file in files.items():
        file.parent.mkdir(parents=True)
        file.write_bytes(before[client])
    for client in files:
        # Of entries with the same name it takes one.
        home.pegboard("install", client, "--name", f"pegboard-{client}", "--yes", "--config", str(config))
    listed = home.run("mcporter", "list", "--json")
    found = {row["name"]: row for row in json.loads(listed[listed.index("{") :])["servers"]}
    for client, file in files.items():
        row = found[f"pegboard-{client}"]
        assert (row["status"], row["source"]["path"], len(row["tools"])) == ("ok", str(file), 9), listed
    home.pegboard("uninstall", *files, "--yes", "--config", str(config))
    assert {client: file.read_bytes() for client, file in files.items()} == before
    del gateway
