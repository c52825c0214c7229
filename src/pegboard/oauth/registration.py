"""Dynamic registration (RFC 7591): the gateway makes itself known to an authorization server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from pegboard.host_names import host_name, is_loopback_name
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.fetching import Fetcher, FetchFailed, JsonAnswer
from pegboard.oauth.oauth_client import AUTH_METHODS, AuthMethod, OAuthClient, secret_method
from pegboard.oauth.server_words import describe_error, error_of_answer
from pegboard.result import ToolErrorCode, ToolFailure

CLIENT_NAME = "Pegboard"
CODE_GRANTS = ("authorization_code", "refresh_token")
# The methods that need no more than the registration itself.
_METHODS: tuple[AuthMethod, ...] = ("none", "client_secret_basic", "client_secret_post")
_GIVE_ID = "and give its id: oauth.clientId in the config, or login with --client-id"


class RegistrationRefused(ToolFailure):
    """The authorization server registers no client, or not this one; the message says what to do."""

    def __init__(self, message: str, oauth_error: str = "", *, is_away: bool = False) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=is_away)
        self.oauth_error = oauth_error
        self.is_away = is_away


async def register(
    fetcher: Fetcher,
    server: AuthorizationServer,
    redirect_uri: str,
    *,
    scopes: Sequence[str] = (),
    grant_types: Sequence[str] = CODE_GRANTS,
    by_hand: str | None = None,
) -> OAuthClient:
    """Register the gateway. Raises `RegistrationRefused`; `by_hand` is the redirect of a client that a person
    registers there instead."""
    uses_redirect = "authorization_code" in grant_types
    where = f" with the redirect address {by_hand or redirect_uri}" if uses_redirect else ""
    advice = f"register a client there{where}, {_GIVE_ID}"
    if server.registration_endpoint is None:
        raise RegistrationRefused(f"{server.issuer} registers no clients by itself: {advice}")
    method = _choose_method(server, advice)
    offered = server.grant_types or grant_types
    # Some refuse what they do not list; without the first one there is nothing to register for.
    kept = [each for each in grant_types if each in offered or each == grant_types[0]]
    members = client_metadata([redirect_uri], scopes=scopes, grant_types=kept, auth_method=method)
    try:
        answer = await fetcher.post_json(server.registration_endpoint, members)
    except FetchFailed as exc:
        raise RegistrationRefused(f"{server.issuer}: no registration: {exc}", is_away=exc.is_away) from None
    if not _has_client(answer):
        raise _refusal(answer, server, advice)
    return _read_client(answer, server, redirect_uri, method)


def client_metadata(
    redirect_uris: Sequence[str],
    *,
    scopes: Sequence[str] = (),
    grant_types: Sequence[str] = CODE_GRANTS,
    auth_method: AuthMethod = "none",
) -> dict[str, Any]:
    """What the gateway says of itself as a client, in a registration and in its metadata document."""
    hosts = [host_name(urlsplit(each).hostname or "") for each in redirect_uris]
    metadata: dict[str, Any] = {
        "client_name": CLIENT_NAME,
        "redirect_uris": list(redirect_uris),
        "grant_types": list(grant_types),
        "response_types": ["code"] if "authorization_code" in grant_types else [],
        "token_endpoint_auth_method": auth_method,
        "application_type": "native" if all(map(is_loopback_name, hosts)) else "web",
    }
    return metadata | ({"scope": " ".join(scopes)} if scopes else {})


def _choose_method(server: AuthorizationServer, by_hand: str) -> AuthMethod:
    offered = server.token_endpoint_auth_methods
    if offered is None:
        return "none"
    if "none" in offered:
        return "none"
    # In the server's order: the Python SDK's takes a secret in the header only beside a client_id in the body.
    for each in offered:
        for method in _METHODS:
            if method == each:
                return method
    words = ", ".join(offered)[:200] or "no method"
    raise RegistrationRefused(f"{server.issuer} takes clients only by {words}: {by_hand}")


def _has_client(answer: JsonAnswer) -> bool:
    client_id = answer.members.get("client_id")
    return answer.status in {200, 201} and isinstance(client_id, str) and bool(client_id)


def _read_client(
    answer: JsonAnswer, server: AuthorizationServer, redirect_uri: str, asked_for: AuthMethod
) -> OAuthClient:
    secret = answer.members.get("client_secret")
    secret = secret if isinstance(secret, str) and secret else None
    return OAuthClient(
        client_id=str(answer.members["client_id"]),
        issuer=server.issuer,
        source="registered",
        auth_method=_read_method(answer.members, secret, server, asked_for),
        client_secret=secret,
        redirect_uri=redirect_uri,
        secret_expires_at=_read_expiry(answer.members) if secret else None,
    )


def _read_method(
    members: Mapping[str, Any], secret: str | None, server: AuthorizationServer, asked_for: AuthMethod
) -> AuthMethod:
    """What the answer says counts; one that says nothing but gives a secret means that it is to be used."""
    said = members.get("token_endpoint_auth_method")
    if isinstance(said, str) and said in AUTH_METHODS:
        method = cast("AuthMethod", said)
    else:
        method = asked_for if asked_for != "none" or secret is None else secret_method(server)
    return method if secret is not None or method == "private_key_jwt" else "none"


def _read_expiry(members: Mapping[str, Any]) -> float | None:
    said = members.get("client_secret_expires_at")
    return float(said) if isinstance(said, (int, float)) and not isinstance(said, bool) and said > 0 else None


def _refusal(answer: JsonAnswer, server: AuthorizationServer, by_hand: str) -> RegistrationRefused:
    is_away = answer.status == 429 or answer.status >= 500
    advice = "" if is_away else f": {by_hand}"
    said = describe_error(answer.members) or answer.problem or "the answer names no client"
    reason = f"{server.issuer} refused to register a client (HTTP {answer.status}, {said}){advice}"
    return RegistrationRefused(reason, error_of_answer(answer.members), is_away=is_away)
