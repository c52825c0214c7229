"""The client that the gateway is at an authorization server: configured, a metadata document, or registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pegboard.config.oauth_settings import OAuthSettings
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.result import ToolErrorCode, ToolFailure

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
ClientSource = Literal["configured", "document", "registered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """Who the gateway is at one authorization server."""

    client_id: str
    issuer: str
    source: ClientSource
    auth_method: AuthMethod = "none"
    client_secret: str | None = field(default=None, repr=False)
    redirect_uri: str | None = None
    # A time as `time.time()` counts; `None`: never.
    secret_expires_at: float | None = None
    private_key: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    key_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The client, to be kept under a seal."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> OAuthClient:
        """What `to_json` wrote; raises `ValueError` if it is something else."""
        raise NotImplementedError

    def is_expired(self, now: float) -> bool:
        """Whether its secret is of no more use."""
        return self.secret_expires_at is not None and self.secret_expires_at <= now


class RegistrationRefused(ToolFailure):
    """The authorization server registers no client, or not this one; the message says what to do."""

    def __init__(self, message: str, error: str | None = None, *, is_away: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=is_away)
        self.oauth_error = error
        self.is_away = is_away


def configured_client(
    settings: OAuthSettings, server: AuthorizationServer, redirect_uri: str | None
) -> OAuthClient | None:
    """The client that the config names, if it does."""
    raise NotImplementedError


def document_client(document_url: str | None, server: AuthorizationServer, redirect_uri: str) -> OAuthClient | None:
    """The client whose id is the address of its metadata document, where the server takes such (CIMD)."""
    raise NotImplementedError


async def register(
    fetcher: Fetcher,
    server: AuthorizationServer,
    redirect_uri: str,
    *,
    scopes: Sequence[str] = (),
    grant_types: Sequence[str] = ("authorization_code", "refresh_token"),
) -> OAuthClient:
    """Register the gateway dynamically (RFC 7591). Raises `RegistrationRefused`."""
    raise NotImplementedError


def client_metadata(
    redirect_uris: Sequence[str], *, scopes: Sequence[str] = (), grant_types: Sequence[str] = ()
) -> dict[str, Any]:
    """What the gateway says of itself as a client, in a registration and in its metadata document."""
    raise NotImplementedError
