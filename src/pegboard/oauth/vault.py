"""The vault: grants, registrations and sign-ins under way, sealed in the storage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec

from pegboard.config import ServerSpec, state_folder
from pegboard.oauth.grant import KeptGrant, OAuthGrant, make_row
from pegboard.oauth.issuer_pin import client_to_pin, pin_key, require_issuer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.sign_in_flow import FlowSecrets
from pegboard.result import ToolFailure
from pegboard.sealing import Sealer, Unsealable, open_sealer
from pegboard.storage.oauth import FlowRow, GrantRow, OAuthStore, client_context

# For which scopes a client was registered.
_SCOPES, _TRIED_AT = "registered_scopes", "tried_at"
SealerOpener = Callable[[], Awaitable[Sealer]]


@dataclass(frozen=True, slots=True)
class KeptClient:
    """A registration, by its issuer and redirect."""

    client: OAuthClient
    # For which scopes it was registered.
    scopes: tuple[str, ...]
    # Since when somebody tries to sign in with it and nobody has; 0 if somebody has.
    tried_at: float = 0.0


class Vault:
    """Reads and keeps what is secret. The key is looked for when something is to be sealed or read for the first
    time."""

    def __init__(self, store: OAuthStore, opener: SealerOpener) -> None:
        self.store = store
        self._opener = opener
        self._opening = asyncio.Lock()
        self._sealer: Sealer | None = None

    async def load_grant(self, server: str, principal: str) -> KeptGrant | None:
        """The grant of a principal at a server."""
        row = await self.store.load_grant(server, principal)
        return None if row is None else await self.open_grant(row)

    async def open_grant(self, row: GrantRow) -> KeptGrant:
        """A grant out of its row. One that cannot be read is no failure: it may be later, when its key is back."""
        try:
            sealer = await self._open()
            return KeptGrant(row, OAuthGrant.from_bytes(sealer.unseal(row.sealed, row.context)))
        except ToolFailure as exc:
            return KeptGrant(row, None, exc.error.message)
        except ValueError:
            return KeptGrant(row, None, "what is kept of it cannot be read")

    async def save_grant(
        self, spec: ServerSpec, principal: str, grant: OAuthGrant, replaced: KeptGrant | None = None
    ) -> KeptGrant | None:
        """Keep a grant in place of `replaced`, unless somebody changed that; else in place of whatever is there. As it
        is kept; `None` if it is not."""
        row = await self._seal_grant(spec, principal, grant, None if replaced is None else replaced.row.created_at)
        expected = None if replaced is None else replaced.version
        if not await self.store.save_grant(row, expected_version=expected):
            return None
        if expected is not None:
            return KeptGrant(replace(row, version=expected + 1), grant)
        # Which version a new one has is for the store to say.
        return await self.load_grant(spec.name, principal)

    async def finish_flow(self, flow: FlowRow, outcome: str, spec: ServerSpec, grant: OAuthGrant) -> bool:
        """Keep what a sign-in gave in place of whatever is there, and how it ended; false if it has ended before."""
        row = await self._seal_grant(spec, flow.principal, grant, None)
        return await self.store.finish_flow(flow.flow_id, outcome, row)

    async def end_grant(self, kept: KeptGrant, state: str, reason: str) -> bool:
        """Keep that a grant is over, unless somebody changed it meanwhile."""
        row = replace(kept.row, state=state, reason=reason)
        return await self.store.save_grant(row, expected_version=kept.version)

    async def check_issuer(self, spec: ServerSpec, issuer: str) -> None:
        """Raise `ToolFailure` if the credentials of the config were given to another issuer before."""
        client_id = client_to_pin(spec)
        pinned = None if client_id is None else await self._load_pin(*pin_key(spec, client_id))
        if pinned is not None:
            require_issuer(spec, pinned, issuer)

    async def load_client(self, issuer: str, redirect_uri: str) -> KeptClient | None:
        """The registration at an issuer; `None` also if it cannot be read: there can be another one."""
        sealed = await self.store.load_client(issuer, redirect_uri)
        if sealed is None:
            return None
        try:
            clear = (await self._open()).unseal(sealed, client_context(issuer, redirect_uri))
            members = msgspec.json.decode(clear)
            scopes, tried_at = members.get(_SCOPES, ()), members.get(_TRIED_AT, 0.0)
            return KeptClient(OAuthClient.from_json(members), tuple(scopes), tried_at)
        except (Unsealable, ValueError):
            return None

    async def save_client(self, kept: KeptClient) -> None:
        """Keep a registration."""
        client = kept.client
        context = client_context(client.issuer, client.redirect_uri or "")
        members = {**client.to_json(), _SCOPES: list(kept.scopes), _TRIED_AT: kept.tried_at}
        sealed = (await self._open()).seal(msgspec.json.encode(members), context)
        await self.store.save_client(client.issuer, client.redirect_uri or "", sealed)

    async def note_success(self, client: OAuthClient) -> None:
        """Somebody signed in with a registration: it is known there."""
        kept = await self.load_client(client.issuer, client.redirect_uri or "")
        if kept is not None and kept.client.client_id == client.client_id and kept.tried_at:
            await self.save_client(replace(kept, tried_at=0.0))

    async def save_flow(self, row: FlowRow, secrets: FlowSecrets) -> None:
        """Keep a sign-in that was begun."""
        sealed = (await self._open()).seal(secrets.to_bytes(), row.context)
        await self.store.save_flow(replace(row, sealed=sealed))

    async def open_flow(self, row: FlowRow) -> FlowSecrets:
        """The secrets of a sign-in under way; `ToolFailure` if they cannot be read."""
        return FlowSecrets.from_bytes((await self._open()).unseal(row.sealed, row.context))

    async def _pin_issuer(self, spec: ServerSpec, grant: OAuthGrant) -> None:
        """From the first grant on, whoever's it is; it stays when they sign out."""
        client_id = client_to_pin(spec)
        if client_id is None or client_id != grant.client.client_id:
            return
        key = pin_key(spec, client_id)
        if await self._load_pin(*key) is None:
            sealed = (await self._open()).seal(grant.issuer.encode(), client_context(*key))
            await self.store.save_client(*key, sealed)

    async def _load_pin(self, url: str, name: str) -> str | None:
        sealed = await self.store.load_client(url, name)
        if sealed is None:
            return None
        try:
            return (await self._open()).unseal(sealed, client_context(url, name)).decode()
        except Unsealable as exc:
            if exc.error.retryable:
                raise
            # Its key is lost, and with it every grant: the next one is the first.
            return None

    async def _seal_grant(
        self, spec: ServerSpec, principal: str, grant: OAuthGrant, created_at: float | None
    ) -> GrantRow:
        await self._pin_issuer(spec, grant)
        row = make_row(spec, principal, grant, created_at)
        return replace(row, sealed=(await self._open()).seal(grant.to_bytes(), row.context))

    async def _open(self) -> Sealer:
        async with self._opening:
            if self._sealer is None:
                self._sealer = await self._opener()
            return self._sealer


def sealer_opener(storage_setting: str) -> SealerOpener:
    """Finds the key for a storage."""
    return lambda: open_sealer(storage_setting, os.environ, state_folder())
