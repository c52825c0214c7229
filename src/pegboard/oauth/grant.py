"""A grant: the tokens that an authorization server gave for one server, and all that it takes to renew them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import MACHINE_FLOWS
from pegboard.log import Redactor
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.scopes import split_scope
from pegboard.oauth.token_answer import TokenAnswer
from pegboard.storage.oauth import GrantRow

LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthGrant:
    """What is sealed of a grant. The metadata of its authorization server are kept: they may be away when it is to be
    renewed."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    # The server that it is for. The row has it, too, but whoever can write into the database can write a row.
    server_url: str
    # `None`: the parameter was left out.
    resource: str | None
    scopes: tuple[str, ...]
    # What was asked for. A server that wants more of it once more would never be content.
    requested: tuple[str, ...]
    # Seconds that the access token was given for, and when they are over by our clock; `None`: nobody knows.
    lifetime: float | None
    expires_at: float | None
    flow: str
    client: OAuthClient = field(repr=False)
    authorization_server: AuthorizationServer = field(repr=False)

    @classmethod
    def of(
        cls,
        answer: TokenAnswer,
        asked_at: float,
        *,
        server_url: str,
        resource: str | None,
        requested: tuple[str, ...],
        flow: str,
        client: OAuthClient,
        authorization_server: AuthorizationServer,
    ) -> OAuthGrant:
        """The grant that begins with these tokens, which were asked for at that time."""
        return cls(
            access_token=answer.access_token,
            refresh_token=answer.refresh_token,
            server_url=server_url,
            resource=resource,
            scopes=requested if answer.scope is None else split_scope(answer.scope),
            requested=requested,
            **_life(answer, asked_at),
            flow=flow,
            client=client,
            authorization_server=authorization_server,
        )

    def renew(self, answer: TokenAnswer, asked_at: float) -> OAuthGrant:
        """The same with new tokens. A refresh token that is not replaced stays in force."""
        return replace(
            self,
            access_token=answer.access_token,
            refresh_token=answer.refresh_token or self.refresh_token,
            scopes=self.scopes if answer.scope is None else split_scope(answer.scope),
            **_life(answer, asked_at),
        )

    @property
    def redactor(self) -> Redactor:
        """Takes its secrets out of what others say about it."""
        return Redactor.of(filter(None, (self.access_token, self.refresh_token, self.client.client_secret)))

    @property
    def issuer(self) -> str:
        """Who gave it."""
        return self.authorization_server.issuer

    @property
    def is_renewable(self) -> bool:
        """Whether new tokens can be had without a person."""
        return self.refresh_token is not None or self.flow in MACHINE_FLOWS

    @property
    def header(self) -> str:
        """The value of `Authorization`."""
        return f"Bearer {self.access_token}"

    def remaining(self, now: float) -> float | None:
        """Seconds that are left by a clock that may have been set meanwhile; `None`: nobody knows."""
        if self.expires_at is None or self.lifetime is None:
            return None
        return min(self.expires_at - now, self.lifetime)

    def to_bytes(self) -> bytes:
        """The grant, to be sealed."""
        return msgspec.json.encode(
            {
                "access_token": self.access_token,
                "refresh_token": self.refresh_token,
                "server_url": self.server_url,
                "resource": self.resource,
                "scopes": self.scopes,
                "requested": self.requested,
                "lifetime": self.lifetime,
                "expires_at": self.expires_at,
                "flow": self.flow,
                "client": self.client.to_json(),
                "authorization_server": self.authorization_server.to_json(),
            }
        )

    @classmethod
    def from_bytes(cls, written: bytes) -> OAuthGrant:
        """What `to_bytes` wrote; `ValueError` if it is something else."""
        try:
            members = cast("Mapping[str, Any]", msgspec.json.decode(written))
            return cls(
                access_token=members["access_token"],
                refresh_token=members["refresh_token"],
                server_url=members["server_url"],
                resource=members["resource"],
                scopes=tuple(members["scopes"]),
                requested=tuple(members["requested"]),
                lifetime=members["lifetime"],
                expires_at=members["expires_at"],
                flow=members["flow"],
                client=OAuthClient.from_json(members["client"]),
                authorization_server=AuthorizationServer.from_json(members["authorization_server"]),
            )
        except (msgspec.DecodeError, KeyError, TypeError) as exc:
            raise ValueError(f"no grant: {type(exc).__name__}") from None


@dataclass(frozen=True, slots=True)
class KeptGrant:
    """A grant with its row; without it, where it cannot be read: `problem` says why."""

    row: GrantRow
    grant: OAuthGrant | None
    problem: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it is in force, as far as anybody knows."""
        return self.grant is not None and self.row.state == LIVE

    @property
    def version(self) -> int:
        """Another one after each change."""
        return self.row.version

    def fits(self, spec: ServerSpec) -> bool:
        """Whether it is for the server that the config has now: another address, issuer, resource or client has
        another one. What counts is what is sealed."""
        grant, settings = self.grant, spec.sign_in
        if grant is None or grant.server_url != spec.url:
            return False
        if settings.issuer is not None and settings.issuer != grant.issuer:
            return False
        if settings.resource is not None and (settings.resource or None) != grant.resource:
            return False
        if settings.client_id is not None and settings.client_id != grant.client.client_id:
            return False
        # What a machine was given is not what a person agreed to.
        is_machine = settings.flow in MACHINE_FLOWS
        return grant.flow == settings.flow if is_machine else grant.flow not in MACHINE_FLOWS


def make_row(spec: ServerSpec, principal: str, grant: OAuthGrant, created_at: float | None = None) -> GrantRow:
    """The row of a grant, which is not sealed yet; one that is renewed was made when it was."""
    now = time.time()
    return GrantRow(
        server=spec.name,
        principal=principal,
        url=spec.url or "",
        issuer=grant.issuer,
        resource=grant.resource,
        scopes=grant.scopes,
        expires_at=grant.expires_at,
        state=LIVE,
        sealed=b"",
        created_at=now if created_at is None else created_at,
        updated_at=now,
    )


def _life(answer: TokenAnswer, asked_at: float) -> dict[str, float | None]:
    # Some say 0 for "for ever", and a token that is over at once would be of no use anyway.
    lifetime = answer.expires_in if answer.expires_in and answer.expires_in > 0 else None
    return {"lifetime": lifetime, "expires_at": None if lifetime is None else asked_at + lifetime}
