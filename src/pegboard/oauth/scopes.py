"""Which scopes to ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.oauth.authorization_server import AuthorizationServer

OFFLINE = "offline_access"


def choose_scopes(
    *,
    configured: Sequence[str] | None,
    challenge_scope: str | None,
    resource_scopes: Sequence[str] | None,
    server: AuthorizationServer,
    earlier: Iterable[str] = (),
    wanted: Iterable[str] = (),
    wants_refresh: bool = True,
) -> tuple[str, ...] | None:
    """The scopes of a request, or `None` to leave the choice to the server.

    Those of the challenge, else what the resource metadata list; the config's own stand above both. `wanted` are those
    that a person asks for besides. Those that were granted `earlier` are asked for again, since a new grant replaces
    the old one, and so is a refresh token where the server lists it as a scope.
    """
    base = configured if configured is not None else _split(challenge_scope)
    if base is None:
        base = resource_scopes
    chosen = dict.fromkeys([*earlier, *(base or ()), *(_split(challenge_scope) or ()), *wanted])
    if not chosen and base is None:
        return None
    if chosen and wants_refresh and OFFLINE in (server.scopes_supported or ()):
        chosen[OFFLINE] = None
    return tuple(chosen)


def split_scope(scope: str | None) -> tuple[str, ...]:
    """The scopes of a text, each once."""
    return tuple(dict.fromkeys((scope or "").split()))


def _split(scope: str | None) -> tuple[str, ...] | None:
    return None if scope is None else split_scope(scope)
