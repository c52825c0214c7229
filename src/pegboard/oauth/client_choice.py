"""Which client the gateway is at an authorization server: the one of the config, a document, or one that registers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from pegboard.config import ServerSpec
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.device import DEVICE_GRANT
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.issuer_addresses import document_path, key_in, redirect_for
from pegboard.oauth.oauth_client import OAuthClient, client_of_config, document_client
from pegboard.oauth.registration import register
from pegboard.oauth.vault import KeptClient, Vault
from pegboard.result import invalid, unavailable
from pegboard.storage import StorageError
from pegboard.storage.oauth import OAuthStore

# By what the registration of a client is kept that has no redirect.
_DEVICE = "device"
_LOOK_EVERY = 0.05
# Seconds after which a registration that nobody could sign in with is given up.
_TRIAL = 60.0


async def choose_client(
    vault: Vault,
    spec: ServerSpec,
    server: AuthorizationServer,
    *,
    redirect_uri: str,
    scopes: tuple[str, ...],
    is_device: bool,
    public_url: str,
    client_id: str | None = None,
    client_secret: str | None = None,
) -> OAuthClient:
    """The client for a sign-in, in the order of the specification; it is registered once for everybody. `client_id` is
    of whoever signs in, and stands above the config's. Its `redirect_uri` is the issuer's own where we choose it:
    somebody who registered a client, or wrote its document, gave it `redirect_uri` as it is."""
    settings = spec.sign_in
    if client_id in {None, settings.client_id}:
        await vault.check_issuer(spec, server.issuer)
    if client_id is not None:
        settings = replace(settings, client_id=client_id, client_secret=client_secret, private_key=None)
    client = client_of_config(settings, server, None if is_device else redirect_uri)
    if client is None and not is_device:
        client = _document(spec, server, redirect_uri, public_url)
    if client is not None:
        return client
    own_redirect = _own_redirect(spec, server, redirect_uri)
    kept_by = _DEVICE if is_device else own_redirect
    async with hold_lock(vault.store, f"client {server.issuer} {kept_by}"):
        known, now = await vault.load_client(server.issuer, kept_by), time.time()
        if known is not None and _is_of_use(known, scopes, now):
            await vault.save_client(replace(known, tried_at=known.tried_at or now))
            return known.client
        scopes = tuple(dict.fromkeys([*(() if known is None else known.scopes), *scopes]))
        grant_types = (DEVICE_GRANT if is_device else "authorization_code", "refresh_token")
        client = await register(
            Fetcher.of(spec), server, own_redirect, scopes=scopes, grant_types=grant_types, by_hand=redirect_uri
        )
        if client.is_expired(now):
            raise invalid(f"{server.issuer} gave a client whose secret is over already")
        client = replace(client, redirect_uri=kept_by)
        await vault.save_client(KeptClient(client, scopes, now))
        return client


def _document(spec: ServerSpec, server: AuthorizationServer, redirect_uri: str, public_url: str) -> OAuthClient | None:
    if spec.sign_in.client_metadata_url:
        return document_client(spec.sign_in.client_metadata_url, server, redirect_uri)
    # Ours can be had, and lists the answer's address, where that is the public one.
    if not public_url.startswith("https://") or not redirect_uri.startswith(f"{public_url}/"):
        return None
    redirect = _own_redirect(spec, server, redirect_uri)
    return document_client(f"{public_url}{document_path(key_in(redirect))}", server, redirect)


def _own_redirect(spec: ServerSpec, server: AuthorizationServer, redirect_uri: str) -> str:
    return redirect_uri if spec.sign_in.redirect_uri is not None else redirect_for(redirect_uri, server.issuer)


def _is_of_use(known: KeptClient, scopes: tuple[str, ...], now: float) -> bool:
    if known.client.is_expired(now) or (known.tried_at and now - known.tried_at > _TRIAL):
        # Where an authorization server has forgotten a client, the browser shows that, and we never hear of it.
        return False
    # Many authorization servers let a client ask for no more than what it was registered for.
    return set(scopes) <= set(known.scopes)


@asynccontextmanager
async def hold_lock(store: OAuthStore, name: str, seconds: float = 60.0) -> AsyncGenerator[None]:
    """Be the only one who does something, over all processes; others wait for their turn."""
    holder, give_up = secrets.token_hex(8), time.monotonic() + seconds
    while not await store.take_lock(name, holder, seconds):
        if time.monotonic() > give_up:
            raise unavailable("another process signs in and does not finish; try again")
        await asyncio.sleep(_LOOK_EVERY)
    try:
        yield
    finally:
        with suppress(StorageError):
            await store.release_lock(name, holder)
