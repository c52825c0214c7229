"""Revocation (RFC 7009): a token that is no longer needed is given back."""

from __future__ import annotations

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_authentication import post_as_client
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.result import ToolFailure


async def revoke(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    refresh_token: str | None,
    access_token: str | None,
) -> bool:
    """Whether the server took the grant back; it is no failure if it does not."""
    if server.revocation_endpoint is None:
        return False
    # The refresh token first: with it goes, mostly, the rest.
    tokens = {"refresh_token": refresh_token, "access_token": access_token}
    outcomes = [
        await _revoke_one(fetcher, server, client, {"token": token, "token_type_hint": hint})
        for hint, token in tokens.items()
        if token is not None
    ]
    return bool(outcomes) and outcomes[0]


async def _revoke_one(
    fetcher: Fetcher, server: AuthorizationServer, client: OAuthClient, fields: dict[str, str]
) -> bool:
    try:
        answer = await post_as_client(fetcher, server.revocation_endpoint or "", client, server, fields)
    except ToolFailure:
        return False
    return answer.status in {200, 204}
