"""REST routes of access: who somebody is here and what they may do, and the rules of the config."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from pegboard.access.rule_json import write_rule
from pegboard.access.rule_words import EVERYTHING, describe_rule, describe_rules, name_rule
from pegboard.clients.endpoint import endpoint_of
from pegboard.gateway.rest.api_route import ApiRoute
from pegboard.gateway.rest.grant import GRANT, find_grant
from pegboard.gateway.rest.operations import OBJECT, TEXT, list_of, object_with, operation
from pegboard.gateway.rest.params import check_query
from pegboard.gateway.rest.rows import moment
from pegboard.gateway.rule_review import review_rules, review_servers, rules_of

if TYPE_CHECKING:
    from pegboard.gateway.rest.app import Rest

_LIMIT = object_with("limit", TEXT, left={"type": "integer"}, server=TEXT)
_SELF = object_with(
    "kind",
    {"enum": ["local", "token", "jwt", "anonymous"]},
    name=TEXT,
    admin={"type": "boolean"},
    mayUse={**TEXT, "description": "Its rules in words."},
    expiresAt={"type": "string", "format": "date-time"},
    limits={**list_of(_LIMIT), "description": "Each limit, and how many calls are left of it now."},
    gives=GRANT,
)
_SERVER = object_with(
    "server", TEXT, remarks={**list_of(TEXT), "description": "Patterns in its entry that fit nothing."}
)
_RULE = object_with("number", {"type": "integer"}, who=list_of(TEXT), rule=OBJECT, mayUse=TEXT, remarks=list_of(TEXT))


async def _whoami(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    endpoint = endpoint_of(request.scope)
    principal, access = endpoint.principal, endpoint.principal.access
    hides = not principal.admin
    grant = await find_grant(rest.board, access, remote=endpoint.remote)
    limits = rest.board.limits.report(principal, grant.servers)
    return {
        "kind": principal.kind,
        "name": principal.name,
        "admin": principal.admin,
        "mayUse": EVERYTHING if access is None else describe_rules(access.rules, hides_names=hides),
        **({} if principal.valid_until == math.inf else {"expiresAt": moment(principal.valid_until)}),
        "limits": [{key: value for key, value in asdict(each).items() if value is not None} for each in limits],
        "gives": grant.to_dict(with_total=not hides),
    }


async def _rules(rest: Rest, request: Request) -> Any:
    check_query(request, ())
    tokens = await rest.tokens.list()
    rules = rest.board.settings.auth.rules
    remarks = await review_rules(rest.board, rules_of(rest.board, ()), tokens)
    return {
        "rules": [
            {
                "number": number,
                "who": list(rule.who),
                "rule": write_rule(rule),
                "mayUse": describe_rule(rule),
                "remarks": remarks.get(name_rule(number), []),
            }
            for number, rule in enumerate(rules, 1)
        ],
        "servers": [
            {"server": about.removeprefix("server "), "remarks": found}
            for about, found in (await review_servers(rest.board)).items()
        ],
    }


ROUTES = (
    ApiRoute(
        "GET",
        "/api/whoami",
        _whoami,
        operation("Who you are here: what you may use, what is left of your limits, what you are given now", _SELF),
    ),
    ApiRoute(
        "GET",
        "/api/rules",
        _rules,
        operation(
            "The rules of the config in words, and what they name that there is not",
            object_with("rules", list_of(_RULE), servers=list_of(_SERVER)),
        ),
        admin_only=True,
    ),
)
