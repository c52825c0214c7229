"""The page of a connect link: it leads to a server's sign-in whoever the link was given to, and nobody else."""

from __future__ import annotations

import base64
import html
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from pegboard.access.principal import Principal
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.refused import AuthRefused
from pegboard.board import Board
from pegboard.gateway.connect_links import ConnectLink
from pegboard.gateway.guard import refusal_response
from pegboard.gateway.login_desk import LoginDesk, SignInWish
from pegboard.gateway.oauth_callback import CallbackPage, page_headers, show_page
from pegboard.gateway.rest.pages import page
from pegboard.result import ToolFailure, unavailable

_UNKNOWN = "This link is not known any more: it was used, or is too old. Call the tool again to get another one."
_NOT_HERE = "This link is for the user that Pegboard runs as, in a browser on the same machine."
_ADMINS = "Only an admin signs in to this server, for everybody who uses this gateway."
_NOT_YOURS = "this link was given to somebody else"


class ConnectPage:
    """Stands at `/connect/…`."""

    def __init__(self, board: Board, desk: LoginDesk, callback: CallbackPage, authenticator: Authenticator) -> None:
        self._board = board
        self._links = desk.links
        self._desk = desk
        self._callback = callback
        self._authenticator = authenticator

    async def answer(self, request: Request) -> Response:
        """Lead on whoever can be told to be the right one; ask others to show it (`POST`, with their token)."""
        link = self._links.find(str(request.path_params["key"]))
        if request.method == "POST":
            return await self._prove(request, link)
        if request.method != "GET":
            return Response(status_code=405, headers={"allow": "GET, POST"})
        if link is None:
            return show_page(404, "Not signed in", _UNKNOWN)
        visitor = await self._find_visitor(request)
        if visitor is not None and visitor.id == link.principal_id:
            return await self._lead_on(link, visitor)
        if link.principal_id == self._authenticator.local.id:
            return show_page(403, "Not signed in", _NOT_HERE)
        return _ask_for_token(link)

    async def _find_visitor(self, request: Request) -> Principal | None:
        try:
            return await self._authenticator.authenticate(request.scope)
        except AuthRefused:
            return None

    async def _lead_on(self, link: ConnectLink, visitor: Principal) -> Response:
        try:
            url = await self._begin(link, visitor)
            response = RedirectResponse(url, 303, {"cache-control": "no-store", "referrer-policy": "no-referrer"})
            await self._callback.mark_browser(response, _state_of(url))
        except AuthRefused as exc:
            return show_page(exc.status, "Not signed in", exc.reason)
        except ToolFailure as exc:
            return show_page(502, f"Not signed in to {link.server}", str(exc))
        return response

    async def _prove(self, request: Request, link: ConnectLink | None) -> Response:
        """The same for somebody whose browser shows a token: where to go is in the answer."""
        try:
            visitor = await self._authenticator.authenticate(request.scope)
        except AuthRefused as exc:
            return refusal_response(exc.status, exc.reason)
        if link is None:
            return refusal_response(404, _UNKNOWN)
        if visitor.id != link.principal_id:
            return refusal_response(403, _NOT_YOURS)
        try:
            url = await self._begin(link, visitor)
            response = JSONResponse({"success": True, "data": {"url": url}}, headers={"cache-control": "no-store"})
            await self._callback.mark_browser(response, _state_of(url))
        except AuthRefused as exc:
            return refusal_response(exc.status, exc.reason)
        except ToolFailure as exc:
            return refusal_response(502, str(exc))
        return response

    async def _begin(self, link: ConnectLink, visitor: Principal) -> str:
        """Where the visitor signs in. The rules and the config may be others than when the link was made, and those of
        now count: `AuthRefused` says what is in the way."""
        if visitor.access is not None and not visitor.access.admits_server(link.server):
            raise AuthRefused(404, _UNKNOWN)
        server = self._board.servers.get(link.server)
        if server is None:
            raise unavailable(f"server {link.server} was removed from the config", retryable=False)
        holder = visitor.id if server.spec.sign_in.per == "user" else ""
        if holder != link.holder:
            raise AuthRefused(404, _UNKNOWN)
        if not holder and not visitor.admin:
            raise AuthRefused(403, _ADMINS)
        flow = await self._desk.begin(server.spec, visitor.id, SignInWish(), self._links.address)
        return flow.url or flow.verification_uri_complete or flow.verification_uri or ""


def _state_of(url: str) -> str:
    return next(iter(parse_qs(urlsplit(url).query).get("state", ())), "")


def _ask_for_token(link: ConnectLink) -> Response:
    whole = page("connect").replace("{server}", html.escape(link.server))
    script = whole.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    headers = page_headers(whole)
    policy = f"{headers['content-security-policy']}; script-src 'sha256-{digest}'; connect-src 'self'"
    return HTMLResponse(whole, 200, {**headers, "content-security-policy": policy})
