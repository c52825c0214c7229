"""Revocation (RFC 7009): a token that is no longer needed is given back."""

from __future__ import annotations

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.registration import OAuthClient


async def revoke(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    refresh_token: str | None,
    access_token: str | None,
) -> bool:
    """Whether the server took the tokens back; it is no failure if it cannot."""
    raise NotImplementedError
