"""REST routes of definitions that changed: list, show with differences, accept, reject; and what a lock file would
say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.config.settings import CHANGE_POLICIES
from pegboard.exactjson import as_list
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    Schema,
    list_of,
    object_with,
    operation,
    path_parameter,
    query_parameter,
    with_body,
)
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import members_of
from pegboard.gateway.rest.server_routes import server_name
from pegboard.result import invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_SERVER = path_parameter("name")
_ITEM_FIELDS: dict[str, Schema] = {
    "id": {**TEXT, "description": "What accept and reject take."},
    "kind": {"enum": ["tool", "prompt", "template", "instructions"]},
    "name": TEXT,
    "change": {"enum": ["new", "changed", "gone"]},
    "state": {
        "enum": ["in use", "held", "withheld", "left out", "rejected", "gone"],
        "description": "What clients have of it; held: what was approved before.",
    },
    "since": {**TEXT, "format": "date-time"},
    "version": {**TEXT, "description": "The server's version when this was noticed."},
    "marks": {**list_of(TEXT), "description": "Why it wants a look."},
    "renamedFrom": {**TEXT, "description": "What it seems to have been called before."},
    "served": {"enum": ["held", "withheld", "left out"], "description": "What clients have of what was rejected."},
    "hides": {"type": "boolean", "description": "Whether its words hide text, so that nobody can approve it."},
    "principals": {**list_of(TEXT), "description": "Whose own sign-ins are shown it, where that is not everybody."},
}
_DETAIL_FIELDS: dict[str, Schema] = {
    **{key: schema for key, schema in _ITEM_FIELDS.items() if key != "principals"},
    "rejected": {"type": "boolean"},
    "notes": {**list_of(TEXT), "description": "Remarks about its words; they decide nothing."},
    "diff": {**TEXT, "description": "A unified diff, with characters that hide as \\u{…}."},
}


def _server(fields: dict[str, Schema]) -> Schema:
    item = {"type": "object", "required": ["id", "kind", "name", "change"], "properties": fields}
    return object_with(
        "server",
        TEXT,
        policy={"enum": [*CHANGE_POLICIES]},
        waits={"type": "integer", "description": "How much waits for a decision, or for a look."},
        approvedVersion=TEXT,
        version=TEXT,
        revision={
            **TEXT,
            "description": "Another text whenever the server says something else, or something is rejected.",
        },
        seen={"type": "boolean", "description": "Whether anything is known of its definitions."},
        leftOut={"type": "integer", "description": "How much no client has, because it is invalid or hides text."},
        items=list_of(item),
    )


_ROW, _FULL_ROW = _server(_ITEM_FIELDS), _server(_DETAIL_FIELDS)
_DECIDED: Schema = {**_ROW, "properties": {"decided": list_of(TEXT), **_ROW["properties"]}}
_CHOICE: dict[str, Schema] = {
    "items": {**list_of(TEXT), "description": "Ids; without them all."},
    "revision": {
        **TEXT,
        "description": "What was looked at: if the server says something else by now, nothing is decided.",
    },
}


async def _list(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    wanted = rest.caller(request).client.filter
    return {"servers": rest.board.decisions.list_servers(wanted.admits_server)}


async def _show(rest: Rest, request: Request) -> Any:
    check_query(request, ("item",))
    return await rest.board.decisions.show(server_name(rest, request), request.query_params.getlist("item"))


async def _accept(rest: Rest, request: Request) -> Any:
    return await _decide(rest, request, accept=True)


async def _reject(rest: Rest, request: Request) -> Any:
    return await _decide(rest, request, accept=False)


async def _decide(rest: Rest, request: Request, *, accept: bool) -> Any:
    check_query(request, ())
    body = await members_of(request, _CHOICE)
    items, revision = body.get("items"), body.get("revision")
    chosen = as_list(items)
    if items is not None and (chosen is None or not all(isinstance(item, str) for item in chosen)):
        raise invalid("items must be a list of ids, as GET /api/changes/SERVER has them")
    if items is not None and not chosen:
        raise invalid("items is empty: leave it out to decide about all")
    if revision is not None and not isinstance(revision, str):
        raise invalid("revision must be a text, as GET /api/changes/SERVER has it")
    return await rest.board.decisions.decide(server_name(rest, request), chosen or [], revision, accept=accept)


async def _lock(rest: Rest, request: Request) -> Any:
    check_query(request, ("server",))
    return await rest.board.decisions.lock_document(request.query_params.getlist("server"))


def _deciding(verb: str) -> Any:
    return with_body(
        operation(f"{verb} what changed in a server's definitions, or some of it", _DECIDED, _SERVER),
        {"type": "object", "properties": _CHOICE, "additionalProperties": False},
        required=False,
    )


ROUTES = (
    ApiRoute(
        "GET",
        "/api/changes",
        _list,
        operation(
            "What servers changed in their definitions since they were approved", object_with("servers", list_of(_ROW))
        ),
        admin_only=True,
    ),
    ApiRoute(
        "GET",
        "/api/changes/{name}",
        _show,
        operation(
            "What one server changed, each with its difference",
            _FULL_ROW,
            _SERVER,
            query_parameter("item", "Only this one; can be given several times."),
        ),
        admin_only=True,
    ),
    ApiRoute("POST", "/api/changes/{name}/accept", _accept, _deciding("Accept"), admin_only=True),
    ApiRoute("POST", "/api/changes/{name}/reject", _reject, _deciding("Reject"), admin_only=True),
    ApiRoute(
        "GET",
        "/api/lock",
        _lock,
        operation(
            "What a lock file would say of the definitions in force now",
            OBJECT,
            query_parameter("server", "Only this server; can be given several times."),
        ),
        admin_only=True,
    ),
)
