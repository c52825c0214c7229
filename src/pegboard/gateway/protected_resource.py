"""What a protected resource says of itself: its metadata (RFC 9728), and the challenge in a refusal (RFC 6750), both as
MCP's authorization wants them. Clients find from there where they get a token, for whom, and with which scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pegboard.access.settings import AuthSettings
from pegboard.auth.refused import AuthRefused
from pegboard.auth.resource import base_url, resource_path
from pegboard.gateway.guard import refusal_response
from pegboard.names import is_board_name
from pegboard.version import SERVER_INFO

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# For how long a token can be renewed is between a client and its issuer (MCP, 2025-11-25).
_NOT_OURS = "offline_access"


class ResourceMetadata:
    """The metadata of the gateway, of its MCP address, and of each board."""

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings

    async def answer(self, request: Request) -> Response:
        """The document, where there is an issuer to name."""
        settings, board = self._settings(), request.path_params.get("board")
        if not settings.issuers or (board is not None and not is_board_name(board)):
            return refusal_response(404, f"{request.url.path}: there is nothing here; /docs lists what there is")
        path = request.scope["path"].removeprefix(WELL_KNOWN)
        scopes = _scopes_to_offer(settings)
        document = {
            "resource": f"{base_url(request.scope, settings.public_url)}{path}",
            "authorization_servers": list(dict.fromkeys(each.issuer for each in settings.issuers)),
            **({"scopes_supported": scopes} if scopes else {}),
            "bearer_methods_supported": ["header"],
            "resource_name": SERVER_INFO["title"],
        }
        return JSONResponse(document)


def challenge(refused: AuthRefused, scope: Mapping[str, Any], settings: AuthSettings) -> str:
    """The value of `WWW-Authenticate`. A request without credentials is told of no error (RFC 6750, section 3.1)."""
    parts = {"realm": "pegboard"}
    if refused.error:
        parts |= {"error": refused.error, "error_description": refused.reason}
    # What is missing is told in full, so that one more sign-in is enough.
    if scopes := _clean(refused.scopes) or ([] if refused.status == 403 else _scopes_to_offer(settings)):
        parts["scope"] = " ".join(scopes)
    if settings.issuers:
        place = f"{WELL_KNOWN}{resource_path(scope['path'])}"
        parts["resource_metadata"] = f"{base_url(scope, settings.public_url)}{place}"
    return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in parts.items())


def _scopes_to_offer(settings: AuthSettings) -> list[str]:
    return _clean(scope for issuer in settings.issuers for scope in issuer.scopes)


def _clean(scopes: Iterable[str]) -> list[str]:
    return [scope for scope in sorted(set(scopes)) if scope != _NOT_OURS]


def _quotable(text: str) -> str:
    """A text as RFC 6750 lets it stand in a header."""
    return "".join(letter for letter in text if " " <= letter <= "~" and letter not in '"\\')
