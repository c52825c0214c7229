"""The REST route of one server in full: how it is, what it offers, and for admins its entry, without its secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.catalog.server_tools import ServerTools
from pegboard.clients.client import Client
from pegboard.clients.endpoint import endpoint_of
from pegboard.config.edit import entry_digest, find_entry
from pegboard.config.hidden_values import hide_values, with_variables
from pegboard.exactjson import as_object, dump
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import OBJECT, TEXT, Schema, list_of, operation, path_parameter
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.server_routes import DIGEST, SERVER, server_name
from pegboard.names import compose
from pegboard.servers.connection_key import is_per_user
from pegboard.tool import BYTES_A_TOKEN, RegisteredTool

if TYPE_CHECKING:
    from pegboard.config import ServerSpec
    from pegboard.gateway.rest.app import Rest

# Of each kind; a server may offer any number.
_MOST = 1000
# Tools that are looked at in one turn of the loop.
_SLICE = 200
_KINDS = {"prompts": "name", "resources": "uri", "templates": "uriTemplate"}
_TOOL = {
    "type": "object",
    "required": ["name", "allowed", "tokens"],
    "properties": {
        "name": {**TEXT, "description": "As the server calls it."},
        "allowed": {"type": "boolean", "description": "Whether tools.allow and tools.deny let it through."},
        "state": {"enum": ["denied", "withheld", "left out"], "description": "Why no client has it, if none has."},
        "description": TEXT,
        "tokens": {"type": "integer"},
    },
}
_DETAIL: Schema = {
    **SERVER,
    "properties": {
        **(as_object(SERVER["properties"]) or {}),
        **{kind: {**list_of(OBJECT), "description": "What it offers, without its contents."} for kind in _KINDS},
        "instructions": TEXT,
        "entry": {**OBJECT, "description": "Its entry in the config; of a secret, that it is set. For admins."},
        "digest": DIGEST,
        "copy": {**OBJECT, "description": "The same to be used elsewhere, with variables for secrets. For admins."},
        "offers": {**list_of(_TOOL), "description": "Every tool that it has, those that are denied too. For admins."},
    },
}


async def _server(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    name, client = server_name(rest, request), rest.caller(request).client
    await rest.board.discover_own(client.filter)
    row = await rows.client_row(rest.board, rest.board.servers[name], client)
    is_admin = endpoint_of(request.scope).principal.admin
    return row | await _offers(rest, name, client) | (await _internals(rest, name) if is_admin else {})


async def _offers(rest: Rest, name: str, client: Client) -> dict[str, Any]:
    """Prompts, resources and instructions, as far as somebody may know of them."""
    wanted = client.filter
    if not wanted.knows_whole_server(name) or (
        wanted.holder is not None and is_per_user(rest.board.servers[name].spec)
    ):
        # What a part of it offers to one person is read over MCP, which has the rules for that.
        return {}
    offer = rest.board.library.offer(name)
    found: dict[str, Any] = {kind: _briefs(getattr(offer, kind), key) for kind, key in _KINDS.items()}
    said = rest.board.discovery.instructions.get(name)
    return {**found, **({"instructions": said} if said else {})}


def _briefs(items: Iterable[Any], key: str) -> list[dict[str, Any]]:
    known = (as_object(item) or {} for item in islice(items, _MOST))
    return [_brief(item, key) for item in known if key in item]


def _brief(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    texts = {name: item[name] for name in (key, "name", "title", "description", "mimeType") if name in item}
    return {name: text if name == key else rows.cut(text) for name, text in texts.items() if isinstance(text, str)}


async def _internals(rest: Rest, name: str) -> dict[str, Any]:
    entry = find_entry(rest.config.path, name)
    own: dict[str, Any] = {}
    if entry is not None:
        own = {"entry": hide_values(entry), "digest": entry_digest(entry), "copy": with_variables(entry, name)}
    return {**own, "offers": await _every_tool(rest, name)}


async def _every_tool(rest: Rest, name: str) -> list[dict[str, Any]]:
    """All of them, whose number is bounded where they come from; others have their turn in between."""
    known, spec = rest.board.registry.server(name), rest.board.servers[name].spec
    raw, tools = ([], {}) if known is None else (known.raw, known.tools)
    listed = {tool.original_name: tool for tool in tools.values()}
    found: list[dict[str, Any]] = []
    for number, tool in enumerate(map(as_object, raw)):
        if number % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
        if tool is not None and isinstance(tool.get("name"), str):
            found.append(_own_tool(tool, spec, listed.get(tool["name"]), known))
    return found


def _own_tool(
    tool: Mapping[str, Any], spec: ServerSpec, listed: RegisteredTool | None, known: ServerTools | None
) -> dict[str, Any]:
    name = tool["name"]
    # In a prompt it has the name that clients use.
    named = {**tool, "name": compose(spec.name, name)} if spec.prefix else tool
    # Clients may have an older definition, which was approved.
    shown = tool if listed is None else listed.definition
    row: dict[str, Any] = {
        "name": name,
        "allowed": spec.permits(name),
        "description": rows.cut(str(shown.get("description") or shown.get("title") or "")),
        "tokens": len(dump(named)) // BYTES_A_TOKEN if listed is None else listed.tokens,
    }
    if state := _state(spec, name, known):
        row["state"] = state
    return row


def _state(spec: ServerSpec, name: str, known: ServerTools | None) -> str:
    """Why no client has a tool; an empty text where clients have it."""
    if not spec.permits(name):
        return "denied"
    if known is not None and name in known.withheld:
        return "withheld"
    return "left out" if known is not None and (name in known.rejected or name in known.conflicts) else ""


ROUTES = (
    ApiRoute(
        "GET",
        "/api/servers/{name}",
        _server,
        operation(
            "One server: how it is, what it offers, and its entry in the config", _DETAIL, path_parameter("name")
        ),
    ),
)
