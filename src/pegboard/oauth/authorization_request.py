"""The authorization request: the address where a person agrees, with PKCE (RFC 7636)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.registration import OAuthClient


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """The address, and what has to be remembered for its answer."""

    url: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)


def build_authorization_request(
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    redirect_uri: str,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
    params: Mapping[str, str] = {},
) -> AuthorizationRequest:
    """A new request. Raises `DiscoveryFailed` where the server does not offer what makes it safe."""
    raise NotImplementedError
