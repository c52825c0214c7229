"""Our client ID metadata document (CIMD): who this gateway is at authorization servers that take an address for a
client's id. It can be had where everybody reaches the gateway over https."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pegboard.access.settings import AuthSettings
from pegboard.gateway.guard import refusal_response
from pegboard.gateway.oauth_callback import CALLBACK
from pegboard.oauth.issuer_addresses import document_path, is_issuer_key
from pegboard.version import SERVER_INFO

CLIENT_DOCUMENT = document_path("")
ISSUER_DOCUMENT = document_path("{issuer}")
# Authorization servers keep it; a change of the public address is a change of the client.
_KEPT = "public, max-age=3600"


class ClientDocument:
    """The document."""

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings

    async def answer(self, request: Request) -> Response:
        """The document, where the gateway has an address that others can fetch it from."""
        address, key = self._settings().public_url, str(request.path_params.get("issuer", ""))
        if key and not is_issuer_key(key):
            return refusal_response(404, f"{request.url.path}: there is no client document")
        if not address.startswith("https://"):
            reason = "there is no client document: it needs an https address in auth.publicUrl"
            return refusal_response(404, f"{request.url.path}: {reason}")
        document = {
            "client_id": f"{address}{document_path(key)}",
            "client_name": SERVER_INFO["title"],
            "client_uri": address,
            "redirect_uris": [f"{address}{CALLBACK}/{key}" if key else f"{address}{CALLBACK}"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
        return JSONResponse(document, headers={"cache-control": _KEPT})
