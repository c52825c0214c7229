"""REST routes of signing in to servers: begin, look, finish with a pasted address, cancel, sign out, list. No answer
has a token, a code or a secret in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.access.principal import LOCAL
from pegboard.auth.rule_book import token_principal_id
from pegboard.clients.endpoint import endpoint_of
from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import MACHINE_FLOWS
from pegboard.exactjson import as_list
from pegboard.gateway.connect_links import CONNECT
from pegboard.gateway.login_desk import SignInWish, redirect_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.operations import (
    TEXT,
    Schema,
    list_of,
    object_with,
    operation,
    path_parameter,
    query_parameter,
    with_body,
)
from pegboard.gateway.rest.owner import require_admin
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.responses import members_of
from pegboard.gateway.rest.rows import moment
from pegboard.gateway.rest.server_routes import server_problem
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure, invalid
from pegboard.servers.http.refusal import wants_sign_in

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest
    from pegboard.oauth.grant import KeptGrant
    from pegboard.oauth.oauth import Login
    from pegboard.oauth.sign_in_flow import Flow

# The principal of the gateway's own grants.
_GATEWAY = ""
_LONGEST_WAIT = 30
_MOST_SCOPES = 100
_NAME, _FLOW = path_parameter("name"), path_parameter("flow")
_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
_SIGN_IN: Schema = {
    "type": "object",
    "required": ["flow", "server", "state", "expiresAt"],
    "properties": {
        "flow": {**TEXT, "description": "The id of this sign-in."},
        "server": TEXT,
        "state": {"enum": ["waiting", "done", "failed"]},
        "reason": {**TEXT, "description": "Why it failed."},
        "note": {
            **TEXT,
            "description": "Why another sign-in, which was under way, was ended for this one.",
        },
        "url": {**TEXT, "description": "Where a person signs in, in a browser."},
        "connect": {
            **TEXT,
            "description": "A page that leads there after it has asked for your token: whoever signs in "
            "for themselves and not by a pasted address goes there instead.",
        },
        "redirect": {**TEXT, "description": "Where the browser is sent then."},
        "userCode": {**TEXT, "description": "With a device code: what to type in."},
        "verificationUri": {**TEXT, "description": "With a device code: where."},
        "verificationUriComplete": {**TEXT, "description": "The same with the code in it, for a browser."},
        "expiresAt": _TIME,
    },
}
_LOGIN: Schema = {
    "type": "object",
    "required": ["server", "state", "issuer", "scopes"],
    "properties": {
        "server": TEXT,
        "who": {**TEXT, "description": "Whose it is, where each signs in for themselves; else the gateway's."},
        "state": {**TEXT, "description": "live, unreadable (the key that sealed it is not there), or why it is over."},
        "reason": {**TEXT, "description": "Why it cannot be used any more."},
        "yours": {"type": "boolean", "description": "Whether whoever asks ends it by signing out of the server."},
        "issuer": TEXT,
        "scopes": list_of(TEXT),
        "renews": {"type": "boolean", "description": "Whether it is renewed by itself: then expiresAt is not its end."},
        "expiresAt": {**_TIME, "description": "When the token of now expires; one that can be renewed is."},
        "signedInAt": _TIME,
    },
}
_BEGIN: dict[str, Schema] = {
    "device": {"type": "boolean", "description": "With a code that is typed in on another machine."},
    "scopes": {**list_of(TEXT), "description": "Further scopes to ask for."},
    "clientId": {**TEXT, "description": "A client that you have registered with the server yourself."},
    "clientSecret": TEXT,
    "callback": {**TEXT, "description": "Finish instead: the address that the browser was sent to."},
}
_FINISH: dict[str, Schema] = {"callback": {**TEXT, "description": "That address, or what stands behind its ?."}}
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


async def _begin(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    spec = _find_spec(rest, request)
    holder = _find_holder(rest, request, spec)
    body = await members_of(request, _BEGIN)
    if "callback" in body:
        return _flow_row(await _finish_pasted(rest, body["callback"], spec, holder))
    check_sign_in(spec)
    address = rest.address(request)
    # It asks the server, so it counts as a call does.
    principal = endpoint_of(request.scope).principal
    slot = rest.board.limits.admit(principal, spec.name)
    try:
        flow = await rest.logins.begin(spec, principal.id, _read_wish(body), address)
    finally:
        if slot is not None:
            slot.release()
    return {**_flow_row(flow), **_connect(rest, spec.name, holder, address)}


def _connect(rest: Rest, server: str, holder: str, address: str | None) -> dict[str, str]:
    """Where the browser of somebody who comes with a token shows that it is theirs."""
    base = rest.board.settings.auth.public_url or address
    if holder in {_GATEWAY, LOCAL.id} or base is None:
        return {}
    return {"connect": f"{base}{CONNECT}/{rest.logins.links.make(server, holder, holder, None).key}"}


async def _look(rest: Rest, request: Request) -> Any:
    check_query(request, ("wait",))
    return _flow_row(await _find_flow(rest, request, _read_wait(request)))


async def _finish(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    flow = await _find_flow(rest, request)
    body = await members_of(request, _FINISH)
    spec = rest.board.servers[flow.server].spec
    finished = await _finish_pasted(rest, body.get("callback"), spec, flow.principal)
    if finished.id != flow.id:
        raise invalid("that is the answer of another sign-in, which it has finished")
    return _flow_row(finished)


async def _cancel(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    flow = await _find_flow(rest, request)
    return {"flow": flow.id, "cancelled": await rest.logins.cancel(flow)}


async def _sign_out(rest: Rest, request: Request) -> Any:
    check_query(request, ("all",))
    spec = _find_spec(rest, request)
    if request.query_params.get("all") in {"true", "1"}:
        require_admin(request, rest.board.settings)
        holders = [each.principal for each in await rest.board.oauth.logins() if each.server == spec.name]
        others: dict[str, int] = {}
    else:
        holder = _find_holder(rest, request, spec)
        known = await rest.board.oauth.logins()
        holders = [each.principal for each in known if (each.server, each.principal) == (spec.name, holder)]
        others = _count_others(request, spec, len([each for each in known if each.server == spec.name]) - len(holders))
    revoked = [await rest.board.oauth.logout(spec.name, each) for each in holders]
    if _GATEWAY in holders:
        # The next start knows it before anybody asks the server.
        await rest.board.discovery.save_error(spec.name, spec.fingerprint, wants_sign_in(spec.name))
    return {"server": spec.name, "signedOut": len(holders), "revoked": bool(revoked) and all(revoked), **others}


def _count_others(request: Request, spec: ServerSpec, count: int) -> dict[str, int]:
    """How many others are signed in where each does so for themselves; that is for admins to know."""
    if spec.sign_in.per != "user":
        return {}
    return {"others": count if endpoint_of(request.scope).principal.admin else 0}


async def _list(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    principal = endpoint_of(request.scope).principal
    wanted = rest.caller(request).client.filter
    seen = [
        each
        for each in await rest.board.oauth.logins()
        if wanted.admits_server(each.server) and (principal.admin or each.principal == principal.id)
    ]
    names = {token_principal_id(token.id): token.name for token in await rest.tokens.list()} if seen else {}
    yours = {principal.id, _GATEWAY} if principal.admin else {principal.id}
    rows = [
        {**_login_row(each, names, await rest.logins.look_at_grant(each)), "yours": each.principal in yours}
        for each in seen
    ]
    return {"logins": rows}


def check_sign_in(spec: ServerSpec) -> None:
    """Refuse to begin a sign-in to a server that has none."""
    if spec.problem:
        raise invalid(spec.problem)
    if spec.url is None:
        raise invalid(f"{spec.name} is a command, and commands take credentials from their env: see its README")
    if spec.oauth is False:
        raise invalid(f'{spec.name} is not signed in to: its entry says "oauth": false')
    if not spec.signs_in:
        raise invalid(f"{spec.name} has credentials of its own in its entry, and they count: take them out to sign in")
    if spec.sign_in.flow in MACHINE_FLOWS:
        raise invalid(
            f"{spec.name} is signed in to without a person ({spec.sign_in.flow}): pegboard refresh {spec.name}"
        )


def _find_spec(rest: Rest, request: Request) -> ServerSpec:
    name = str(request.path_params["name"])
    if problem := server_problem(rest.board, name, rest.caller(request).client.filter):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, problem, retryable=False)
    return rest.board.servers[name].spec


def _find_holder(rest: Rest, request: Request, spec: ServerSpec) -> str:
    """Whose grant it is about: the gateway's, which is for admins, or that of whoever asks."""
    if spec.sign_in.per != "user":
        require_admin(request, rest.board.settings)
        return _GATEWAY
    principal = endpoint_of(request.scope).principal
    if principal.kind == "anonymous":
        raise Forbidden(f"everybody signs in to {spec.name} for themselves, and this gateway does not know who you are")
    return principal.id


