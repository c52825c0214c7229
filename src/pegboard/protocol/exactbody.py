"""HTTP bodies to and from the SDK, whose parser knows neither a number beyond a float nor half of a surrogate pair."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard import exactjson
from pegboard.protocol.client import MAX_BODY
from pegboard.protocol.message import parse_error
from pegboard.protocol.portions import LARGE, portions


class ExactBody:
    """An ASGI middleware that puts placeholders for such values into a request, and fills them in in its answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            messages = await _receive_body(receive)
            try:
                messages = _with_placeholders(messages)
            except exactjson.NotJson as exc:
                await _refuse(send, exc)
                return
            receive = _replay(messages, receive)
        await self._app(scope, receive, _Filling(send))


class _Filling:
    """Sends what the SDK answers, with what its placeholders stand for."""

    def __init__(self, send: Send) -> None:
        self._send = send
        # The head of an answer that says how long it is, until that is known.
        self._head: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and b"content-length" in dict(message["headers"]):
            self._head = message
            return
        if message["type"] == "http.response.body" and message.get("body"):
            given = message["body"]
            filled = exactjson.fill_placeholders(bytes(given))
            if len(filled) != len(given):
                message = {**message, "body": filled}
                self._head = _shortened(self._head, len(given) - len(filled))
        if self._head is not None:
            head, self._head = self._head, None
            await self._send(head)
        if len(body := message.get("body", b"")) <= LARGE:
            await self._send(message)
            return
        for portion in portions(body):
            await self._send({**message, "body": portion, "more_body": True})
            # Everybody else has a turn, also if the client reads at once.
            await asyncio.sleep(0)
        if not message.get("more_body"):
            await self._send({**message, "body": b""})


def _shortened(head: Message | None, by: int) -> Message | None:
    if head is None:
        return None
    headers = [
        (name, b"%d" % (int(value) - by) if name == b"content-length" else value) for name, value in head["headers"]
    ]
    return {**head, "headers": headers}


async def _receive_body(receive: Receive) -> list[Message]:
    """The messages of a body, up to its end, or to where it is longer than a message may be."""
    message = await receive()
    messages, size = [message], len(message.get("body", b""))
    while message.get("more_body") and size <= MAX_BODY:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
    return messages


def _with_placeholders(messages: list[Message]) -> list[Message]:
    if messages[-1]["type"] != "http.request" or messages[-1].get("more_body"):
        return messages
    body = b"".join(message.get("body", b"") for message in messages)
    readable = exactjson.with_placeholders(body)
    return messages if readable is body else [{"type": "http.request", "body": readable, "more_body": False}]


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = list(reversed(messages))

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(send: Send, exc: exactjson.NotJson) -> None:
    body = parse_error(str(exc))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
