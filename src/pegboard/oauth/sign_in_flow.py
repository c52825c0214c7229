"""A sign-in under way: what whoever began it is told, and what is kept under a seal until its answer comes."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import msgspec

from pegboard.log import Redactor
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.storage.oauth import FlowRow

FlowState = Literal["waiting", "done", "failed"]
DONE = "done"
# What is recorded of one that waits.
BEGUN = "begun"
# How the outcome of a sign-in begins that came to nothing; why follows.
FAILED = "failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A sign-in, as whoever waits for it sees it."""

    id: str
    server: str
    # Empty: the gateway's own.
    principal: str
    expires_at: float
    state: FlowState = "waiting"
    # Why it failed, for people.
    reason: str = ""
    # What became of another one that was under way, for whoever began this one.
    note: str = ""
    # Where the person is to go. Not for a log: it belongs to whoever asked.
    url: str | None = field(default=None, repr=False)
    # By a device code: what to type in, and where.
    user_code: str | None = field(default=None, repr=False)
    verification_uri: str | None = None
    verification_uri_complete: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSecrets:
    """What only we may know of a sign-in, and what its answer is held against."""

    # The server's address that it is for.
    server_url: str
    authorization_server: AuthorizationServer = field(repr=False)
    client: OAuthClient = field(repr=False)
    redirect_uri: str
    resource: str | None
    scopes: tuple[str, ...]
    # The id of whoever began it; empty: the gateway.
    begun_by: str = ""
    # What whoever began it asked for beyond what is found out: further scopes, and a client of their own.
    further_scopes: tuple[str, ...] = ()
    has_own_client: bool = False
    url: str | None = field(default=None, repr=False)
    state: str = field(default="", repr=False)
    verifier: str = field(default="", repr=False)
    device_code: str | None = field(default=None, repr=False)
    user_code: str | None = field(default=None, repr=False)
    verification_uri: str | None = None
    verification_uri_complete: str | None = field(default=None, repr=False)

    @property
    def redactor(self) -> Redactor:
        """Takes its secrets out of what others say about it."""
        return Redactor.of(filter(None, (self.state, self.verifier, self.device_code, self.client.client_secret)))

    @property
    def browser_mark(self) -> str:
        """What a browser is given that was shown to be of whom the sign-in is for. Nobody can make one without the
        verifier, which only we have; by a device code no browser comes back."""
        return hmac.digest(self.verifier.encode(), b"pegboard browser mark", "sha256").hex() if self.verifier else ""

    @property
    def is_device(self) -> bool:
        """Whether a person types a code in on another machine."""
        return self.device_code is not None

    def to_bytes(self) -> bytes:
        """Everything, to be sealed."""
        members = {name: getattr(self, name) for name in _TEXTS}
        others = {"scopes": self.scopes, "client": self.client.to_json(), "at": self.authorization_server.to_json()}
        asked = {_FURTHER: self.further_scopes, _OWN_CLIENT: self.has_own_client}
        return msgspec.json.encode(members | others | asked)

    @classmethod
    def from_bytes(cls, written: bytes) -> FlowSecrets:
        """What `to_bytes` wrote."""
        members = cast("Mapping[str, Any]", msgspec.json.decode(written))
        return cls(
            **{name: members[name] for name in _TEXTS},
            scopes=tuple(members["scopes"]),
            client=OAuthClient.from_json(members["client"]),
            authorization_server=AuthorizationServer.from_json(members["at"]),
            # One that an older gateway began has neither.
            further_scopes=tuple(members.get(_FURTHER, ())),
            has_own_client=bool(members.get(_OWN_CLIENT, False)),
        )


_FURTHER, _OWN_CLIENT = "further_scopes", "has_own_client"
_TEXTS = (
    *("server_url", "redirect_uri", "resource", "url", "state", "verifier", "device_code", "user_code"),
    *("verification_uri", "verification_uri_complete", "begun_by"),
)


def describe_flow(row: FlowRow, secrets: FlowSecrets | None, now: float) -> Flow:
    """How a sign-in stands; what is to be shown of it is known as long as it waits."""
    state: FlowState = "waiting"
    reason = ""
    if row.outcome:
        state, reason = ("done", "") if row.outcome == DONE else ("failed", row.outcome.removeprefix(FAILED))
    elif row.expires_at <= now:
        state, reason = "failed", "it was interrupted" if row.is_used else "nobody answered in time"
    return Flow(
        id=row.flow_id,
        server=row.server,
        principal=row.principal,
        expires_at=row.expires_at,
        state=state,
        reason=reason,
        url=None if secrets is None else secrets.url,
        user_code=None if secrets is None else secrets.user_code,
        verification_uri=None if secrets is None else secrets.verification_uri,
        verification_uri_complete=None if secrets is None else secrets.verification_uri_complete,
    )