async def _find_flow(rest: Rest, request: Request, wait: float = 0.0) -> Flow:
    """The sign-in of an address, if it is of whoever asks."""
    spec = _find_spec(rest, request)
    holder = _find_holder(rest, request, spec)
    flow = await rest.board.oauth.sign_ins.watch(str(request.path_params["flow"]), 0.0)
    if (flow.server, flow.principal) != (spec.name, holder):
        raise ToolFailure(ToolErrorCode.NOT_FOUND, "there is no such sign-in", retryable=False)
    return flow if not wait or flow.state != "waiting" else await rest.logins.watch(flow, wait)


async def _finish_pasted(rest: Rest, pasted: object, spec: ServerSpec, holder: str) -> Flow:
    from pegboard.oauth.authorization_response import AuthorizationRefused, read_address, read_query

    if not isinstance(pasted, str) or not pasted.strip():
        raise invalid("callback is needed: the address that the browser was sent to after you agreed")
    try:
        query = read_query(pasted.strip())
    except AuthorizationRefused as exc:
        raise invalid(f"callback: {exc}") from None
    flow = await rest.board.oauth.sign_ins.finish(query, principal_id=holder, came_to=read_address(pasted))
    if flow.server != spec.name:
        raise invalid(f"that was the answer of a sign-in to {flow.server}, which it has finished")
    return flow


