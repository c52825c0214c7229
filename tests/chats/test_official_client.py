"""The chat tools as the official SDK's own client sees them: nothing of ours is between it and the gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from mcp import Client, StdioServerParameters

from chats.makers import OLD, Home, log, session, whole
from harness import open_gateway, write_config
from pegboard.toolsets.chats.tools import CHAT_TOOLS, PREFIX

pytestmark = pytest.mark.anyio

OWN: dict[str, Any] = {"toolsets": ["chats"]}


async def asked(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool's answer."""
    result = await client.call_tool(PREFIX + name, arguments)
    answer = result.structured_content
    assert isinstance(answer, dict)
    assert result.is_error is not answer.get("success", False)
    return answer


async def check(client: Client) -> None:
    """Every tool, once as it should be called and once as it should not."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == sorted(tool.name for tool in CHAT_TOOLS)
    for tool in tools.values():
        jsonschema_rs.meta.validate(tool.input_schema)
    asked_second = await asked(client, "get_request", index=2)
    assert (asked_second["sessionId"], asked_second["request"]) == ("new", "and the drawer?")
    assert (await asked(client, "get_request"))["error"] == "Index parameter is required"
    assert (await asked(client, "get_first_request", sessionId="old"))["firstRequest"] == "about the till"
    assert (await asked(client, "get_first_request", sessionId="x"))["error"] == "Session not found: x"
    assert (await asked(client, "get_response", index=1))["response"] == "Answer to open it"
    assert (await asked(client, "get_response", index=9))["error"] == "Index 9 exceeds total requests (2)"
    listed = await asked(client, "list_sessions")
    assert [each["sessionId"] for each in listed["sessions"]] == ["new", "old"]
    assert (await asked(client, "list_sessions", limit=0))["isError"] is True
    found = await asked(client, "search", query="drawer")
    assert [(hit["sessionId"], hit["index"]) for hit in found["results"]] == [("new", 2)]
    assert (await asked(client, "search", query=" "))["error"] == "Query parameter is required"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("front", ["http", "stdio"])
async def test_the_official_client_uses_every_chat_tool(tmp_path: Path, home: Home, front: str, mode: str) -> None:
    """In both eras and over both fronts; answers fit the schemas that it checks them against."""
    home.chat("old", session("about the till"), at=OLD)
    home.chat("new", log(whole(session("open it", "and the drawer?"))), at=OLD + 60)
    if front == "http":
        async with open_gateway(tmp_path, {}, **OWN) as gateway, Client(gateway.mcp, mode=mode) as client:
            await check(client)
        return
    config = write_config(tmp_path / "pegboard.json", {}, **OWN)
    kept = ("PEGBOARD_", "HOME", "XDG_CONFIG_HOME", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    args = ["-m", "pegboard", "stdio", "--config", str(config)]
    async with Client(StdioServerParameters(command=sys.executable, args=args, env=env), mode=mode) as client:
        await check(client)
