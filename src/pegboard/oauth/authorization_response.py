"""The authorization response: what comes back with the browser, or is pasted."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.issuer_addresses import key_in
from pegboard.oauth.server_words import describe_error, error_of_answer
from pegboard.result import ToolErrorCode, ToolFailure

# Longer is no answer of an authorization server.
_MOST_CHARACTERS = 16 * 1024
_MOST_FIELDS = 50


class AuthorizationRefused(ToolFailure):
    """The answer gives no code, or is not the answer to the request; `oauth_error` is the server's own word."""

    def __init__(self, message: str, oauth_error: str = "") -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)
        self.oauth_error = oauth_error


def read_query(pasted: str) -> dict[str, str]:
    """The parameters of an address, or of what stands behind its question mark. Raises `AuthorizationRefused`."""
    text = _clean(pasted)
    query = (text.partition("?")[2] if "?" in text else text).partition("#")[0]
    if len(query) > _MOST_CHARACTERS:
        raise AuthorizationRefused("this is too long to be the address that the browser was sent to")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise AuthorizationRefused("this is not the address that the browser was sent to") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of two codes counts would be a matter of taste (RFC 6749, section 3.1).
        raise AuthorizationRefused("the answer has a parameter twice")
    if not found.keys() & {"code", "error"}:
        raise AuthorizationRefused(
            "it has no code=… in it. Paste the whole address that the browser was sent to, or code=…&state=…"
        )
    return found


def read_address(pasted: str) -> str | None:
    """The address before the question mark, if it was pasted along."""
    address, mark, _ = _clean(pasted).partition("?")
    return address if mark and address else None


def _clean(pasted: str) -> str:
    """A terminal breaks lines, a mail puts brackets around, a shell wants quotes; an address has none of these."""
    return "".join(pasted.split()).strip("\"'`<>")


def check_address(came_to: str | None, redirect_uri: str) -> None:
    """Refuse an answer that came to the address of another authorization server than was asked; `None`: only the
    query was pasted, and nobody knows. What else is different may be the doing of a proxy."""
    if came_to is not None and key_in(came_to) != key_in(redirect_uri):
        raise AuthorizationRefused("the answer came to the address of another authorization server than was asked")


def read_code(query: Mapping[str, str], *, state: str, server: AuthorizationServer) -> str:
    """The code of the answer to the request with this state. Raises `AuthorizationRefused`."""
    if not hmac.compare_digest(query.get("state", "").encode(), state.encode()):
        raise AuthorizationRefused("this is not the answer to the sign-in that was begun: begin anew")
    _check_issuer(query.get("iss"), server)
    if "error" in query:
        error = error_of_answer(query)
        reason = "the sign-in was declined" if error == "access_denied" else "the sign-in was refused"
        raise AuthorizationRefused(f"{reason} ({describe_error(query)})", error)
    code = query.get("code")
    if not code:
        raise AuthorizationRefused("the answer has no code")
    return code


def _check_issuer(iss: str | None, server: AuthorizationServer) -> None:
    """RFC 9207: who answers is who was asked, as plain texts. Of another's answer nothing is believed, nor shown."""
    if iss is None and server.iss_parameter_supported:
        raise AuthorizationRefused("the answer does not say which authorization server it is from (iss), and must")
    if iss is not None and iss != server.issuer:
        raise AuthorizationRefused("the answer is from another authorization server than was asked (iss)")
