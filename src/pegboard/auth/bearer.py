"""The bearer token of a request: in the one place where it may stand, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.auth.refused import AuthRefused
from pegboard.auth.token import has_token

MAX_TOKEN = 16 * 1024
# Where OAuth once allowed a token in an address, and where people try it.
_QUERY_NAMES = (b"access_token", b"token", b"api_key", b"apikey", b"bearer", b"authorization")


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The token that a request brings; `None` if it brings none. `AuthRefused` where it cannot be read."""
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        return None
    if len(given) > 1:
        raise AuthRefused(400, "the header Authorization was sent twice", error="invalid_request")
    scheme, _, token = given[0].strip(b" \t").partition(b" ")
    token = token.strip(b" \t")
    if scheme.lower() != b"bearer":
        raise AuthRefused(
            401, "Authorization must be a bearer token: Authorization: Bearer TOKEN", error="invalid_token"
        )
    if not token or len(token) > MAX_TOKEN or not token.isascii() or b" " in token:
        raise AuthRefused(400, "the bearer token cannot be read: is it whole?", error="invalid_request")
    return token.decode("ascii")


def refuse_token_in_address(scope: Mapping[str, Any]) -> None:
    """An address ends up in logs and histories: a token must not stand there (RFC 6750, section 2.3; MCP)."""
    query: bytes = scope.get("query_string", b"")
    names = {part.partition(b"=")[0].lower() for part in query.split(b"&")}
    if not names.isdisjoint(_QUERY_NAMES) or has_token(scope["path"]):
        reason = "a token must not stand in the address: send it as a header, Authorization: Bearer TOKEN"
        raise AuthRefused(400, reason, error="invalid_request")
