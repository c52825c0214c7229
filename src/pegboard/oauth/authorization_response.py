"""The authorization response: what comes back with the browser, or is pasted."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.result import ToolErrorCode, ToolFailure


class AuthorizationRefused(ToolFailure):
    """The answer gives no code, or is not the answer to the request; `oauth_error` is the server's own word."""

    def __init__(self, message: str, oauth_error: str | None = None) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)
        self.oauth_error = oauth_error


def read_query(pasted: str) -> dict[str, str]:
    """The parameters of an address, or of what stands behind its question mark. Raises `AuthorizationRefused`."""
    raise NotImplementedError


def read_code(query: Mapping[str, str], *, state: str, server: AuthorizationServer) -> str:
    """The code of the answer to the request with this state. Raises `AuthorizationRefused`."""
    raise NotImplementedError
