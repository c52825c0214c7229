"""The page that an authorization server sends a browser back to: it finishes a sign-in, and says what came of it.

Everybody reaches it, since nobody has a token in a browser. What it is given is worth something only together with a
state that this gateway made, which is good once.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import html
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pegboard.access.principal import LOCAL
from pegboard.auth.flood import BearerFlood
from pegboard.auth.refused import AuthRefused
from pegboard.clients.locality import is_remote, share_holder
from pegboard.clients.peer_user import peer_of
from pegboard.gateway.rest.pages import page
from pegboard.result import ToolFailure

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.storage.oauth import FlowRow

CALLBACK = "/oauth/callback"
# What Claude Code and others use, and so what clients are registered with that were made for them.
LOOPBACK_CALLBACK = "/callback"
_PARAMETERS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})
_LONGEST_QUERY = 16 * 1024
# As long as a sign-in may take.
_MARK_LIFE = 600
_WHOSE = (
    "This browser has not shown whose sign-in this is, so the answer was not taken. Go back to where you began it, and "
    "paste the address of this page there."
)
_AGAIN = "Begin again with: pegboard login SERVER"


class CallbackPage:
    """Takes answers of authorization servers from browsers."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._flood = BearerFlood()

    async def answer(self, request: Request) -> Response:
        """Finish the sign-in that an address is the answer of."""
        if request.method != "GET":
            # A HEAD would use up what is good once.
            return Response(status_code=405, headers={"allow": "GET"})
        address = _address(request)
        try:
            query = read_query(request)
            await self._flood.wait_turn(address)
            await self._check_browser(request, query["state"])
            flow = await self._board.oauth.sign_ins.finish(query, principal_id=None, came_to=request.url.path)
        except AuthRefused as exc:
            return _show_refusal(exc)
        except ToolFailure as exc:
            return _show_refusal(self._flood.record(address, AuthRefused(400, str(exc))))
        if flow.state == "done":
            return show_page(200, f"Signed in to {flow.server}", "You can close this tab.")
        reason = flow.reason or "the sign-in did not come to an end"
        return show_page(
            400, f"Not signed in to {flow.server}", reason, f"Begin again with: pegboard login {flow.server}"
        )

    async def _check_browser(self, request: Request, state: str) -> None:
        """Refuse the answer of somebody's own sign-in that comes with a browser of nobody knows whom: they may have
        been led to sign in for somebody else. It is not used up, and can be pasted by whom it is for."""
        row = await self._find_flow(state)
        # One that was answered already is refused as that.
        if row is None or not row.principal or row.is_used:
            return
        if row.principal == LOCAL.id and await _is_own(request):
            return
        mark, shown = await self._board.oauth.browser_mark(row), request.cookies.get(self._mark_name(state), "")
        if not mark or not hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), mark.encode()):
            raise AuthRefused(403, _WHOSE)

    async def mark_browser(self, response: Response, state: str) -> None:
        """Let a browser be known again that was shown to be of whom a sign-in is for."""
        row = await self._find_flow(state)
        mark = "" if row is None else await self._board.oauth.browser_mark(row)
        if mark:
            is_secure, name = self._is_secure(), self._mark_name(state)
            response.set_cookie(name, mark, max_age=_MARK_LIFE, secure=is_secure, httponly=True, samesite="lax")

    async def _find_flow(self, state: str) -> FlowRow | None:
        return await self._board.storage.oauth.load_flow(_digest(state)) if state else None

    def _mark_name(self, state: str) -> str:
        """The name of the cookie. With https no other site of the same domain can set it: browsers see to that."""
        return f"{'__Host-' if self._is_secure() else ''}pegboard-{_digest(state)[:24]}"

    def _is_secure(self) -> bool:
        return self._board.settings.auth.public_url.startswith("https://")


async def _is_own(request: Request) -> bool:
    """Whether a browser is of the user that the gateway runs as."""
    return not is_remote(request.scope) and await asyncio.to_thread(peer_of(request.scope).look_up)


def _digest(state: str) -> str:
    return sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def read_query(request: Request) -> Mapping[str, str]:
    """What an authorization server answered; nothing that could be read in two ways."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise AuthRefused(400, "This page takes no body.")
    if len(request.scope["query_string"]) > _LONGEST_QUERY:
        raise AuthRefused(400, "The address is too long.")
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in _PARAMETERS:
            if name in query:
                raise AuthRefused(400, f"The address has {name} twice.")
            query[name] = value
    if "state" not in query or ("code" not in query and "error" not in query):
        raise AuthRefused(400, "This page is where a sign-in ends, and nobody has sent an answer of one along.")
    return query


def _show_refusal(refused: AuthRefused) -> Response:
    if refused.status == 429:
        response = show_page(
            429, "Not signed in", "Too many answers came from here that fit no sign-in. Try again later."
        )
        response.headers["retry-after"] = str(max(round(refused.retry_after or 1), 1))
        return response
    return show_page(refused.status, "Not signed in", refused.reason, "" if refused.status == 403 else _AGAIN)


def show_page(status: int, title: str, *paragraphs: str) -> Response:
    """A page of plain text: whatever stands in it, nothing of it is markup, is kept, or is told to anybody else."""
    text = "".join(f"<p>{html.escape(each)}</p>\n" for each in paragraphs if each)
    whole = page("sign_in").replace("{title}", html.escape(title)).replace("{text}", text)
    return HTMLResponse(whole, status, page_headers(whole))


def page_headers(whole: str) -> dict[str, str]:
    """The headers of a page that loads nothing but its own style."""
    style = whole.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    return {
        "cache-control": "no-store",
        "content-security-policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }


def _address(request: Request) -> str:
    peer = request.scope.get("client")
    return share_holder(str(peer[0]) if peer else "")
