"""Requests to a token endpoint: a code, a refresh token, the client itself, or an assertion for an access token."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.registration import OAuthClient
from pegboard.oauth.token_answer import TokenAnswer


async def exchange_code(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    code: str,
    verifier: str,
    redirect_uri: str,
    resource: str | None = None,
) -> TokenAnswer:
    """The tokens for an authorization code. Raises as `read_token_answer` does."""
    raise NotImplementedError


async def refresh(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    refresh_token: str,
    resource: str | None = None,
    scopes: Sequence[str] | None = None,
) -> TokenAnswer:
    """New tokens for a refresh token. The scopes stay as they were granted unless some are given."""
    raise NotImplementedError


async def client_credentials(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> TokenAnswer:
    """Tokens for the client itself."""
    raise NotImplementedError


async def jwt_bearer(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    assertion: str,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> TokenAnswer:
    """Tokens for an assertion (RFC 7523): an ID-JAG, or the JWT of a workload."""
    raise NotImplementedError


async def exchange_id_jag(
    fetcher: Fetcher,
    idp: AuthorizationServer,
    client: OAuthClient,
    *,
    id_token: str,
    audience: str,
    resource: str | None = None,
    scopes: Sequence[str] | None = None,
) -> str:
    """The ID-JAG that an identity provider gives for an ID token (RFC 8693); `audience` is the issuer that takes it."""
    raise NotImplementedError
