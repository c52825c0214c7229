"""Sign-in to servers, as the board has it. Nothing is read, opened or asked before somebody needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pegboard.access.principal import LOCAL, Principal
from pegboard.config import ServerSpec, Settings
from pegboard.log import logger
from pegboard.metrics import Metrics
from pegboard.oauth.grant import KeptGrant
from pegboard.oauth.grants import Grants
from pegboard.oauth.live_token import ChangeListener, GrantChange
from pegboard.oauth.principals import LocalUserAlone, Principals
from pegboard.oauth.sign_in import SignIns
from pegboard.oauth.sign_in_flow import BEGUN, DONE
from pegboard.oauth.token_source import revoke_grant
from pegboard.oauth.vault import Vault, sealer_opener
from pegboard.result import ToolFailure
from pegboard.servers.authorization import Authorization
from pegboard.storage import Storage
from pegboard.storage.oauth import FlowRow

# Told what happened: the kind of a record, how it went, the server, what to say about it, and who did it, if that is
# not whose request is answered.
AuditNote = Callable[[str, str, str, str, Principal | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who is signed in where; nothing secret."""

    server: str
    # Empty: the gateway's own.
    principal: str
    issuer: str
    resource: str | None
    scopes: tuple[str, ...]
    # When the token of now is over; one that can be renewed is.
    expires_at: float | None
    # "live", or why it can be used no longer; the reason is for people.
    state: str
    reason: str
    created_at: float


class OAuth:
    """Every sign-in of a board."""

    def __init__(
        self,
        storage: Storage,
        storage_setting: str,
        settings: Callable[[], Settings],
        metrics: Metrics,
        note: AuditNote,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._note = note
        self._vault = Vault(storage.oauth, sealer_opener(storage_setting))
        # Who is let in; a gateway knows more of them.
        self.principals: Principals = LocalUserAlone()
        self._grants = Grants(self._vault, self._tell, self._record_renewal, self._count, self._is_removed)
        self.sign_ins = SignIns(
            self._vault,
            self._grants,
            lambda: self._settings().servers,
            self._record_sign_in,
            lambda: self.principals,
            lambda: self._settings().auth.public_url,
        )
        self._listeners: list[ChangeListener] = []

    def on_change(self, listener: ChangeListener) -> None:
        """Have somebody told of each sign-in that begins, changes or ends, here or in another process: the server, the
        principal (empty: the gateway's own), and what happened."""
        self._listeners.append(listener)

    def authorize(self, spec: ServerSpec, principal_id: str | None) -> Authorization | None:
        """The credentials of a server; see `servers/authorization.py`."""
        return self._grants.authorization(spec, principal_id)

    async def browser_mark(self, row: FlowRow) -> str:
        """The secret by which the browser of a sign-in under way is known again; empty if it has none."""
        return (await self._vault.open_flow(row)).browser_mark if row.sealed else ""

    async def review(self) -> None:
        """Who is let in may be another one by now: end the sign-ins under way of those who are not, and sign out those
        whose tokens were removed."""
        try:
            await self.sign_ins.review()
            # Before it is found out who is gone: whoever signs in meanwhile is not.
            rows = [row for row in await self._vault.store.list_grants() if row.principal]
            gone = await self.principals.list_removed({row.principal for row in rows}) if rows else set[str]()
            for row in rows:
                if row.principal in gone:
                    await self.logout(row.server, row.principal)
        except ToolFailure as exc:
            logger().warning("oauth.review.failed", reason=exc.error.message)

    async def logout(self, server: str, principal: str) -> bool:
        """Delete a grant, and give its tokens back; whether the authorization server took them."""
        kept = await self._take_out(server, principal)
        if kept is None:
            return False
        await self._grants.look()
        spec = self._settings().servers.get(server)
        is_revoked = kept.grant is not None and await revoke_grant(spec, kept.grant)
        detail = "revoked" if is_revoked else "deleted here, not revoked there"
        detail = f"{detail}, for {principal}" if principal else detail
        self._note("signin.ended", "ok", server, detail, None)
        logger().info("oauth.signed_out", server=server, revoked=is_revoked)
        return is_revoked

    async def _take_out(self, server: str, principal: str) -> KeptGrant | None:
        """Delete a grant first: from then on nobody renews what is to be revoked."""
        while (kept := await self._vault.load_grant(server, principal)) is not None:
            # Tokens that were renewed since it was read are the ones to revoke.
            if await self._vault.store.delete_grant(server, principal, kept.version):
                return kept
        return None

    async def logins(self) -> list[Login]:
        """Who is signed in where."""
        return [
            Login(
                server=row.server,
                principal=row.principal,
                issuer=row.issuer,
                resource=row.resource,
                scopes=row.scopes,
                expires_at=row.expires_at,
                state=row.state,
                reason=row.reason,
                created_at=row.created_at,
            )
            for row in await self._grants.look()
        ]

    async def close(self) -> None:
        """End everything; what was granted stays."""
        await self.sign_ins.close()
        await self._grants.close()

    def _tell(self, server: str, principal: str, change: GrantChange) -> None:
        for listener in self._listeners:
            listener(server, principal, change)

    def _record_renewal(self, server: str, outcome: str) -> None:
        self._metrics.oauth_refreshes[server, outcome] += 1
        if outcome == "ended":
            reason = "the authorization server takes the refresh token no longer"
            self._note("signin.lost", "failed", server, reason, LOCAL)

    def _record_sign_in(self, server: str, principal: str, begun_by: str, outcome: str, reason: str) -> None:
        who = self._find_principal(begun_by)
        if outcome not in {BEGUN, DONE}:
            self._note("signin.failed", "failed", server, reason, who)
            logger().info("oauth.sign_in.refused", server=server, reason=reason)
            return
        self._note(f"signin.{outcome}", "ok", server, f"for {principal}" if principal else "", who)
        if outcome == DONE:
            logger().info("oauth.signed_in", server=server)

    def _is_removed(self, principal_id: str) -> bool:
        return self.principals.is_removed(principal_id)

    def _find_principal(self, principal_id: str) -> Principal:
        """Who somebody is, for a record; also if they are let in no longer."""
        kind = "token" if principal_id.startswith("token:") else "jwt"
        return self.principals.find(principal_id) or Principal(kind, principal_id, principal_id)

    def _count(self, states: Counter[str]) -> None:
        self._metrics.oauth_grants = states
