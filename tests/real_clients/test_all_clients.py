"""Gemini CLI, OpenCode, Codex and Copilot CLI see Pegboard healthy after an install, and their files are as they were
after an uninstall."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from real_clients.programs import Home, find_program

BEFORE = {
    "gemini": '{\n  // mine\n  "theme": "dark",\n  "mcpServers": {}\n}\n',
    "opencode": '{\n  "$schema": "x",\n  "mcp": {}, // servers\n}\n',
    "codex": '# mine\r\nmodel = "o5"\r\n\r\n[mcp_servers.other]\r\ncommand = "true"',
    "copilot": '{"mcpServers":{}}',
}
FILES = {
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "codex": ".codex/config.toml",
    "copilot": ".copilot/mcp-config.json",
}

# What is made where none is there.
NEW_FILES = {"opencode": ".config/opencode/opencode.json"}


def health(home: Home, client: str) -> str:
    """What a client says of Pegboard."""
    match client:
        case "gemini":
            return home.run("gemini", "mcp", "list", GEMINI_CLI_TRUST_WORKSPACE="true")
        case "opencode":
            return home.run("opencode", "mcp", "list")
        case "codex":
            return codex_status(home)
        case _:
            return home.run("copilot", "mcp", "list")


HEALTHY = {"gemini": "✓ pegboard: ", "opencode": "✓ pegboard connected", "codex": '"tool_find"', "copilot": "pegboard"}


@pytest.mark.parametrize("client", list(FILES))
@pytest.mark.parametrize("way", ["--http", "--stdio"])
@pytest.mark.parametrize("there", [True, False], ids=["a file", "no file"])
def test_a_client_is_healthy_after_an_install(
    home: Home, config: Path, gateway: str, client: str, way: str, there: bool
) -> None:
    """By its own health check, over HTTP and as a command; then its file is again what it was."""
    del gateway
    file = home.path / (FILES[client] if there else NEW_FILES.get(client, FILES[client]))
    if there:
        file.parent.mkdir(parents=True)
        file.write_bytes(BEFORE[client].encode())
    home.pegboard("install", client, way, "--yes", "--config", str(config))
    assert HEALTHY[client] in (said := health(home, client)), said
    written = file.read_bytes()
    home.pegboard("uninstall", client, "--yes", "--config", str(config))
    assert b"pegboard" in written
    # OpenCode writes the name of its schema into a file that it did not make; that alone keeps no file.
    after = file.read_bytes() if file.exists() else None
    assert after == (BEFORE[client].encode() if there else None)


def codex_status(home: Home) -> str:
    """The servers that Codex's app-server knows, with their tools."""
    (home.path / ".codex").mkdir(exist_ok=True)
    messages = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
    ]
    command = [str(find_program("codex")), "app-server"]
    with subprocess.Popen(
        command, env=home.environment(), cwd=home.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for message in messages:
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                if json.loads(line).get("id") == 2:
                    return line
        finally:
            process.kill()
    return ""
