"""The owner of the gateway, and its admins: who may change what runs on this machine, and read what programs write."""

from __future__ import annotations

from starlette.requests import Request

from pegboard.access.rule_words import name_rule
from pegboard.clients.endpoint import endpoint_of
from pegboard.config import Settings
from pegboard.result import Forbidden


def require_owner(request: Request, settings: Settings) -> None:
    """Refuse a request of another machine, or of anybody but the user that the gateway runs as."""
    endpoint = endpoint_of(request.scope)
    if endpoint.remote:
        raise Forbidden("this is only for clients on the machine that Pegboard runs on")
    if not endpoint.principal.is_local:
        raise Forbidden("this is only for the user that Pegboard runs as")
    if not endpoint.principal.admin:
        raise _refuse_by_rule(settings)


def require_admin(request: Request, settings: Settings) -> None:
    """Refuse a request of somebody who is no admin."""
    principal = endpoint_of(request.scope).principal
    if principal.is_local and not principal.admin:
        raise _refuse_by_rule(settings)
    if not principal.admin:
        raise Forbidden("this is only for admins: the user that Pegboard runs as, and tokens made with --admin")


def _refuse_by_rule(settings: Settings) -> Forbidden:
    rules = settings.auth.rules
    number = next((number for number, rule in enumerate(rules, 1) if "local" in rule.who), len(rules))
    where = f"{name_rule(number)}{f' in {settings.path}' if settings.path else ''}"
    reason = f'this is only for admins, and {where}, which is for "local", does not say "admin": true'
    return Forbidden(
        f"{reason}. Add that to the rule, or use the pegboard commands on this machine, which work all the same"
    )
