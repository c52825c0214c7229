"""The limit of a request's body. It stands behind authentication: nothing is kept for whoever is not let in."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.gateway.body import SURELY_FEW, TooLarge, read_body, replay
from pegboard.gateway.guard import refusal_response


class BodyLimit:
    """Reads a body that may be large to its end before anybody parses it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _may_be_large(scope["headers"]):
            try:
                receive = replay(await read_body(receive), receive)
            except TooLarge as exc:
                await refusal_response(413, str(exc))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _may_be_large(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body is worth a look before it is parsed: it is long, or does not say how long it is."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value) > SURELY_FEW)
        for name, value in headers
    )
