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
) -> tuple[str, ...]:
    """The scopes of a request; none leave the choice to the server.

    Those of the config alone, if it names any. Else those of the challenge, or what the resource metadata list, and
    those that were granted `earlier`: a new grant replaces the old one. `wanted` are those that a person asks for
    besides. Where the server lists a scope for refresh tokens, it is asked for, too.
    """
    if configured is not None:
        chosen = dict.fromkeys([*configured, *wanted])
    else:
        asked = resource_scopes or () if challenge_scope is None else split_scope(challenge_scope)
        chosen = dict.fromkeys([*earlier, *asked, *wanted])
    if chosen and wants_refresh and OFFLINE in (server.scopes_supported or ()):
        chosen[OFFLINE] = None
    return tuple(chosen)


def split_scope(scope: str | None) -> tuple[str, ...]:
    """The scopes of a text, each once."""
    return tuple(dict.fromkeys((scope or "").split()))
