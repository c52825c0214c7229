"""The device flow (RFC 8628): a person agrees on another machine, with a short code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher
from pegboard.oauth.registration import OAuthClient
from pegboard.oauth.token_answer import TokenAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAuthorization:
    """What the person is to be told, and what is asked with."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    # The same with the code in it, for a browser.
    verification_uri_complete: str | None = None
    # Seconds.
    expires_in: float
    interval: float = 5.0


@dataclass(frozen=True, slots=True)
class DevicePending:
    """Nobody has agreed yet; `interval` is how many seconds are to pass before the next question."""

    interval: float


async def authorize_device(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> DeviceAuthorization:
    """Ask for a code. Raises `TokenRefused`, or `DiscoveryFailed` where the server has no device flow."""
    raise NotImplementedError


async def poll_device(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    device_code: str,
    interval: float,
    resource: str | None = None,
) -> TokenAnswer | DevicePending:
    """Ask once whether somebody has agreed. `GrantRefused` if they said no, or it is too late."""
    raise NotImplementedError
