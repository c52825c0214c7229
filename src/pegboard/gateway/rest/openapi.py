"""The REST API described for programs (`/openapi.json`) and for people (`/docs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pegboard.result import ToolErrorCode
from pegboard.tool import Tool
from pegboard.toolsets.chats.tools import ChatTool, ListSessions, SearchChats
from pegboard.toolsets.memory.tools import MEMORY_TOOLS
from pegboard.toolsets.tasks.graph import FORMATS
from pegboard.toolsets.tasks.tools import TASK_TOOLS
from pegboard.version import VERSION

_TEXT = {"type": "string"}
_SERVER = {
    "type": "object",
    "required": ["name", "state", "enabled", "transport", "tools"],
    "properties": {
        "name": _TEXT,
        "state": {
            "enum": [
                *("registered", "connecting", "connected", "idle", "unreachable", "lost", "disabled", "needs_auth"),
                "invalid",
            ]
        },
        "enabled": {"type": "boolean"},
        "transport": {"enum": ["stdio", "http", "sse"]},
        "tools": {"type": "integer", "minimum": 0},
        "seen": {"type": "boolean", "description": "Whether its tools are known."},
        "lastSeen": {"type": ["string", "null"], "format": "date-time"},
        "latencyMs": {"type": ["number", "null"]},
        "lastError": {"type": ["string", "null"]},
        "era": {"enum": ["handshake", "modern", None]},
        "protocolVersion": {"type": ["string", "null"]},
        "staleSince": {"type": ["string", "null"], "format": "date-time"},
        "nextTryInSeconds": {"type": ["number", "null"]},
        "conflicts": {"type": "array", "items": _TEXT},
        "rejected": {"type": "object", "additionalProperties": _TEXT},
        "cut": {"type": "array", "items": _TEXT, "description": "Which of its lists are too long, and were cut."},
    },
}
_TOOL = {
    "type": "object",
    "required": ["name", "server", "description", "status"],
    "properties": {
        "name": _TEXT,
        "server": {"type": ["string", "null"], "description": "null for Pegboard's own tools."},
        "description": _TEXT,
        "status": {"enum": ["available", "unavailable", "disabled", "needs_auth"]},
        "reason": _TEXT,
        "staleSince": {"type": "string", "format": "date-time"},
        "nextTryInSeconds": {"type": "number"},
    },
}
_FAILURE = {
    "type": "object",
    "required": ["success", "error"],
    "properties": {
        "success": {"const": False},
        "error": {
            "type": "object",
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": {"enum": [code.value for code in ToolErrorCode]},
                "message": _TEXT,
                "retryable": {"type": "boolean"},
            },
        },
    },
}
_NAME = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_KEY = {"name": "key", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pegboard", "version": VERSION, "description": "One endpoint for many MCP servers."},
        "paths": {
            "/health": {
                "get": _plain("Whether the gateway is up, and whether its storage works: status is ok or degraded")
            },
            "/metrics": {"get": _plain("Counters for Prometheus", "text/plain")},
            "/api/servers": {
                "get": _operation(
                    "Every server and its state; `configProblem` says why the config file is not in use as it is now",
                    _of("servers", _list(_SERVER), configProblem={"type": "string"}),
                )
            },
            "/api/servers/{name}/enable": {"post": _operation("Enable a server", _SERVER, _NAME)},
            "/api/servers/{name}/disable": {"post": _operation("Disable a server", _SERVER, _NAME)},
            "/api/servers/{name}/refresh": {
                "post": _operation("Ask a server for its tools now", _of("registered", {"type": "integer"}), _NAME)
            },
            "/api/tools": {
                "get": _operation(
                    "Every tool that passes the filters",
                    _of("tools", _list(_TOOL)),
                    _query("server", "Names of servers, comma separated."),
                    _query("prefix", "How a tool's name begins."),
                    _query("status", "available, unavailable, disabled or needs_auth."),
                )
            },
            "/api/tools/search": {
                "get": _operation(
                    "The tools that fit a query best, as tool_find gives them",
                    _of("tools", _list({"type": "object"})),
                    _query("q", "What the tool should do, in plain words.", required=True),
                    _query("limit", "How many at most: 1 to 50, 10 if nothing is said."),
                )
            },
            "/api/tools/{name}": {"get": _operation("A tool in full", {"type": "object"}, _NAME)},
            "/api/tools/{name}/call": {"post": _call()},
            **_memory_paths(),
            **_chat_paths(),
            **_task_paths(),
        },
        "components": {"schemas": {"Server": _SERVER, "Tool": _TOOL, "Failure": _FAILURE}},
    }


def _call() -> dict[str, Any]:
    operation = _operation(
        "Call a tool; data is its result, also beside the error where a tool of Pegboard's own fails",
        {"type": "object"},
        _NAME,
    )
    body = {"type": "object", "properties": {"arguments": {"type": "object"}}, "additionalProperties": False}
    operation["requestBody"] = {"required": False, "content": {"application/json": {"schema": body}}}
    return operation


def _memory_paths() -> dict[str, Any]:
    """Each is one of the memory tools, and says what that says."""
    tools = {tool.name: tool for tool in MEMORY_TOOLS}

    def operation(name: str, *, path: str = "", body: bool = False, **names: str) -> dict[str, Any]:
        place = {path: [_KEY]} if path else {}
        return _of_tool(tools[name], place, in_query=("namespace",) if body else None, names=names)

    added = operation("memory_add", body=True)
    added["responses"]["201"] = {**added["responses"]["200"], "description": "It is written down."}
    return {
        "/api/memories": {"get": operation("memory_list"), "post": added},
        "/api/memories/{key}": {
            "get": operation("memory_get", path="key"),
            "patch": operation("memory_update", path="key", body=True),
            "delete": operation("memory_delete", path="key"),
        },
        "/api/memories/{key}/rename": {"post": operation("memory_rename", path="old_key", body=True)},
        "/api/memories/{key}/linked": {"get": operation("memory_read_linked", path="key")},
        "/api/memory/search": {"get": operation("memory_search", query="q")},
        "/api/memory/fulltext": {"get": operation("memory_fulltext_search")},
    }


def _chat_paths() -> dict[str, Any]:
    """The list and the search are chat tools."""

    def operation(tool: type[ChatTool], required: Sequence[str] = (), **names: str) -> dict[str, Any]:
        answered = (tool.output_schema or {})["properties"].items()
        data = {key: schema for key, schema in answered if key not in {"success", "error", "isError"}}
        queries = _queries(tool.input_schema["properties"], required, names)
        return _operation(tool.description, {"type": "object", "properties": data}, *queries)

    whole = operation(ListSessions)
    whole["summary"] = "A dialog: its requests with their answers"
    whole["parameters"] = [_ID, *(each for each in whole["parameters"] if each["name"] != "workspace")]
    data = {"type": "object", "properties": {"sessionId": _TEXT, "requests": _list({"type": "object"})}}
    whole["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["data"] = data
    return {
        "/api/chats": {"get": operation(ListSessions)},
        "/api/chats/{id}": {"get": whole},
        "/api/chat/search": {"get": operation(SearchChats, ["query"], query="q")},
    }


def _task_paths() -> dict[str, Any]:
    """Each is one of the task tools, save the graph."""
    tools = {tool.name: tool for tool in TASK_TOOLS}
    change = {"name": "change", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "string"}}
    drawing = _operation(
        "Who waits for whom: Mermaid text, a picture for a terminal, or its rows",
        {"type": "object", "required": ["format", "tasks", "left_out"]},
        _query("path", "The folder that holds openspec."),
        _query("change_id", "Only tasks of this change, with what they need."),
        _query("format", f"{', '.join(FORMATS)}; mermaid if nothing is said."),
    )
    return {
        "/api/tasks": {"get": _of_tool(tools["registry_list"])},
        "/api/tasks/next": {"get": _of_tool(tools["registry_next"])},
        "/api/tasks/graph": {"get": drawing},
        "/api/tasks/sync": {"post": _of_tool(tools["registry_sync"], in_query=("path",), body_needed=False)},
        "/api/tasks/{change}/{number}": {
            "patch": _of_tool(tools["registry_update"], {"task_id": (change, number)}, in_query=("path",))
        },
    }


def _of_tool(
    tool: type[Tool],
    in_path: Mapping[str, Sequence[dict[str, Any]]] | None = None,
    *,
    in_query: Sequence[str] | None = None,
    body_needed: bool = True,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An operation that is a tool: its parameters in the path and the query, or all but some of these in the body."""
    placed = in_path or {}
    properties = {key: schema for key, schema in tool.input_schema["properties"].items() if key not in placed}
    required = [key for key in tool.input_schema["required"] if key not in placed]
    inside = {key: schema for key, schema in properties.items() if in_query is None or key in in_query}
    queried = _queries(inside, required, names or {})
    data = (tool.output_schema or {})["properties"]["data"]
    parts = [part for each in placed.values() for part in each]
    described = _operation(tool.description, data, *parts, *queried)
    if in_query is not None:
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        described["requestBody"] = {"required": body_needed, "content": {"application/json": {"schema": schema}}}
    return described


def _queries(properties: Mapping[str, Any], required: Sequence[str], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """A tool's parameters in an address, some under other names."""
    return [
        {
            "name": names.get(key, key),
            "in": "query",
            "required": key in required,
            "description": schema["description"],
            "schema": schema,
        }
        for key, schema in properties.items()
    ]


def _operation(summary: str, data: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    success = {
        "type": "object",
        "required": ["success", "data"],
        "properties": {"success": {"const": True}, "data": data},
    }
    return {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {
            "200": {"description": "It worked.", "content": {"application/json": {"schema": success}}},
            "default": {
                "description": "It failed; the status fits the code.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
            },
        },
    }


def _plain(summary: str, kind: str = "application/json") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "It is.", "content": {kind: {}}}}}


def _of(key: str, schema: dict[str, Any], **optional: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [key], "properties": {key: schema, **optional}}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _query(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "description": description, "schema": _TEXT}
