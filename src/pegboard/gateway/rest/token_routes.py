"""REST routes of static tokens: list, add, rotate, remove. A token itself is in an answer once, when it is made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard.access.rule_json import RULE_KEYS, write_rule
from pegboard.auth.token import StaticToken
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    OBJECT,
    TEXT,
    Schema,
    list_of,
    object_with,
    operation,
    path_parameter,
    with_body,
)
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import json_response, members_of
from pegboard.gateway.rest.rows import moment
from pegboard.result import ToolResult, invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_NAME = path_parameter("name")
_RULE_KEYS = [key for key in RULE_KEYS if key != "scopes"]
_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
_EXPIRES = {**TEXT, "description": "In some time, as 30d or 12h, or on a day, as 2027-01-01 (UTC); else it stays."}
_RULE = {**OBJECT, "description": f"What it may use, as a rule of the config: {', '.join(_RULE_KEYS)}; else all."}
_FIELDS: dict[str, Schema] = {
    "id": TEXT,
    "name": TEXT,
    "rule": OBJECT,
    "createdAt": _TIME,
    "expiresAt": _TIME,
    "lastUsedAt": _TIME,
    "state": {"enum": ["active", "expired", "invalid"]},
    "problem": {**TEXT, "description": "Why it lets nobody in, where it is invalid."},
}
_TOKEN: Schema = {"type": "object", "required": ["id", "name", "rule", "state"], "properties": _FIELDS}
_SECRET = {**TEXT, "description": "The token itself. It is kept nowhere, so this is the only time."}
_NEW_TOKEN: Schema = {**_TOKEN, "required": [*_TOKEN["required"], "token"], "properties": {**_FIELDS, "token": _SECRET}}
_ADD: dict[str, Schema] = {"name": TEXT, "rule": _RULE, "expires": _EXPIRES}
_ROTATE: dict[str, Schema] = {"expires": _EXPIRES}


def token_row(token: StaticToken) -> dict[str, Any]:
    """A token as it is shown: nothing of its secret."""
    state = "invalid" if token.problem else "expired" if token.is_expired(time.time()) else "active"
    row = {
        "id": token.id,
        "name": token.name,
        "rule": write_rule(token.rule),
        "createdAt": moment(token.created_at),
        "expiresAt": moment(token.expires_at),
        "lastUsedAt": moment(token.last_used_at),
        "state": state,
    }
    return {**row, "problem": token.problem} if token.problem else row


async def _list(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    return {"tokens": [token_row(token) for token in await rest.tokens.list()]}


async def _add(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    body = await members_of(request, _ADD)
    name = body.get("name")
    if not isinstance(name, str):
        raise invalid("name is needed: what the token is called")
    rule = body.get("rule")
    token, text = await rest.tokens.add(name, {} if rule is None else rule, _expires(body))
    _note(rest, request, "token.added", token.name)
    return _answer(token, text, 201)


async def _rotate(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    body = await members_of(request, _ROTATE)
    token, text = await rest.tokens.rotate(str(request.path_params["name"]), _expires(body))
    _note(rest, request, "token.rotated", token.name)
    return _answer(token, text, 200)


async def _remove(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    name = str(request.path_params["name"])
    await rest.tokens.remove(name)
    _note(rest, request, "token.removed", name)
    return {"removed": name}


def _note(rest: Rest, request: Request, kind: str, name: str) -> None:
    rest.board.audit.note(kind, endpoint_of(request.scope).principal, detail=name)


def _answer(token: StaticToken, text: str, status: int) -> Response:
    response = json_response(ToolResult[Any].ok({**token_row(token), "token": text}).to_dict(), status)
    # Nothing between here and whoever asked may keep it.
    response.headers["cache-control"] = "no-store"
    return response


def _expires(body: dict[str, Any]) -> str | None:
    expires = body.get("expires")
    if expires is not None and not isinstance(expires, str):
        raise invalid("expires must be a text, such as 30d or 2027-01-01")
    return expires


def _creating() -> dict[str, Any]:
    described = operation("Make a token, which is in this answer and never again", _NEW_TOKEN)
    answers = dict(described["responses"])
    answers["201"] = {**answers.pop("200"), "description": "It is made."}
    return {**described, "responses": answers}


ROUTES = (
    ApiRoute(
        "GET",
        "/api/tokens",
        _list,
        operation(
            "Every token: who may come in with one, until when, and what it may use",
            object_with("tokens", list_of(_TOKEN)),
        ),
        admin_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/tokens",
        _add,
        with_body(
            _creating(),
            {"type": "object", "required": ["name"], "properties": _ADD, "additionalProperties": False},
            required=True,
            example={"name": "ci", "rule": {"servers": ["github"], "readOnly": True}, "expires": "30d"},
        ),
        admin_only=True,
    ),
    ApiRoute(
        "POST",
        "/api/tokens/{name}/rotate",
        _rotate,
        with_body(
            operation("Give a token another secret, which is in this answer and never again", _NEW_TOKEN, _NAME),
            {"type": "object", "properties": _ROTATE, "additionalProperties": False},
            required=False,
        ),
        admin_only=True,
    ),
    ApiRoute(
        "DELETE",
        "/api/tokens/{name}",
        _remove,
        operation("Remove a token: whoever has it is refused from now on", object_with("removed", TEXT), _NAME),
        admin_only=True,
    ),
)
