"""The device flow (RFC 8628): a person agrees on another machine, with a short code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_authentication import post_as_client
from pegboard.oauth.discovery import DiscoveryFailed
from pegboard.oauth.fetching import Fetcher, JsonAnswer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.token_answer import GrantRefused, TokenAnswer, TokenEndpointAway, read_refusal, read_seconds
from pegboard.oauth.token_request import limits_of, request_token

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_DEVICE_RULE = "RFC 8628, section 3.1: the device flow needs a device authorization endpoint"
# Seconds: what `slow_down` adds, and the longest pause between two questions.
# Seconds between two questions at least, whatever a server says.
_FASTEST = 1.0
_SLOWER, _SLOWEST = 5.0, 60.0
_DEFAULT_LIFE = 900.0


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


def find_device_endpoint(server: AuthorizationServer) -> str:
    """Where to ask for a code. Raises `DiscoveryFailed` where the server has no device flow."""
    if server.device_authorization_endpoint is None:
        raise DiscoveryFailed(f"{server.issuer} has no sign-in by device code", _DEVICE_RULE, server.issuer)
    return server.device_authorization_endpoint


async def authorize_device(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
) -> DeviceAuthorization:
    """Ask for a code. Raises `TokenRefused`, or `DiscoveryFailed` where the server has no device flow."""
    endpoint = find_device_endpoint(server)
    answer = await post_as_client(fetcher, endpoint, client, server, limits_of(scopes, resource))
    return _read_authorization(answer, server.issuer, fetcher)


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
    fields = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    try:
        return await request_token(fetcher, server, client, fields, resource=resource)
    except TokenEndpointAway as exc:
        if exc.oauth_error == "authorization_pending":
            return DevicePending(interval)
        # Whoever gets no answer asks less often, too (RFC 8628, section 3.5).
        slower = interval + _SLOWER if exc.oauth_error == "slow_down" else interval * 2
        return DevicePending(min(max(slower, exc.error.retry_after), max(_SLOWEST, interval)))


def _read_authorization(answer: JsonAnswer, issuer: str, fetcher: Fetcher) -> DeviceAuthorization:
    members = answer.members
    device_code, user_code = members.get("device_code"), members.get("user_code")
    # Google's word for it is older than the standard.
    uri = members.get("verification_uri", members.get("verification_url"))
    if answer.status != 200 or not (isinstance(device_code, str) and isinstance(user_code, str) and device_code):
        raise read_refusal(answer, issuer)
    if not isinstance(uri, str) or fetcher.address_problem(uri) or not user_code.isprintable():
        raise GrantRefused(f"{issuer} names no address where a person could agree", "invalid_response")
    complete = members.get("verification_uri_complete")
    is_usable = isinstance(complete, str) and not fetcher.address_problem(complete)
    return DeviceAuthorization(
        device_code=device_code,
        user_code=user_code[:100],
        verification_uri=uri,
        verification_uri_complete=complete if is_usable else None,
        expires_in=read_seconds(members.get("expires_in")) or _DEFAULT_LIFE,
        interval=min(max(read_seconds(members.get("interval")) or _SLOWER, _FASTEST), _SLOWEST),
    )
