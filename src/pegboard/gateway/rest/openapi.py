"""The REST API described for programs (`/openapi.json`) and for people (`/docs`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard.gateway.page.static_files import static_file
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.catalog_routes import TOOL
from pegboard.gateway.rest.operations import TEXT
from pegboard.gateway.rest.responses import json_response
from pegboard.gateway.rest.server_routes import SERVER
from pegboard.gateway.rest.table import route_table
from pegboard.result import ToolErrorCode
from pegboard.version import VERSION

# Addresses that belong together although they begin differently.
_GROUPS = {"memories": "Memory", "chat": "Chats", "status": "Gateway"}
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
                "message": TEXT,
                "retryable": {"type": "boolean"},
                "retryAfter": {"type": "number", "description": "With RATE_LIMITED: seconds until then."},
            },
        },
    },
}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in route_table():
        if (described := route.operation) is not None:
            tagged = {"tags": [_group(route.path)], **described}
            paths.setdefault(route.path.replace(":path}", "}"), {})[route.method.lower()] = tagged
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pegboard", "version": VERSION, "description": "One endpoint for many MCP servers."},
        "tags": [{"name": name} for name in _groups(paths)],
        "paths": paths,
        "components": {"schemas": {"Server": SERVER, "Tool": TOOL, "Failure": _FAILURE}},
    }


def _group(path: str) -> str:
    """The group that a route is shown in: that of what its address is about."""
    _, first, *rest = path.split("/")
    word = rest[0] if first == "api" and rest else "gateway"
    return _GROUPS.get(word, word.capitalize())


def _groups(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every group, in the order in which it is first used."""
    return list(dict.fromkeys(tag for methods in paths.values() for each in methods.values() for tag in each["tags"]))


async def _openapi(*_: object) -> Response:
    return json_response(document(), 200)


async def _docs(_: object, request: Request) -> Response:
    return static_file("index.html").response(request)


ROUTES = (ApiRoute("GET", "/openapi.json", _openapi), ApiRoute("GET", "/docs", _docs))
