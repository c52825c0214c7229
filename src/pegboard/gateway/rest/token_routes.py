"""REST routes of static tokens: list, show, add, change, rotate, remove. A token itself is in an answer once, when it
is made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from pegboard import exactjson
from pegboard.access.rule import Rule
from pegboard.access.rule_json import RULE_KEYS, write_rule
from pegboard.access.rule_words import describe_rule
from pegboard.auth.token import StaticToken
from pegboard.auth.token_registry import NEVER
from pegboard.clients.endpoint import endpoint_of
from pegboard.exactjson import as_object
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.grant import GRANT, find_grant
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
from pegboard.gateway.rule_review import Remarks, review_rules, rules_of
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
    "mayUse": {**TEXT, "description": "Its rule in words."},
    "configRule": {
        **object_with("number", {"type": "integer"}, rule=OBJECT, mayUse=TEXT),
        "description": "The rule of auth.rules that holds for it as well; the first has number 1.",
    },
    "remarks": {**list_of(TEXT), "description": "What its rule names that there is not."},
    "gives": GRANT,
}
_TOKEN: Schema = {"type": "object", "required": ["id", "name", "rule", "state"], "properties": _FIELDS}
_SECRET = {**TEXT, "description": "The token itself. It is kept nowhere, so this is the only time."}
_NEW_TOKEN: Schema = {**_TOKEN, "required": [*_TOKEN["required"], "token"], "properties": {**_FIELDS, "token": _SECRET}}
_ADD: dict[str, Schema] = {"name": TEXT, "rule": _RULE, "expires": _EXPIRES}
_ROTATE: dict[str, Schema] = {"expires": _EXPIRES}
_CHANGE: dict[str, Schema] = {
    "name": {**TEXT, "description": "What it is called from now on."},
    "rule": {**OBJECT, "description": "The members of its rule that change; null takes one out."},
    "expires": {"type": ["string", "null"], "description": "When it expires from now on; null or never: not any more."},
}


def _row(rest: Rest, token: StaticToken, remarks: Remarks) -> dict[str, Any]:
    """A token as it is shown: nothing of its secret."""
    number, configured = rest.rules.rule_of_token(token)
    rule = {} if configured is None else {"number": number, **_rule_members(configured)}
    found = remarks.get(f"token {token.name}")
    return {
        **_own_row(token),
        **({"configRule": rule} if rule else {}),
        **({"remarks": found} if found else {}),
    }


def _rule_members(rule: Rule) -> dict[str, Any]:
    return {"rule": write_rule(rule), "mayUse": describe_rule(rule)}


async def _full_row(rest: Rest, token: StaticToken) -> dict[str, Any]:
    """The same with what it is given now."""
    tokens = [each for each in await rest.tokens.list() if each.id != token.id] + [token]
    remarks = await review_rules(rest.board, {f"token {token.name}": token.rule}, tokens)
    row = _row(rest, token, remarks)
    if token.problem:
        return row
    return {**row, "gives": (await find_grant(rest.board, rest.rules.of_token(token).access)).to_dict()}


def _own_row(token: StaticToken) -> dict[str, Any]:
    state = "invalid" if token.problem else "expired" if token.is_expired(time.time()) else "active"
    row = {
        "id": token.id,
        "name": token.name,
        **_rule_members(token.rule),
        "createdAt": moment(token.created_at),
        "expiresAt": moment(token.expires_at),
        "lastUsedAt": moment(token.last_used_at),
        "state": state,
    }
    return {**row, "problem": token.problem} if token.problem else row


async def _list(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    tokens = await rest.tokens.list()
    own = {about: rule for about, rule in rules_of(rest.board, tokens).items() if about.startswith("token ")}
    remarks = await review_rules(rest.board, own, tokens)
    return {"tokens": [_row(rest, token, remarks) for token in tokens]}


async def _show(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    return await _full_row(rest, await rest.tokens.find(str(request.path_params["name"])))


async def _add(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    body = await members_of(request, _ADD)
    name = body.get("name")
    if not isinstance(name, str):
        raise invalid("name is needed: what the token is called")
    rule = body.get("rule")
    token, text = await rest.tokens.add(name, {} if rule is None else rule, _expires(body))
    _note(rest, request, "token.added", token.name)
    return _answer(await _full_row(rest, token), text, 201)


async def _change(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    name, body = str(request.path_params["name"]), await members_of(request, _CHANGE)
    if not body:
        raise invalid(f"there is nothing to change: send {', '.join(_CHANGE)}")
    new_name, rule = body.get("name"), as_object(body.get("rule"))
    if not isinstance(new_name, (str, type(None))):
        raise invalid("name must be a text")
    if rule is None and body.get("rule") is not None:
        raise invalid("rule must be an object")
    expires = (_expires(body) or NEVER) if "expires" in body else None
    before = await rest.tokens.find(name)
    token = await rest.tokens.change(name, new_name=new_name, rule=rule, expires=expires)
    _note(rest, request, "token.changed", f"{name}: {', '.join(_describe_changes(before, token)) or 'nothing'}")
    return await _full_row(rest, token)


async def _rotate(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    body = await members_of(request, _ROTATE)
    token, text = await rest.tokens.rotate(str(request.path_params["name"]), _expires(body))
    _note(rest, request, "token.rotated", token.name)
    return _answer(await _full_row(rest, token), text, 200)


async def _remove(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    name = str(request.path_params["name"])
    await rest.tokens.remove(name)
    _note(rest, request, "token.removed", name)
    return {"removed": name}


def _note(rest: Rest, request: Request, kind: str, name: str) -> None:
    rest.board.audit.note(kind, endpoint_of(request.scope).principal, detail=name)


def _describe_changes(before: StaticToken, after: StaticToken) -> Iterator[str]:
    """What is another way now, for the record: a rule has no secrets."""
    if before.name != after.name:
        yield f"name {after.name}"
    old, new = write_rule(before.rule), write_rule(after.rule)
    for key in RULE_KEYS:
        if old.get(key) != new.get(key):
            yield f"{key} {exactjson.dump(new[key]).decode()}" if key in new else f"{key} cleared"
    if before.expires_at != after.expires_at:
        yield f"expires {moment(after.expires_at) or 'never'}"


def _answer(row: dict[str, Any], text: str, status: int) -> Response:
    response = json_response(ToolResult[Any].ok({**row, "token": text}).to_dict(), status)
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
        "GET",
        "/api/tokens/{name}",
        _show,
        operation("One token: everything but its secret, and what it is given now", _TOKEN, _NAME),
        admin_only=True,
    ),
    ApiRoute(
        "PATCH",
        "/api/tokens/{name}",
        _change,
        with_body(
            operation("Change a token's rule, expiry or name; what is left out stays", _TOKEN, _NAME),
            {"type": "object", "properties": _CHANGE, "additionalProperties": False},
            required=True,
            example={"rule": {"servers": ["github", "docs"], "rate": None}, "expires": "90d"},
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
