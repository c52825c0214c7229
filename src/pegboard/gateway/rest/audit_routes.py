"""REST routes of the audit: the records, where its chains stand, and whether they are whole."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.audit.query import (
    MOST,
    RULE,
    UNKNOWN,
    USUAL,
    AuditQuery,
    read_cursor,
    read_kind,
    read_moment,
    read_name,
    read_outcome,
)
from pegboard.audit.record import AuditRecord
from pegboard.audit.verification import KnownHead, read_known_head
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import TEXT, list_of, object_with, operation, query_parameter
from pegboard.gateway.rest.params import check_query
from pegboard.result import invalid

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_FILTERS = {
    "since": "From this moment on: 30m, 2h or 7d ago, a day, or a day and a time (UTC).",
    "until": "Before this moment, in the same words.",
    "who": "Only of this principal, by name or id, or of this client, by name.",
    "server": "Only of this server; a * stands for anything.",
    "tool": "Only of this tool; a * stands for anything.",
    "outcome": "Only with this outcome: ok, tool_error, rpc_error, cancelled, timeout, refused or refused:WHY.",
    "denied": "true: only what was refused.",
    "kind": "Only of this kind: call, read, access, server.added …; a * stands for anything.",
    "limit": f"How many records at most: 1 to {MOST}, {USUAL} if nothing is said.",
    "cursor": "The nextCursor of the answer before.",
}
_INTEGER = {"type": "integer"}
_MOST_DIGITS = 6
_MOST_HEADS = 1000
_RECORD = {
    "type": "object",
    "required": ["id", "at", "kind"],
    "properties": {
        "id": TEXT,
        "at": {"type": "string", "format": "date-time"},
        "kind": TEXT,
        "principal": {"type": "object", "properties": {"id": TEXT, "name": TEXT}},
        **dict.fromkeys(("client", "session", "board", "server", "tool", "outcome", "argsDigest"), TEXT),
        "ms": {"type": "number"},
        "argsBytes": _INTEGER,
        "arguments": {"type": "object", "description": "Names or values, where audit.arguments says so."},
        "resultBytes": _INTEGER,
        **dict.fromkeys(("trace", "era", "network", "detail", "process"), TEXT),
    },
}
_HEAD = {
    "type": "object",
    "required": ["process", "chain", "day", "records", "head"],
    "properties": {
        "process": TEXT,
        "chain": _INTEGER,
        "day": TEXT,
        "records": _INTEGER,
        "head": TEXT,
    },
}
_FAULT = {
    "type": "object",
    "required": ["reason"],
    "properties": {"reason": TEXT, "record": TEXT, "process": TEXT, "chain": _INTEGER},
}


async def _calls(rest: Rest, request: Request) -> Any:
    check_query(request, tuple(_FILTERS))
    principal = endpoint_of(request.scope).principal
    owner = None if principal.admin else principal.id
    found, cursor = await rest.board.audit.find(_query(request, owner))
    records = [_row(record, hides=owner is not None) for record in found]
    if principal.kind == "anonymous":
        # That is many people, and none of them is told where another one tried to come in, and as whom.
        records = [{name: value for name, value in row.items() if name != "detail"} for row in records]
    return {"records": records, **({} if cursor is None else {"nextCursor": cursor})}


async def _head(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    return {"heads": [head.to_dict() for head in await rest.board.audit.heads()]}


async def _verify(rest: Rest, request: Request) -> Any:
    check_query(request, ("head",))
    given = request.query_params.getlist("head")
    if len(given) > _MOST_HEADS:
        raise invalid(f"head may be given {_MOST_HEADS} times")
    return (await rest.board.audit.verify([_read_head(text) for text in given])).to_dict()


def _read_head(text: str) -> KnownHead:
    known = read_known_head(text)
    if known is None:
        raise invalid(f"head must be PROCESS/CHAIN/RECORDS/HASH, found {text[:80]!r}")
    return known


def _row(record: AuditRecord, *, hides: bool) -> dict[str, Any]:
    row = record.to_dict()
    if hides and row.get("outcome") == RULE:
        # Whoever may not see a tool is not told that there is one.
        row["outcome"] = UNKNOWN
    return row


def _query(request: Request, owner: str | None) -> AuditQuery:
    given = {name: value for name, value in request.query_params.items() if value}
    for name in given:
        if len(request.query_params.getlist(name)) > 1:
            raise invalid(f"{name} is given more than once")
    now = time.time()
    limit = given.get("limit", str(USUAL))
    if not (limit.isascii() and limit.isdigit() and len(limit) <= _MOST_DIGITS and 1 <= int(limit) <= MOST):
        raise invalid(f"limit must be a whole number from 1 to {MOST}, found {limit[:40]!r}")
    denied = given.get("denied", "false")
    if denied not in {"true", "false"}:
        raise invalid(f"denied must be true or false, found {denied[:40]!r}")
    return AuditQuery(
        since=read_moment(given["since"], now, "since") if "since" in given else None,
        until=read_moment(given["until"], now, "until") if "until" in given else None,
        who=read_name(given["who"], "who") if "who" in given else None,
        server=read_name(given["server"], "server") if "server" in given else None,
        tool=read_name(given["tool"], "tool") if "tool" in given else None,
        outcome=read_outcome(given["outcome"]) if "outcome" in given else None,
        denied=denied == "true",
        kind=read_kind(given["kind"]) if "kind" in given else None,
        limit=int(limit),
        cursor=read_cursor(given["cursor"]) if "cursor" in given else None,
        owner=owner,
    )


ROUTES = (
    ApiRoute(
        "GET",
        "/api/calls",
        _calls,
        operation(
            "The audit: who called what and when, and what was refused or changed, newest first",
            object_with("records", list_of(_RECORD), nextCursor=TEXT),
            *(query_parameter(name, description) for name, description in _FILTERS.items()),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/audit/head",
        _head,
        operation(
            "Where each chain of the audit stands, for whoever keeps that elsewhere",
            object_with("heads", list_of(_HEAD)),
        ),
        admin_only=True,
    ),
    ApiRoute(
        "GET",
        "/api/audit/verify",
        _verify,
        operation(
            "Whether every record of the audit is as it was written",
            object_with(
                "ok",
                {"type": "boolean"},
                records={"type": "integer"},
                chains={"type": "integer"},
                fault=_FAULT,
                removed=list_of(TEXT),
            ),
            query_parameter(
                "head", "A head that was kept elsewhere, as PROCESS/CHAIN/RECORDS/HASH; several times for several."
            ),
        ),
        admin_only=True,
    ),
)
