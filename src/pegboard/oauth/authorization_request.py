"""The authorization request: the address where a person agrees, with PKCE (RFC 7636)."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.discovery import FIND_SERVER_RULE, DiscoveryFailed
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.scopes import OFFLINE

PKCE_RULE = "MCP 2025-11-25: a client refuses an authorization server that does not list S256 for PKCE"


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """The address, and what has to be remembered for its answer."""

    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)


def build_authorization_request(
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    redirect_uri: str,
    scopes: Sequence[str] | None = None,
    resource: str | None = None,
    params: Mapping[str, str] | None = None,
) -> AuthorizationRequest:
    """A new request. Raises `DiscoveryFailed` where the server does not offer what makes it safe."""
    endpoint = server.authorization_endpoint
    if endpoint is None:
        raise DiscoveryFailed(f"{server.issuer} has no authorization endpoint", FIND_SERVER_RULE, server.issuer)
    if "S256" not in (server.code_challenge_methods or ()):
        reason = f"{server.issuer} does not list S256 in code_challenge_methods_supported, so a code could be stolen"
        raise DiscoveryFailed(reason, PKCE_RULE, server.issuer)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    fields = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
    }
    if scopes:
        fields["scope"] = " ".join(scopes)
    if resource is not None:
        fields["resource"] = resource
    more = dict(params or {})
    if OFFLINE in (scopes or ()):
        # OpenID Connect gives no refresh token unless somebody is asked (Core 1.0, section 11).
        more.setdefault("prompt", "consent")
    parts = urlsplit(endpoint)
    own = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in fields]
    query = urlencode([*own, *fields.items(), *((key, value) for key, value in more.items() if key not in fields)])
    return AuthorizationRequest(urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")), state, verifier)


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
