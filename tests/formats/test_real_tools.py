"""Tools of servers that other people wrote, in every form, against the SDKs' own types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from anthropic.types import ToolParam
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam, NamespaceToolParam

from formats.toolbox import fits
from harness import Entry, open_board
from pegboard.formats import Conversions, NameBook, anthropic, openai_chat, openai_responses, plain_json
from pegboard.formats.strict import is_strict
from real_servers.test_real_servers import npm, real_servers

pytestmark = pytest.mark.anyio

REFUSED_AT_THE_TOP = {"oneOf", "anyOf", "allOf", "not", "enum", "$schema"}


def more_servers() -> dict[str, Entry]:
    """Servers that start without a network, some of them with a key that opens nothing."""
    official = "@modelcontextprotocol/server-"
    return {
        "brave": with_env(npm(f"{official}brave-search"), BRAVE_API_KEY="x"),
        "chart": npm("@antv/mcp-server-chart", "build/index.js"),
        "chrome": npm("chrome-devtools-mcp", "build/src/bin/chrome-devtools-mcp.js"),
        "context7": npm("@upstash/context7-mcp"),
        "eslint": npm("@eslint/mcp", "src/mcp-cli.js"),
        "firecrawl": with_env(npm("firecrawl-mcp"), FIRECRAWL_API_KEY="x"),
        "github": npm(f"{official}github"),
        "gitlab": with_env(npm(f"{official}gitlab"), GITLAB_PERSONAL_ACCESS_TOKEN="x"),
        "google_maps": with_env(npm(f"{official}google-maps"), GOOGLE_MAPS_API_KEY="x"),
        "hubspot": with_env(npm("@hubspot/mcp-server"), PRIVATE_APP_ACCESS_TOKEN="x"),
        "notion": with_env(npm("@notionhq/notion-mcp-server", "bin/cli.mjs"), NOTION_TOKEN="x"),
        "playwright": npm("@playwright/mcp", "cli.js"),
        "slack": with_env(npm(f"{official}slack"), SLACK_BOT_TOKEN="x", SLACK_TEAM_ID="x"),
        "tavily": with_env(npm("tavily-mcp", "build/index.js"), TAVILY_API_KEY="x"),
        "thinking": npm(f"{official}sequential-thinking"),
    }


def with_env(entry: Entry, **env: str) -> Entry:
    return {**entry, "env": env}


def check_schema(schema: dict[str, Any], original: dict[str, Any]) -> None:
    """An object in 2020-12 with no composition at the top and all of the original's parameters."""
    assert schema["type"] == "object"
    assert REFUSED_AT_THE_TOP.isdisjoint(schema)
    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.validator_for(schema)
    assert list(schema["properties"]) == list(original.get("properties") or {})
    assert schema.get("required") == original.get("required")


async def test_all_tools_of_twenty_one_real_servers(tmp_path: Path) -> None:
    """Each fits the types of both SDKs, has only keys they know, and can be told by its name."""
    servers = {**real_servers(tmp_path), **more_servers()}
    async with open_board(tmp_path, servers, toolsets=["discovery", "memory"]) as board:
        (await board.refresh()).unwrap()
        tools = board.registry.all()
    assert len(servers) == 21
    assert {tool.server_name for tool in tools} == {None, *servers}
    assert len(tools) > 280
    names, conversions = NameBook(tools), Conversions()
    functions = openai_responses.definitions(tools, names, conversions)
    for tool, claude, function, chat, simple in zip(
        tools,
        anthropic.definitions(tools, names, conversions, deferred={tool.name for tool in tools if tool.server_name}),
        functions,
        openai_chat.definitions(tools, names, conversions),
        plain_json.definitions(tools, names),
        strict=True,
    ):
        fits(claude, ToolParam)
        fits(function, FunctionToolParam)
        fits(chat, ChatCompletionToolParam)
        original = tool.definition["inputSchema"]
        check_schema(claude["input_schema"], original)
        check_schema(function["parameters"], original)
        assert simple["inputSchema"] == original
        assert {claude["name"], function["name"], chat["function"]["name"], simple["name"]} == {names.name(tool.name)}
        assert names.tool(claude["name"]) == tool.name
        assert function["strict"] is chat["function"]["strict"] is is_strict(function["parameters"])
    groups = [each for each in openai_responses.namespaces(tools, names, conversions) if each["type"] == "namespace"]
    for group in groups:
        fits(group, NamespaceToolParam)
        for function in group["tools"]:
            assert names.tool(function["name"], group["name"]) in board.registry._names
    assert {group["name"] for group in groups} == set(servers)
    assert any(function["strict"] for function in functions)
