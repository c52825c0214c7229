"""Requests to a token endpoint: a code, a refresh token, the client itself, or an assertion for an access token.

All raise `GrantRefused`, `ClientRefused` or `TokenEndpointAway`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_authentication import post_as_client
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.token_answer import GrantRefused, TokenAnswer, read_token_answer

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  it is the name of a grant
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105  it is the name of a type


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
    """The tokens for an authorization code."""
    fields = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": redirect_uri}
    return await request_token(fetcher, server, client, fields, resource=resource)


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
    fields = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return await request_token(fetcher, server, client, fields, scopes=scopes, resource=resource)


async def client_credentials(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> TokenAnswer:
    """Tokens for the client itself."""
    fields = {"grant_type": "client_credentials"}
    return await request_token(fetcher, server, client, fields, scopes=scopes, resource=resource)


async def jwt_bearer(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient | None,
    *,
    assertion: str,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> TokenAnswer:
    """Tokens for an assertion (RFC 7523): an ID-JAG, or the JWT of a workload, which may need no client."""
    fields = {"grant_type": _JWT_BEARER, "assertion": assertion}
    return await request_token(fetcher, server, client, fields, scopes=scopes, resource=resource)


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
    fields = {"grant_type": _TOKEN_EXCHANGE, "requested_token_type": _ID_JAG, "audience": audience}
    fields |= {"subject_token": id_token, "subject_token_type": _ID_TOKEN}
    fields |= limits_of(scopes, resource)
    answer = read_token_answer(await post_as_client(fetcher, idp.token_endpoint, client, idp, fields), idp.issuer)
    if answer.issued_token_type not in {None, _ID_JAG}:
        raise GrantRefused(f"{idp.issuer} gave a token of another type than an ID-JAG", "invalid_token")
    return answer.access_token


async def request_token(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient | None,
    fields: dict[str, str],
    *,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> TokenAnswer:
    """The tokens for a grant of any kind."""
    form = {**fields, **limits_of(scopes, resource)}
    answer = await post_as_client(fetcher, server.token_endpoint, client, server, form)
    found = read_token_answer(answer, server.issuer)
    if found.token_type.lower() != "bearer":
        # It would be refused as a bearer, or taken for more than it is.
        reason = f"{server.issuer} gave a token of the type {found.token_type[:40]!r}, which is not Bearer"
        raise GrantRefused(reason, "unsupported_token_type")
    return found


def limits_of(scopes: Sequence[str] | None, resource: str | None) -> dict[str, str]:
    """What the tokens of a request are to be good for."""
    limits = {"scope": " ".join(scopes)} if scopes else {}
    return limits | ({"resource": resource} if resource is not None else {})
