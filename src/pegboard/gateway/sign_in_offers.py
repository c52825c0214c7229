"""Sign-in offers: a call that fails because nobody is signed in to its server is answered, for a client that can show
an address to its user, with the one where they sign in (URL elicitation)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pegboard.board import Board
from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.exactjson import as_object
from pegboard.gateway.connect_links import CONNECT, ConnectLink, ConnectLinks
from pegboard.oauth.live_token import GrantChange
from pegboard.protocol.codes import URL_ELICITATION_REQUIRED
from pegboard.result import ToolFailure, unavailable
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message
from pegboard.servers.requester import inability

_QUESTION = "sign-in"
_STATE = "pegboard-sign-in:"
_URL_MODE = {"mode": "url"}
# Seconds that a call waits for somebody who has said that they will sign in.
_PATIENCE = 120.0


class SignInOffers:
    """Makes offers, and knows when somebody has taken one."""

    def __init__(self, board: Board, links: ConnectLinks) -> None:
        self._board = board
        self._links = links
        board.oauth.on_change(self._on_change)
        board.sign_in_advice.connect_address = self._find_address

    def answer(self, failure: ToolFailure, caller: Caller) -> Message | None:
        """What a client is told in place of a failure, if a sign-in would help and it can be offered one; of the
        handshake era it is an error."""
        link = self._make_link(failure, caller)
        if link is None:
            return None
        message = f"{link.server} wants you to sign in before it can be used."
        asked: dict[str, Any] = {"mode": "url", "url": self._address(link), "message": message}
        if caller.client.era == "handshake":
            offer = {**asked, "elicitationId": link.elicitation_id}
            raise RpcError(URL_ELICITATION_REQUIRED, failure.error.message, {"elicitations": [offer]})
        return {
            "resultType": "input_required",
            "inputRequests": {_QUESTION: {"method": "elicitation/create", "params": asked}},
            "requestState": f"{_STATE}{link.elicitation_id}",
        }

    async def resume(self, params: Mapping[str, Any], caller: Caller) -> Mapping[str, Any]:
        """The params of a call as they were before its client was asked; waits for the sign-in. Raises `ToolFailure`
        where the person said no."""
        state = params.get("requestState")
        if not isinstance(state, str) or not state.startswith(_STATE):
            return params
        link = self._links.find_offer(state.removeprefix(_STATE), caller.principal_id)
        said = as_object((as_object(params.get("inputResponses")) or {}).get(_QUESTION)) or {}
        if link is not None and said.get("action") != "accept":
            said = f"nobody has signed in to {link.server}: pegboard login {link.server}"
            words = self._board.sign_in_advice.words(link.server, said, caller.client)
            raise unavailable(words, retryable=False)
        if link is not None:
            await self._wait(link)
        return {key: value for key, value in params.items() if key not in {"requestState", "inputResponses"}}

    async def _wait(self, link: ConnectLink) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await link.done.wait()
        except TimeoutError:
            raise unavailable(f"nobody has signed in to {link.server} yet: call the tool again afterwards") from None

    def _make_link(self, failure: ToolFailure, caller: Caller) -> ConnectLink | None:
        wanted, client = failure.error.sign_in, caller.client
        if wanted is None or inability(client.capabilities, "elicitation/create", _URL_MODE) is not None:
            return None
        if not client.filter.admits_server(wanted):
            return None
        server, principal = self._board.servers.get(wanted), client.principal
        if server is None or not server.spec.signs_in or not self._base():
            return None
        is_own = server.spec.sign_in.per == "user"
        if principal.kind == "anonymous" or not (is_own or principal.admin):
            return None
        return self._links.make(server.name, principal.id, principal.id if is_own else "", client.session)

    def _find_address(self, name: str, client: Client) -> str | None:
        """Where somebody signs in to a server, for themselves or for all, if this gateway has pages."""
        server = self._board.servers.get(name)
        if server is None or not self._base():
            return None
        who = client.principal.id
        holder = who if server.spec.sign_in.per == "user" else ""
        return self._address(self._links.make(name, who, holder, client.session))

    def _address(self, link: ConnectLink) -> str:
        return f"{self._base()}{CONNECT}/{link.key}"

    def _base(self) -> str:
        """What clients call this gateway; empty where it has no pages."""
        return self._board.settings.auth.public_url or self._links.address

    def _on_change(self, server: str, holder: str, change: GrantChange) -> None:
        if change not in {"signed_in", "changed"}:
            return
        for link in self._links.end(server, holder):
            client = self._board.relay.sessions.get(link.session)
            if client is not None and client.channel is not None:
                client.channel.notify("notifications/elicitation/complete", {"elicitationId": link.elicitation_id})