def _read_wish(body: dict[str, Any]) -> SignInWish:
    scopes = as_list(body.get("scopes") or []) or []
    if len(scopes) > _MOST_SCOPES or not all(isinstance(each, str) and _PRINTABLE.fullmatch(each) for each in scopes):
        raise invalid("scopes must be a list of texts without blanks")
    device = body.get("device", False)
    if not isinstance(device, bool):
        raise invalid("device must be true or false")
    client_id, client_secret = body.get("clientId"), body.get("clientSecret")
    if not isinstance(client_id, str | None) or not isinstance(client_secret, str | None):
        raise invalid("clientId and clientSecret must be texts")
    if client_secret is not None and client_id is None:
        raise invalid("clientSecret needs a clientId")
    return SignInWish(device=device, scopes=tuple(map(str, scopes)), client_id=client_id, client_secret=client_secret)


def _read_wait(request: Request) -> float:
    text = request.query_params.get("wait", "0")
    if not text.isascii() or not text.isdigit() or len(text) > 2 or int(text) > _LONGEST_WAIT:
        raise invalid(f"wait must be a whole number of seconds from 0 to {_LONGEST_WAIT}")
    return float(text)


def _flow_row(flow: Flow) -> dict[str, Any]:
    row = {
        "flow": flow.id,
        "server": flow.server,
        "state": flow.state,
        "reason": flow.reason or None,
        "note": flow.note or None,
        "url": flow.url,
        "redirect": redirect_of(flow),
        "userCode": flow.user_code,
        "verificationUri": flow.verification_uri,
        "verificationUriComplete": flow.verification_uri_complete,
    }
    return {key: value for key, value in row.items() if value is not None} | {"expiresAt": moment(flow.expires_at)}


def _login_row(login: Login, names: Mapping[str, str], kept: KeptGrant | None) -> dict[str, Any]:
    # One that is over needs no key.
    is_unreadable = kept is not None and kept.grant is None and login.state == "live"
    row = {
        "server": login.server,
        "who": (f"token {names[login.principal]}" if login.principal in names else login.principal) or None,
        "state": "unreadable" if is_unreadable else login.state,
        "reason": login.reason or (kept.problem if kept is not None and is_unreadable else None) or None,
        "issuer": login.issuer,
        "scopes": list(login.scopes),
        "renews": kept.grant.is_renewable if kept is not None and kept.grant is not None else None,
    }
    return {key: value for key, value in row.items() if value is not None} | {
        "expiresAt": moment(login.expires_at),
        "signedInAt": moment(login.created_at),
    }


ROUTES = (
    ApiRoute(
        "GET",
        "/api/logins",
        _list,
        operation(
            "Who is signed in to which server, for what, until when; without a token",
            object_with("logins", list_of(_LOGIN)),
        ),
    ),
    ApiRoute(
        "POST",
        "/api/servers/{name}/login",
        _begin,
        with_body(
            operation("Begin to sign in to a server, or join whoever has begun", _SIGN_IN, _NAME),
            {"type": "object", "properties": _BEGIN, "additionalProperties": False},
            required=False,
        ),
    ),
    ApiRoute(
        "DELETE",
        "/api/servers/{name}/login",
        _sign_out,
        operation(
            "Sign out of a server: its tokens are revoked there, and deleted here",
            object_with(
                "server",
                TEXT,
                signedOut={"type": "integer"},
                revoked={"type": "boolean", "description": "Whether the server confirmed it."},
                others={"type": "integer", "description": "Where each signs in for themselves: how many others are."},
            ),
            _NAME,
            query_parameter("all", "true: everybody, where each signs in for themselves"),
        ),
    ),
    ApiRoute(
        "GET",
        "/api/servers/{name}/login/{flow}",
        _look,
        operation(
            "How a sign-in is",
            _SIGN_IN,
            _NAME,
            _FLOW,
            query_parameter("wait", f"Seconds to wait for its end, {_LONGEST_WAIT} at most"),
        ),
    ),
    ApiRoute(
        "POST",
        "/api/servers/{name}/login/{flow}",
        _finish,
        with_body(
            operation("Finish a sign-in with the address that the browser was sent to", _SIGN_IN, _NAME, _FLOW),
            {"type": "object", "required": ["callback"], "properties": _FINISH, "additionalProperties": False},
            required=True,
            example={"callback": "http://127.0.0.1:7420/oauth/callback?code=…&state=…"},
        ),
    ),
    ApiRoute(
        "DELETE",
        "/api/servers/{name}/login/{flow}",
        _cancel,
        operation(
            "Cancel a sign-in, unless somebody else waits for it",
            object_with("cancelled", {"type": "boolean"}, flow=TEXT),
            _NAME,
            _FLOW,
        ),
    ),
)
