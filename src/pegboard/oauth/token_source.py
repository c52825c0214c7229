"""Where tokens come from that need no person: a refresh token, or a flow for machines."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pegboard.config import ServerSpec
from pegboard.oauth.authorization_server import AuthorizationServer, metadata_addresses
from pegboard.oauth.discovery import discover
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.grant import OAuthGrant
from pegboard.oauth.oauth_client import OAuthClient, client_of_config, idp_client
from pegboard.oauth.revocation import revoke
from pegboard.oauth.scopes import choose_scopes
from pegboard.oauth.token_answer import TokenAnswer
from pegboard.oauth.token_request import client_credentials, exchange_id_jag, jwt_bearer, refresh
from pegboard.result import ToolFailure, invalid
from pegboard.servers.authorization import Challenge

# Raises `ToolFailure` if an issuer may not be given the credentials of the config.
IssuerCheck = Callable[[ServerSpec, str], Awaitable[None]]


async def renew_grant(spec: ServerSpec, grant: OAuthGrant, challenge: Challenge | None) -> OAuthGrant:
    """The grant with new tokens, by the metadata that are kept. Raises as `read_token_answer` does."""
    if grant.refresh_token is None:
        return await _obtain_again(spec, grant, challenge)
    server, asked_at = grant.authorization_server, time.time()
    # The secret in the config is the newer one.
    client = client_of_config(spec.sign_in, server, grant.client.redirect_uri) or grant.client
    token, resource = grant.refresh_token, grant.resource
    answer = await refresh(Fetcher.of(spec), server, client, refresh_token=token, resource=resource)
    return replace(grant.renew(answer, asked_at), client=client)


async def obtain_grant(spec: ServerSpec, challenge: Challenge | None, check_issuer: IssuerCheck) -> OAuthGrant:
    """The first grant of a machine."""
    settings, fetcher = spec.sign_in, Fetcher.of(spec)
    discovery = await discover(spec, challenge, fetcher)
    server = discovery.authorization_server
    await check_issuer(spec, server.issuer)
    client = client_of_config(settings, server, None)
    if client is None:
        raise invalid(f"server {spec.name}: oauth.flow {settings.flow} needs a clientId")
    scopes = choose_scopes(
        configured=settings.scopes,
        challenge_scope=None if challenge is None else challenge.scope,
        resource_scopes=discovery.resource_scopes,
        server=server,
        wants_refresh=False,
    )
    return await _obtain(spec, server, client, discovery.resource, scopes or ())


async def revoke_grant(spec: ServerSpec | None, grant: OAuthGrant) -> bool:
    """Give back the tokens of a grant; whether the authorization server took them. It is asked even if its server is no
    longer in the config."""
    fetcher = Fetcher.of(spec) if spec is not None else Fetcher(grant.authorization_server.token_endpoint)
    tokens = {"refresh_token": grant.refresh_token, "access_token": grant.access_token}
    try:
        return await revoke(fetcher, grant.authorization_server, grant.client, **tokens)
    except ToolFailure:
        return False


async def _obtain_again(spec: ServerSpec, grant: OAuthGrant, challenge: Challenge | None) -> OAuthGrant:
    client = client_of_config(spec.sign_in, grant.authorization_server, None) or grant.client
    more = challenge.scopes if challenge is not None and challenge.wants_scopes else ()
    scopes = tuple(dict.fromkeys([*grant.requested, *more]))
    return await _obtain(spec, grant.authorization_server, client, grant.resource, scopes)


async def _obtain(
    spec: ServerSpec, server: AuthorizationServer, client: OAuthClient, resource: str | None, scopes: tuple[str, ...]
) -> OAuthGrant:
    asked_at = time.time()
    answer = await _ask(spec, server, client, resource, scopes or None)
    return OAuthGrant.of(
        # It gets by without one, and has to be able to ask for other scopes.
        replace(answer, refresh_token=None),
        asked_at,
        server_url=spec.url or "",
        resource=resource,
        requested=scopes,
        flow=spec.sign_in.flow,
        client=client,
        authorization_server=server,
    )


async def _ask(
    spec: ServerSpec,
    server: AuthorizationServer,
    client: OAuthClient,
    resource: str | None,
    scopes: Sequence[str] | None,
) -> TokenAnswer:
    settings, fetcher = spec.sign_in, Fetcher.of(spec)
    if settings.flow == "client_credentials":
        return await client_credentials(fetcher, server, client, scopes=scopes, resource=resource)
    if settings.assertion is None:
        raise invalid(f"server {spec.name}: oauth.flow {settings.flow} needs an assertion")
    assertion = settings.assertion
    if settings.flow == "id_jag":
        idp = await _identity_provider(spec, fetcher)
        there = idp_client(settings, idp) or client
        assertion = await exchange_id_jag(
            fetcher, idp, there, id_token=assertion, audience=server.issuer, resource=resource, scopes=scopes
        )
    return await jwt_bearer(fetcher, server, client, assertion=assertion, scopes=scopes, resource=resource)


async def _identity_provider(spec: ServerSpec, fetcher: Fetcher) -> AuthorizationServer:
    settings = spec.sign_in
    issuer = settings.idp_issuer or settings.idp_token_endpoint or ""
    if settings.idp_token_endpoint is not None:
        return AuthorizationServer(issuer=issuer, token_endpoint=settings.idp_token_endpoint)
    for address in metadata_addresses(issuer) if issuer else ():
        answer = await fetcher.get_json(address)
        if answer.status == 200 and answer.members.get("issuer") == issuer:
            found = AuthorizationServer.of(issuer, answer.members)
            if found is not None:
                return found
    raise invalid(f"server {spec.name}: oauth.flow id_jag needs idpIssuer or idpTokenEndpoint")
