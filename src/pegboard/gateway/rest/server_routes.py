"""REST routes of servers: state, add, check, change, remove, enable, disable, refresh."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from starlette.requests import Request

from pegboard.board import Board
from pegboard.client_configs.import_plan import ImportPlan, plan_import
from pegboard.client_configs.reader import no_servers, read_text
from pegboard.client_configs.reading import PASTED
from pegboard.clients.endpoint import endpoint_of
from pegboard.config.aliases import ALL_ALIASES, with_own_keys
from pegboard.config.read import KEYS
from pegboard.config.settings import CHANGE_POLICIES, EntryChangedError, ServerExistsError, Transport
from pegboard.exactjson import as_object
from pegboard.gateway.rest import rows
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    Operation,
    Schema,
    list_of,
    object_with,
    operation,
    path_parameter,
    with_body,
)
from pegboard.gateway.rest.responses import Created, body_of, members_of
from pegboard.listing.view import Filter
from pegboard.log import REDACTED
from pegboard.names import fold_server_name, nearest
from pegboard.result import Conflict, ToolErrorCode, ToolFailure, invalid
from pegboard.servers.authorization import Challenge
from pegboard.servers.http.refusal import NeedsAuth

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

SERVER: Schema = {
    "type": "object",
    "required": ["name", "state", "enabled", "transport", "tools"],
    "properties": {
        "name": TEXT,
        "state": {
            "enum": [
                *("registered", "connecting", "connected", "idle", "unreachable", "lost", "disabled", "needs_auth"),
                "invalid",
            ]
        },
        "enabled": {"type": "boolean"},
        "transport": {"enum": [*get_args(Transport)]},
        "tools": {"type": "integer", "minimum": 0},
        "seen": {"type": "boolean", "description": "Whether its tools are known."},
        "lastSeen": {"type": ["string", "null"], "format": "date-time"},
        "latencyMs": {"type": ["number", "null"]},
        "lastError": {"type": ["string", "null"]},
        "era": {"enum": ["handshake", "modern", None]},
        "protocolVersion": {"type": ["string", "null"]},
        "staleSince": {"type": ["string", "null"], "format": "date-time"},
        "nextTryInSeconds": {"type": ["number", "null"]},
        "needsLogin": {"type": "boolean", "description": "Whether somebody has to sign in to it."},
        "perUser": {"type": "boolean", "description": "Whether everybody signs in to it for themselves."},
        "changed": {
            **object_with(
                "waits",
                {"type": "integer"},
                policy={"enum": [*CHANGE_POLICIES]},
                withheld={"type": "integer", "description": "How many of them no client has."},
                wantsLook={"type": "integer", "description": "How many of them have marks."},
                rejected={"type": "integer", "description": "How many others no client has, for they were rejected."},
            ),
            "description": "How much of its definitions changed since they were approved, and what becomes of that.",
        },
        "conflicts": {"type": "array", "items": TEXT},
        "rejected": {"type": "object", "additionalProperties": TEXT},
        "cut": {"type": "array", "items": TEXT, "description": "Which of its lists are too long, and were cut."},
    },
}
# To take a text apart takes many times its size.
_MOST_CHARACTERS = 256 * 1024
_NAME = path_parameter("name")
_FLAG = {"type": "boolean"}
_CHECK: Schema = {"text": TEXT, "name": TEXT}
_ADD: Schema = {"name": TEXT, "entry": OBJECT, "force": _FLAG, "text": TEXT}
PLAN = {
    "type": "object",
    "required": ["servers", "unreadable"],
    "properties": {"servers": list_of(OBJECT), "unreadable": list_of(OBJECT)},
}
DIGEST: Schema = {**TEXT, "description": "Of its entry in the config: another entry has another one. For admins."}
_CHANGED: Schema = {**SERVER, "properties": {**(as_object(SERVER["properties"]) or {}), "digest": DIGEST}}
_SEEN: Schema = {**TEXT, "description": "Of the entry that the change is for: if it is another by now, it is a 409."}
_CHANGE: Schema = {"type": "object", "properties": {"digest": _SEEN}}
_ADDED = object_with("added", list_of(SERVER), servers=list_of(OBJECT), unreadable=list_of(OBJECT))


def server_problem(board: Board, name: str, wanted: Filter) -> str | None:
    """What is wrong with the name of a server, if there is none of that name for whoever asks."""
    known = [each for each in board.servers if wanted.admits_server(each)]
    if name in known:
        return None
    close = nearest(name[:80], known, 1)
    return f"there is no server {name[:80]!r}{f': did you mean {close[0]}?' if close else ''}"


async def _servers(rest: Rest, request: Request) -> Any:
    client, problem = rest.caller(request).client, rest.config.problem
    await rest.board.discover_own(client.filter)
    refused = {} if problem is None or not client.principal.admin else {"configProblem": problem}
    return {"servers": await rows.client_rows(rest.board, client), **refused}


async def _enable(rest: Rest, request: Request) -> Any:
    return await _switch(rest, request, enabled=True)


async def _disable(rest: Rest, request: Request) -> Any:
    return await _switch(rest, request, enabled=False)


async def _switch(rest: Rest, request: Request, *, enabled: bool) -> Any:
    name = server_name(rest, request)
    await rest.config.switch(name, enabled=enabled)
    return await _row(rest, request, name)


async def _refresh(rest: Rest, request: Request) -> Any:
    name, client = server_name(rest, request), rest.caller(request).client
    await rest.board.discover_own(client.filter)
    if rest.board.discovery.own.needs_sign_in(name, client.filter.holder):
        refused = NeedsAuth(name, Challenge(401), signs_in=True, has_sign_in=True)
        raise rest.board.sign_in_advice.reword(refused, client)
    # It asks the server, so it counts as a call does.
    slot = rest.board.limits.admit(endpoint_of(request.scope).principal, name)
    try:
        asked = await rest.board.refresh([name])
    finally:
        if slot is not None:
            slot.release()
    if asked.error is not None and not client.filter.knows_whole_server(name):
        # Why is for whoever is told its last error: it may name what only other tools have.
        raise ToolFailure(asked.error.code, f"server {name} could not be asked", retryable=asked.error.retryable)
    found = asked.unwrap()
    # Whoever is not given all of its tools is not told how many there are.
    is_limited = client.filter.access is not None and not client.principal.admin
    if is_limited:
        return {"registered": (await rows.count_tools(rest.board, [name], client.filter))[name]}
    return {**found, **rows.withheld_of(rest.board, name)}


async def _check(rest: Rest, request: Request) -> Any:
    plan = await _plan(rest, request, await members_of(request, _CHECK))
    return await asyncio.to_thread(plan.to_dict)


async def _add(rest: Rest, request: Request) -> Any:
    body = await members_of(request, _ADD)
    if "text" not in body:
        return await _add_one(rest, request, body)
    if "entry" in body or "force" in body:
        raise invalid("text stands alone, or with name: entry and force are for one server")
    plan = await _plan(rest, request, body)
    if not plan.entries and not plan.servers:
        raise invalid("; ".join(map(str, plan.unreadable)))
    await rest.config.add_all(plan.entries)
    added = [fold_server_name(name) for name in plan.entries]
    return Created({**await server_rows_of(rest, request, added), **await asyncio.to_thread(plan.to_dict)})


async def _add_one(rest: Rest, request: Request, body: Mapping[str, Any]) -> Any:
    name, entry = body.get("name"), as_object(body.get("entry"))
    if not isinstance(name, str) or not name.strip() or entry is None:
        raise invalid("name and entry are needed: what the server is called, and how it is reached; or text")
    if not isinstance(force := body.get("force", False), bool):
        raise invalid("force must be true or false")
    _check_members(entry)
    if with_own_keys(entry).keys().isdisjoint({"command", "url"}):
        raise invalid("the entry needs a command or a url")
    try:
        is_new = await rest.config.add(name, entry, force=force)
    except ServerExistsError:
        words = f'there is a server "{fold_server_name(name)}" already: choose another name, or replace it with force'
        raise Conflict(words) from None
    answer = await server_rows_of(rest, request, [fold_server_name(name)])
    return Created(answer) if is_new else answer


async def _change(rest: Rest, request: Request) -> Any:
    name = server_name(rest, request)
    members = await body_of(request)
    if not isinstance(digest := members.pop("digest", None), (str, type(None))):
        raise invalid("digest must be a text")
    _check_members(members)
    if not members:
        raise invalid("there is nothing to change: send the keys of the entry that are to be set, null takes one out")
    try:
        after = await rest.config.change(name, members, digest)
    except EntryChangedError as exc:
        raise Conflict(str(exc)) from None
    return {**await _row(rest, request, name), "digest": after}


async def _remove(rest: Rest, request: Request) -> Any:
    name = server_name(rest, request)
    rest.removed.keep(name, await rest.config.remove(name))
    return {"removed": name}


async def _restore(rest: Rest, request: Request) -> Any:
    name = str(request.path_params["name"])
    removed = rest.removed.find(name)
    if removed is None:
        words = f"nothing is kept of a server {name[:80]!r} that was removed: it is kept for ten minutes"
        raise ToolFailure(ToolErrorCode.NOT_FOUND, words, retryable=False)
    try:
        await rest.config.restore(removed)
    except ServerExistsError as exc:
        raise Conflict(str(exc)) from None
    rest.removed.forget(name)
    return await _row(rest, request, name)


async def _plan(rest: Rest, request: Request, body: Mapping[str, Any]) -> ImportPlan:
    text, name = body.get("text"), body.get("name")
    if not isinstance(text, str) or not isinstance(name, (str, type(None))):
        raise invalid("text must be a text, and so must name")
    if len(text) > _MOST_CHARACTERS:
        raise invalid(f"text has more than {_MOST_CHARACTERS:,} characters: pegboard import reads longer files")
    # A long text takes its time, in which others are served.
    return await asyncio.to_thread(_read_plan, rest, text, name, own_ports(request))


def own_ports(request: Request) -> tuple[int, ...]:
    """Our own port: an entry that leads to it is Pegboard itself."""
    server: tuple[str, int] | None = request.scope.get("server")
    return () if server is None else (server[1],)


def _read_plan(rest: Rest, text: str, name: str | None, ports: Collection[int]) -> ImportPlan:
    reading = no_servers(read_text(text, PASTED), PASTED)
    if name is not None and len(reading.servers) == 1:
        reading = replace(reading, servers=(replace(reading.servers[0], name=name),))
    elif name is not None and reading.servers:
        raise invalid(f"name is for one server, and the text has {len(reading.servers)}")
    return plan_import(reading, rest.config.entries(), ports=ports)


async def server_rows_of(rest: Rest, request: Request, names: Sequence[str]) -> dict[str, Any]:
    """Servers that were just added, as they are for whoever asks."""
    return {"added": [await _row(rest, request, name) for name in names if name in rest.board.servers]}


async def _row(rest: Rest, request: Request, name: str) -> dict[str, Any]:
    """A server as it is for whoever asks."""
    client = rest.caller(request).client
    await rest.board.discover_own(client.filter)
    return await rows.client_row(rest.board, rest.board.servers[name], client)


def _check_members(entry: Mapping[str, Any]) -> None:
    if REDACTED in json.dumps(entry):
        raise invalid(f"{REDACTED} stands for a secret that is not shown: leave its key out, or send the value itself")
    known = KEYS | ALL_ALIASES
    for key in entry:
        if key not in known:
            close = nearest(key[:80], known, 1)
            raise invalid(f"{key[:80]!r} is not a key of a server{f': did you mean {close[0]}?' if close else ''}")


def server_name(rest: Rest, request: Request) -> str:
    """The server that an address names, if whoever asks may know of it."""
    name = str(request.path_params["name"])
    if problem := server_problem(rest.board, name, rest.caller(request).client.filter):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, problem, retryable=False)
    return name


def _creating(described: Operation) -> Operation:
    answers = described["responses"]
    created = {**answers["200"], "description": "It is written, and was not there before."}
    return {**described, "responses": {**answers, "201": created}}


ROUTES = (
    ApiRoute(
        "GET",
        "/api/servers",
        _servers,
        operation(
            "Every server and its state",
            object_with("servers", list_of(SERVER), configProblem=TEXT),
        ),
    ),
    ApiRoute(
        "POST",
        "/api/servers",
        _add,
        with_body(
            _creating(operation("Add a server to the config, or all servers of a pasted text", _ADDED)),
            {"type": "object", "properties": _ADD},
            required=True,
            example={"name": "time", "entry": {"command": "uvx", "args": ["mcp-server-time"]}},
        ),
        admin_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/servers/check",
        _check,
        with_body(
            operation("What a pasted text would become; nothing is written", PLAN),
            object_with("text", TEXT, name=TEXT),
            required=True,
            example={"text": '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'},
        ),
        admin_only=True,
    ),
    ApiRoute(
        "PATCH",
        "/api/servers/{name}",
        _change,
        with_body(
            operation("Change a server's entry; null takes a key out (JSON Merge Patch)", _CHANGED, _NAME),
            _CHANGE,
            required=True,
            example={"timeout": 60},
        ),
        admin_only=True,
    ),
    ApiRoute(
        "DELETE",
        "/api/servers/{name}",
        _remove,
        operation("Remove a server from the config; restore undoes it", object_with("removed", TEXT), _NAME),
        admin_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/servers/{name}/restore",
        _restore,
        operation("Put a server back that was removed within the last ten minutes", SERVER, _NAME),
        admin_only=True,
    ),
    ApiRoute(
        "POST", "/api/servers/{name}/enable", _enable, operation("Enable a server", SERVER, _NAME), admin_only=True
    ),
    ApiRoute(
        "POST", "/api/servers/{name}/disable", _disable, operation("Disable a server", SERVER, _NAME), admin_only=True
    ),
    ApiRoute(
        "POST",
        "/api/servers/{name}/refresh",
        _refresh,
        operation(
            "Ask a server for its tools now",
            object_with("registered", {"type": "integer"}, withheld={"type": "integer"}),
            _NAME,
        ),
    ),
)
